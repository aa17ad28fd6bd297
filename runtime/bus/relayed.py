"""Requests that the relay carries out for outsiders; pure.

What a request may say is listed here: a field that is not cannot cost anything. Whose
turn it is follows from who asks, so a connection that floods waits for itself, and an
account with many of them for its own.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

import msgspec
from msgspec import Struct

from contracts.pages import PAGE_MESSAGES, PageRequest

MAX_BODY_BYTES = 8 << 10
"""A request with more is not carried out."""
MAX_WAITING = 16_384
"""Requests of one connection that wait; agents of simulated fleets ask for all nodes
at once."""
MAX_WAITING_IN_ALL = 65_536
"""Of all connections; where they are so many each has an equal share of them."""
LATE_S = 10.0
"""Who asked so long ago has asked again."""
PAGE_BYTES = 2 << 20
"""Of a page as a stream sends it, whose last message may go beyond. So that pages of
all streams at once wait nowhere for long."""

_DIRECT = "DIRECT.GET."
_INFO = "STREAM.INFO."
_GET = "STREAM.MSG.GET."


class Request(NamedTuple):
    """What somebody outside asks of JetStream's API."""

    client: str
    """The connection that asks."""
    account: str
    operation: str
    """Such as `STREAM.INFO.DEC`."""
    data: bytes
    reply: str
    came_s: float

    @property
    def stream(self) -> str:
        """The stream that answers; empty: the API does."""
        if not self.operation.startswith(_DIRECT):
            return ""
        return self.operation.removeprefix(_DIRECT).partition(".")[0]

    @property
    def is_page(self) -> bool:
        """True if it asks for several messages."""
        return self.operation == f"{_DIRECT}{self.stream}"


class _MessageRequest(Struct, frozen=True, omit_defaults=True):
    seq: int = 0
    next_by_subj: str = ""


def remake_body(request: Request) -> bytes | None:
    """Write what the server is asked; None: nothing."""
    try:
        if request.is_page:
            return _remake_page(request)
        if request.operation.startswith(_GET):
            wanted = msgspec.json.decode(request.data, type=_MessageRequest)
            return msgspec.json.encode(wanted)
    except (msgspec.DecodeError, RecursionError):
        return None
    return b"" if request.operation.startswith((_INFO, _DIRECT)) else None


def _remake_page(request: Request) -> bytes:
    wanted = msgspec.json.decode(request.data, type=PageRequest)
    page = {
        "seq": wanted.seq,
        "next_by_subj": wanted.next_by_subj,
        "batch": min(wanted.batch, PAGE_MESSAGES),
        "max_bytes": PAGE_BYTES,
    }
    return msgspec.json.encode(page)


class FairQueue:
    """Requests that wait; accounts take turns, and in each those who ask."""

    def __init__(self) -> None:
        self._waiting: dict[str, dict[str, deque[Request]]] = {}
        """By account and connection; whose turn it is comes first."""
        self._connections = 0
        self._count = 0

    def put(self, request: Request) -> bool:
        """Add a request; False: there is no room for it."""
        own = self._waiting.get(request.account, {}).get(request.client)
        if own is None:
            if self._connections >= MAX_WAITING_IN_ALL:
                return False
            own = self._own(request)
        is_full = self._count >= MAX_WAITING_IN_ALL
        share = MAX_WAITING_IN_ALL // self._connections if is_full else MAX_WAITING
        if own and len(own) >= share:
            return False
        own.append(request)
        self._count += 1
        return True

    def put_back(self, request: Request) -> None:
        """Put back what was taken just now: it is the next."""
        self._own(request).appendleft(request)
        account = self._waiting.pop(request.account)
        own = account.pop(request.client)
        first = {request.client: own, **account}
        self._waiting = {request.account: first, **self._waiting}
        self._count += 1

    def take(self, now_s: float) -> Request | None:
        """Take the request whose turn it is; those that are late are dropped."""
        while self._waiting:
            name, account = next(iter(self._waiting.items()))
            client, own = next(iter(account.items()))
            del self._waiting[name], account[client]
            request = own.popleft()
            self._count -= 1
            if own:
                account[client] = own
            else:
                self._connections -= 1
            if account:
                self._waiting[name] = account
            if now_s - request.came_s < LATE_S:
                return request
        return None

    def _own(self, request: Request) -> deque[Request]:
        """Return the requests of who asks, with none if there are none."""
        account = self._waiting.setdefault(request.account, {})
        if request.client not in account:
            account[request.client] = deque()
            self._connections += 1
        return account[request.client]
