"""Requests that a relay carries out for outsiders, and messages that it stores; pure.

What a request may say is listed here: a field that is not cannot cost anything. Whose
turn it is follows from what nats-server lets a user say: the account, and in it the
node or namespace that a subject names. So who floods waits for itself, over however
many connections. Behind one name, and where there is none, inboxes take turns; they are
what clients claim, and only keep those apart who mean no harm.
"""

from __future__ import annotations

import re
from collections import OrderedDict, deque
from collections.abc import Mapping
from typing import NamedTuple

import msgspec
from msgspec import Struct

from contracts.pages import PAGE_MESSAGES, PageRequest
from contracts.topics import TOPICS
from runtime.bus.subscription import Delivery

MAX_BODY_BYTES = 8 << 10
"""A request with more is not carried out."""
PAGE_BYTES = 2 << 20
"""Of a page as a stream sends it, whose last message may go beyond. So that pages of
all streams at once wait nowhere for long."""


class Room(Struct, frozen=True, kw_only=True):
    """How much may wait."""

    askers: int = 16_384
    """Of an account; a simulated fleet asks for all of its nodes at once."""
    count: int = 16_384
    """Of one asker."""
    count_in_all: int = 65_536
    """Of an account; where its askers are so many each has an equal share of them."""
    size: int = 32 << 20
    """Of the bodies of one asker: twice what our clients have in flight."""
    size_in_all: int = 64 << 20
    """Of an account; beyond it each has a share, as of the count."""
    late_s: float = 5.0
    """Who asked so long ago has asked again."""


INVALID, BUSY = (400, 10003), (429, 10167)
"""Codes of JetStream: a bad request; and one that may be repeated a little later."""
_DIRECT = "DIRECT.GET."
_INFO = "STREAM.INFO."
_GET = "STREAM.MSG.GET."
_INBOX = re.compile(r"_INBOX(\.[^.*>\s]+)+")
_MAX_INBOX = 255
"""Characters; a reply is kept for as long as its request waits."""
_OWNED = {
    topic.entity
    for topic in TOPICS
    if {"node", "namespace"}.intersection(topic.names[1:2])
}
"""Subjects of these entities name a cluster, and there a node or namespace, for which
nats-server lets a user speak."""


class Request(NamedTuple):
    """What somebody outside asks of JetStream's API, or publishes."""

    account: str
    asker: str
    """The node or namespace that the subject names; else the inbox."""
    operation: str
    """Such as `STREAM.INFO.DEC`; of what is published its subject."""
    data: bytes
    reply: str
    """An inbox of the account; empty: nobody waits for an answer."""
    came_s: float
    headers: Mapping[str, str] = {}

    @property
    def inbox(self) -> str:
        """What the replies of one client begin with."""
        return self.reply.rpartition(".")[0]

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


def read_request(
    account: str,
    operation: str,
    delivery: Delivery,
    came_s: float,
    headers: Mapping[str, str] | None = None,
) -> Request:
    """Read what somebody in an account asks or publishes."""
    reply = delivery.reply
    if len(reply) > _MAX_INBOX or not _INBOX.fullmatch(reply):
        reply = ""
    return Request(
        account=account,
        asker=_name_owner(operation) or reply.rpartition(".")[0],
        operation=operation,
        data=delivery.data,
        reply=reply,
        came_s=came_s,
        headers=headers or {},
    )


def _name_owner(operation: str) -> str:
    """Name whose the subject is that is published or looked up; empty: everybody's."""
    subject = operation
    if operation.startswith(_DIRECT):
        subject = operation.removeprefix(_DIRECT).partition(".")[2]
    entity, *names = subject.split(".", 4)[:4]
    return ".".join(names[1:]) if entity in _OWNED else ""


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


def make_refusal(codes: tuple[int, int], words: str) -> bytes:
    """Write a refusal as JetStream does."""
    code, err_code = codes
    error = {"code": code, "err_code": err_code, "description": words}
    return msgspec.json.encode({"error": error, "stream": "", "seq": 0})


class _Turns:
    """Requests that wait at one level, where those below take turns."""

    def __init__(self) -> None:
        self.below: OrderedDict[str, _Turns] = OrderedDict()
        """Whose turn it is comes first."""
        self.count = 0
        self.bytes = 0
        self._requests: deque[Request] = deque()
        """At the last level, where nobody is below."""

    def find(self, name: str) -> _Turns:
        """Return who is below by a name, or a new one for whom nothing waits."""
        return self.below.get(name) or _Turns()

    def add(self, request: Request, *path: str, is_next: bool = False) -> None:
        """Add a request at the end of a path of names, or where it is the next."""
        self.count += 1
        self.bytes += len(request.data)
        if path:
            self.below[path[0]] = below = self.find(path[0])
            below.add(request, *path[1:], is_next=is_next)
            if is_next:
                self.below.move_to_end(path[0], last=False)
        elif is_next:
            self._requests.appendleft(request)
        else:
            self._requests.append(request)

    def take(self) -> Request:
        """Take the request whose turn it is."""
        if self.below:
            name, below = self.below.popitem(last=False)
            request = below.take()
            if below.count:
                self.below[name] = below
        else:
            request = self._requests.popleft()
        self.count -= 1
        self.bytes -= len(request.data)
        return request


class FairQueue:
    """Requests that wait; accounts take turns, in each who asks, and their inboxes."""

    def __init__(self, room: Room) -> None:
        self._room = room
        self._turns = _Turns()

    def put(self, request: Request) -> bool:
        """Add a request; False: there is no room for it."""
        room, size = self._room, len(request.data)
        account = self._turns.find(request.account)
        asker = account.find(request.asker)
        askers = len(account.below) + (not asker.count)
        if askers > room.askers:
            return False
        is_full = account.count >= room.count_in_all
        share = room.count_in_all // askers if is_full else room.count
        is_full = account.bytes + size > room.size_in_all
        byte_share = room.size_in_all // askers if is_full else room.size
        if asker.bytes + size > byte_share or asker.count >= share:
            return False
        self._turns.add(request, *_path_of(request))
        return True

    def put_back(self, request: Request) -> None:
        """Put back what was taken just now: it is the next."""
        self._turns.add(request, *_path_of(request), is_next=True)

    def take(self, now_s: float) -> Request | None:
        """Take the request whose turn it is; those that are late are dropped."""
        while self._turns.count:
            request = self._turns.take()
            if now_s - request.came_s < self._room.late_s:
                return request
        return None


def _path_of(request: Request) -> tuple[str, str, str]:
    return request.account, request.asker, request.inbox
