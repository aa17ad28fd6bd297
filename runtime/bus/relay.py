"""The relay: carries out what outsiders ask of JetStream, a little at a time.

nats-server works off the requests of all accounts in one queue, and what a stream
answers waits in one queue with the acknowledgements of what is stored there. Neither
has a limit by user: whoever reaches it fills it, and decisions wait. So only services
reach them. What the others ask, under the names of JetStream's own subjects, a relay
hears and asks for them: little at once, by turns, and after each request it rests for
as long as that took.

What outsiders hear is sent by the relay, to each account over a connection of its own,
and nothing of it by a stream: nats-server hands a message to all who hear it before it
goes on with what sent it, and a stream that does so acknowledges nothing meanwhile.

A process of its own (relaying.py), since a flood takes all of its time.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from functools import partial

from msgspec import structs

from contracts.streams import STREAMS
from runtime.bus.connection import Connection
from runtime.bus.gathering import Gatherer, make_page
from runtime.bus.outlet import Outlet
from runtime.bus.permissions import news_of
from runtime.bus.relayed import (
    BUSY,
    INVALID,
    MAX_BODY_BYTES,
    FairQueue,
    Request,
    Room,
    read_request,
    remake_body,
)
from runtime.bus.subscription import Delivery
from runtime.errors import BusError, BusRefusedError
from runtime.log import get_logger
from runtime.users import OUTSIDE_ACCOUNTS, relay_prefix
from runtime.waits import first_of, together, unless
from runtime.wire import OVERSIZED, BusSettings

_GROUP = "relays"
_API = ""
"""The lane of requests that the API itself answers; others are named by streams."""
_API_AT_ONCE = 2
"""So that one which is not answered stops nobody."""
_STREAM_AT_ONCE = 8
_ANSWER_S = 5.0
_NO_PAGE = "500"
_LONGEST_REST_S = 3.0
_MESSAGES_A_SECOND = 20_000
"""Of a stream, in pages, to all who read it."""

log = get_logger(__name__)


class _Lane:
    """Requests that are carried out one after the other."""

    def __init__(self) -> None:
        self.queue = FairQueue(Room())
        self.filled = asyncio.Event()


class Relay:
    """Takes requests from outside and carries them out."""

    def __init__(self, asking: Connection) -> None:
        """`asking` is how it asks JetStream."""
        self._asking = asking
        self._pages = Gatherer(asking)
        self._outlets: dict[str, Outlet] = {}
        """By account."""
        self._lanes = {name: _Lane() for name in (_API, *(s.name for s in STREAMS))}

    @contextlib.asynccontextmanager
    async def listening(self, account: str) -> AsyncIterator[None]:
        """Take what users of an account ask, and give it the news, for the block.

        Each has a connection of its own: a flood ends it, and no other.
        """
        settings = self._asking.settings
        name = f"{settings.name}-{account.lower()}"
        connection = Connection(structs.replace(settings, name=name))
        outlet = self._outlets[account] = Outlet(connection, account)
        prefix = relay_prefix(account)
        take = partial(self._take_delivery, account, len(prefix) + 1)
        async with connection.keep_up():
            await connection.subscribe(f"{prefix}.>", take, _GROUP)
            for subject in news_of(account):
                pass_on = partial(_pass_on, outlet)
                await connection.subscribe(subject, pass_on, f"{_GROUP}-{account}")
            yield

    async def run(self, stop: asyncio.Event) -> None:
        """Carry out requests until `stop` is set."""
        await self._pages.listen()
        works = [
            self._work(name, lane, stop)
            for name, lane in self._lanes.items()
            for _ in range(_API_AT_ONCE if name == _API else 1)
        ]
        sending = together(outlet.run() for outlet in self._outlets.values())
        await together([*works, unless(stop, sending)])

    def _take_delivery(self, account: str, begin: int, delivery: Delivery) -> None:
        now_s = asyncio.get_running_loop().time()
        request = read_request(account, delivery.subject[begin:], delivery, now_s)
        lane, outlet = self._lanes.get(request.stream), self._outlets[account]
        if not request.reply:
            return
        if len(delivery.data) > MAX_BODY_BYTES or OVERSIZED in delivery.headers:
            outlet.refuse(request.reply, INVALID, "it is too large")
        elif lane is None:
            outlet.refuse(request.reply, INVALID, "no relay carries that out")
        elif lane.queue.put(request):
            lane.filled.set()
        else:
            outlet.refuse(request.reply, BUSY, "too many requests wait")

    async def _work(self, name: str, lane: _Lane, stop: asyncio.Event) -> None:
        loop = asyncio.get_running_loop()
        while not stop.is_set():
            began_s = loop.time()
            requests = self._take_some(name, lane)
            if not requests:
                lane.filled.clear()
                await first_of(stop, lane.filled)
                continue
            sent = await asyncio.gather(*map(self._answer, requests))
            rest_s = min(loop.time() - began_s, _LONGEST_REST_S)
            await first_of(stop, within_s=max(rest_s, sum(sent) / _MESSAGES_A_SECOND))

    def _take_some(self, name: str, lane: _Lane) -> list[Request]:
        """Take what is carried out at once: a page, or some requests of a message."""
        now_s = asyncio.get_running_loop().time()
        requests: list[Request] = []
        most = 1 if name == _API else _STREAM_AT_ONCE
        while len(requests) < most and (request := lane.queue.take(now_s)):
            if request.is_page and requests:
                lane.queue.put_back(request)
                break
            requests.append(request)
            if request.is_page:
                break
        return requests

    async def _answer(self, request: Request) -> int:
        """Ask for what somebody wants and answer; gives the messages of a page.

        Where an account does not keep up, it has no answer.
        """
        body, outlet = remake_body(request), self._outlets[request.account]
        if body is None:
            outlet.refuse(request.reply, INVALID, "its body is not read")
            return 0
        if not outlet.has_room():
            return 0
        try:
            if request.is_page:
                return await self._answer_page(request, body, outlet)
            subject = self._asking.api_subject(request.operation)
            answer = await self._asking.request(subject, body, timeout_s=_ANSWER_S)
            outlet.answer(request.reply, answer.data, _plain(answer.headers))
        except BusError as error:
            outlet.refuse(request.reply, BUSY, str(error))
        return 0

    async def _answer_page(self, request: Request, body: bytes, outlet: Outlet) -> int:
        gathered = await self._pages.ask(request.operation, body, _ANSWER_S)
        try:
            outlet.answer(request.reply, make_page(gathered, outlet.max_bytes))
        except BusRefusedError as error:
            told = {"Status": _NO_PAGE, "Description": error.reason}
            outlet.answer(request.reply, b"", told)
        return len(gathered.messages)


def _pass_on(outlet: Outlet, delivery: Delivery) -> None:
    """Send on what a stream told CORE; readers ask again without it, a little later."""
    if OVERSIZED not in delivery.headers:
        outlet.tell(delivery.subject, delivery.data, delivery.headers)


def _plain(headers: Mapping[str, str]) -> dict[str, str]:
    """Give the names of headers, some of which the client library has as an enum."""
    return {str(getattr(name, "value", name)): text for name, text in headers.items()}


@contextlib.asynccontextmanager
async def open_relay(settings: BusSettings) -> AsyncIterator[Relay]:
    """Connect a relay, which listens while the block runs."""
    asking = Connection(settings)
    async with contextlib.AsyncExitStack() as stack:
        await stack.enter_async_context(asking.keep_up())
        relay = Relay(asking)
        for account in OUTSIDE_ACCOUNTS:
            await stack.enter_async_context(relay.listening(account))
        yield relay
