"""Requests that a relay carries out for outsiders, and messages that it stores; pure.

What a request may say is listed here: a field that is not cannot cost anything. Whose
turn it is follows from who asks, so a connection that floods waits for itself, and an
account with many of them for its own.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import NamedTuple

import msgspec
from msgspec import Struct

from contracts.pages import PAGE_MESSAGES, PageRequest
from runtime.bus.subscription import Delivery

MAX_BODY_BYTES = 8 << 10
"""A request with more is not carried out."""
PAGE_BYTES = 2 << 20
"""Of a page as a stream sends it, whose last message may go beyond. So that pages of
all streams at once wait nowhere for long."""


class Room(Struct, frozen=True, kw_only=True):
    """How much may wait."""

    count: int = 16_384
    """Of one connection; agents of simulated fleets ask for all nodes at once."""
    count_in_all: int = 65_536
    """Of all connections; where they are so many each has an equal share of them."""
    size: int = 32 << 20
    """Of the bodies of one connection: twice what our clients have in flight."""
    size_in_all: int = 64 << 20
    """Beyond it each has a share, as of the count."""
    late_s: float = 5.0
    """Who asked so long ago has asked again."""


INVALID, BUSY = (400, 10003), (429, 10167)
"""Codes of JetStream: a bad request; and one that may be repeated a little later."""
_DIRECT = "DIRECT.GET."
_INFO = "STREAM.INFO."
_GET = "STREAM.MSG.GET."


class Request(NamedTuple):
    """What somebody outside asks of JetStream's API, or publishes."""

    client: str
    """The connection that asks."""
    account: str
    operation: str
    """Such as `STREAM.INFO.DEC`; of what is published its subject."""
    data: bytes
    reply: str
    came_s: float
    headers: Mapping[str, str] = {}

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


class _Client(Struct, frozen=True):
    """Who asks, as the server says."""

    acc: str = ""
    server: str = ""
    id: int = 0


_CLIENT = msgspec.json.Decoder(_Client)


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


def name_client(delivery: Delivery) -> str:
    """Name the connection that asks, as the server says who it is."""
    try:
        info = delivery.headers.get("Nats-Request-Info", "{}")
        client = _CLIENT.decode(info)
    except msgspec.DecodeError:
        return ""
    return f"{client.acc} {client.server} {client.id}"


def make_refusal(codes: tuple[int, int], words: str) -> bytes:
    """Write a refusal as JetStream does."""
    code, err_code = codes
    error = {"code": code, "err_code": err_code, "description": words}
    return msgspec.json.encode({"error": error, "stream": "", "seq": 0})


class _Own:
    """What one connection waits for."""

    def __init__(self) -> None:
        self.requests: deque[Request] = deque()
        self.bytes = 0


class FairQueue:
    """Requests that wait; accounts take turns, and in each those who ask."""

    def __init__(self, room: Room) -> None:
        self._room = room
        self._waiting: dict[str, dict[str, _Own]] = {}
        """By account and connection; whose turn it is comes first."""
        self._connections = 0
        self._count = 0
        self._bytes = 0

    def put(self, request: Request) -> bool:
        """Add a request; False: there is no room for it."""
        room = self._room
        own = self._waiting.get(request.account, {}).get(request.client)
        count, size = (len(own.requests), own.bytes) if own else (0, 0)
        connections = self._connections + (own is None)
        if connections > room.count_in_all:
            return False
        is_full = self._count >= room.count_in_all
        share = room.count_in_all // connections if is_full else room.count
        size += len(request.data)
        is_full = self._bytes + len(request.data) > room.size_in_all
        byte_share = room.size_in_all // connections if is_full else room.size
        if size > byte_share or (count and count >= share):
            return False
        self._own(request).requests.append(request)
        self._note(request, 1)
        return True

    def put_back(self, request: Request) -> None:
        """Put back what was taken just now: it is the next."""
        self._own(request).requests.appendleft(request)
        self._note(request, 1)
        account = self._waiting.pop(request.account)
        own = account.pop(request.client)
        first = {request.client: own, **account}
        self._waiting = {request.account: first, **self._waiting}

    def take(self, now_s: float) -> Request | None:
        """Take the request whose turn it is; those that are late are dropped."""
        while self._waiting:
            name, account = next(iter(self._waiting.items()))
            client, own = next(iter(account.items()))
            request = own.requests.popleft()
            self._note(request, -1)
            del self._waiting[name], account[client]
            if own.requests:
                account[client] = own
            else:
                self._connections -= 1
            if account:
                self._waiting[name] = account
            if now_s - request.came_s < self._room.late_s:
                return request
        return None

    def _own(self, request: Request) -> _Own:
        """Return what who asks waits for, which may be nothing yet."""
        account = self._waiting.setdefault(request.account, {})
        if request.client not in account:
            account[request.client] = _Own()
            self._connections += 1
        return account[request.client]

    def _note(self, request: Request, count: int) -> None:
        """Count a request that was added (1) or taken (-1)."""
        size = count * len(request.data)
        self._waiting[request.account][request.client].bytes += size
        self._count += count
        self._bytes += size
