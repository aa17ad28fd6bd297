"""Pages as a relay gets them from streams: message by message, given in one piece.

A stream answers a request for a page with a message for each that it holds, and one
that ends them. They come to an inbox of the relay, where nobody else listens.
"""

from __future__ import annotations

import asyncio
from typing import NamedTuple

from msgspec import structs

from contracts.pages import PageHead, PageMessage, write_page
from runtime.bus.connection import Connection
from runtime.bus.subscription import Delivery
from runtime.errors import BusRefusedError, BusUnavailableError
from runtime.wire import TOO_LARGE

_ENTRY_BYTES = 256
"""Of a message in the first line of a page, beside its subject and headers."""
_ESCAPED = 6
"""Bytes that a character of them may need there."""
_ENDS = ("204", "404")
_TOLD_APART = frozenset(
    {
        *("Nats-Stream", "Nats-Subject", "Nats-Sequence", "Nats-Last-Sequence"),
        *("Nats-Time-Stamp", "Nats-Num-Pending", "Nats-UpTo-Sequence"),
    }
)
"""Headers of the server, most of which are fields in a page."""


class Gathered(NamedTuple):
    """What a stream answered."""

    messages: list[Delivery]
    end: Delivery


class _AskedPage(NamedTuple):
    messages: list[Delivery]
    end: asyncio.Future[Delivery]


class Gatherer:
    """Asks streams for pages, over one connection; lives inside of `keep_up`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._inbox = connection.new_inbox()
        self._asked: dict[str, _AskedPage] = {}
        self._count = 0

    async def listen(self) -> None:
        """Begin to hear what streams answer."""
        await self._connection.subscribe(f"{self._inbox}.*", self._receive_delivery)

    async def ask(self, operation: str, body: bytes, within_s: float) -> Gathered:
        """Ask a stream for a page.

        Raises:
            BusError: it cannot be asked, or has not answered in time.
        """
        self._count += 1
        token = f"{self._count}"
        asked = _AskedPage([], asyncio.get_running_loop().create_future())
        self._asked[token] = asked
        subject, reply = self._connection.api_subject(operation), self._reply(token)
        try:
            async with asyncio.timeout(within_s):
                await self._connection.publish(subject, body, reply=reply)
                return Gathered(asked.messages, await asked.end)
        except TimeoutError as error:
            raise BusUnavailableError(subject, f"no page in {within_s} s") from error
        finally:
            del self._asked[token]

    def _reply(self, token: str) -> str:
        return f"{self._inbox}.{token}"

    def _receive_delivery(self, delivery: Delivery) -> None:
        asked = self._asked.get(delivery.subject.rpartition(".")[2])
        if asked is None:
            return
        if "Nats-Sequence" in delivery.headers:
            asked.messages.append(delivery)
        elif not asked.end.done():
            asked.end.set_result(delivery)


def make_page(gathered: Gathered, max_bytes: int) -> bytes:
    """Write the page that a stream sent; what has no room is left to the next one.

    Raises:
        BusRefusedError: the stream sent none, or messages of it were lost.
    """
    _check_whole(gathered)
    messages: list[PageMessage] = []
    bodies: list[bytes] = []
    free_bytes = max_bytes - _ENTRY_BYTES
    pending = gathered.end.headers.get("Nats-Num-Pending", "0")
    for delivery in gathered.messages:
        message, body = _read_message(delivery), delivery.data
        free_bytes -= _bound_entry(message) + len(body)
        if free_bytes < 0 and messages:
            break
        if free_bytes < 0:
            headers = {TOO_LARGE: f"{len(body)}"}
            message, body = structs.replace(message, bytes=0, headers=headers), b""
        messages.append(message)
        bodies.append(body)
        pending = delivery.headers["Nats-Num-Pending"]
    return write_page(PageHead(messages=tuple(messages), pending=int(pending)), bodies)


def _check_whole(gathered: Gathered) -> None:
    """Require that each message follows the one before, up to the end."""
    end, previous = gathered.end.headers, "0"
    if end.get("Status") not in _ENDS:
        raise BusRefusedError("page", end.get("Description", "no page"))
    for delivery in gathered.messages:
        if delivery.headers["Nats-Last-Sequence"] != previous:
            break
        previous = delivery.headers["Nats-Sequence"]
    else:
        if end.get("Nats-Last-Sequence", "0") == previous:
            return
    raise BusRefusedError("page", f"messages behind {previous} were lost")


def _read_message(delivery: Delivery) -> PageMessage:
    said = delivery.headers
    return PageMessage(
        sequence=int(said["Nats-Sequence"]),
        subject=said["Nats-Subject"],
        time=said["Nats-Time-Stamp"],
        bytes=len(delivery.data),
        headers={n: text for n, text in said.items() if n not in _TOLD_APART},
    )


def _bound_entry(message: PageMessage) -> int:
    """Return what a message takes in the first line at most."""
    texts = (message.subject, *message.headers, *message.headers.values())
    return _ENTRY_BYTES + _ESCAPED * sum(map(len, texts))
