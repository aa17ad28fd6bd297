"""Requests to JetStream's API, and its answers as values.

Which requests exist and how refusals look. Stands alone so that streams, readers and
blobs read errors in one way; publishing has its own answers (publishing.py).
"""

from __future__ import annotations

import base64
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from runtime.bus.client import read_headers
from runtime.bus.connection import Connection
from runtime.bus.subscription import Delivery
from runtime.errors import BusRefusedError, BusUnavailableError
from runtime.retry import retry
from runtime.wire import Received, republished, seconds, unpack

T = TypeVar("T")

NO_MESSAGE = 10037
NO_STREAM = 10059
NO_CONSUMER = 10014
_NO_PEERS = 10005
_NOT_FOUND = "404"
BUSY_STATUS = "429"
"""Of an answer of a relay that has no room: ask again a little later."""


class JetStreamError(Struct, frozen=True):
    """Why the server said no."""

    code: int = 0
    err_code: int = 0
    description: str = ""

    @property
    def passing(self) -> bool:
        """True if the same request may succeed a little later.

        So where servers are missing for the copies of a stream that will be back.
        """
        is_away = self.err_code == _NO_PEERS and "offline" in self.description
        return is_away or self.code in (429, 503)


_HEARD_NS = 3_000_000_000
"""Servers that share a stream hear of each other every second."""


class _Answer(Struct, frozen=True):
    error: JetStreamError | None = None


class StreamState(Struct, frozen=True):
    """How far a stream has come."""

    first_seq: int = 0
    last_seq: int = 0
    num_subjects: int = 0
    bytes: int = 0


class PeerInfo(Struct, frozen=True):
    """A server that has a copy of a stream, beside the one that leads it."""

    name: str = ""
    current: bool = False
    offline: bool = False
    active: int = 0
    """Nanoseconds since the leader last heard of it."""


class ClusterInfo(Struct, frozen=True):
    """The servers that have copies of a stream."""

    leader: str = ""
    replicas: tuple[PeerInfo, ...] = ()


class StreamInfo(Struct, frozen=True):
    """A stream as the server describes it."""

    config: dict[str, Any]
    state: StreamState
    cluster: ClusterInfo = ClusterInfo()
    created: str = ""
    ts: str = ""
    """The server's time."""

    @property
    def is_leaders(self) -> bool:
        """True if the stream's leader answered, or it has the only copy.

        While a stream has no leader any copy answers for itself, and may lack messages
        that are stored (nats-server 2.15, `jsStreamInfoRequest`); it does not name
        itself among the replicas. A leader that is cut off takes itself for one for 10
        s more (`lostQuorumInterval`), while the others elect another after 4 s at the
        earliest (`minElectionTimeout`): its word counts if it just heard of so many
        that no other can have been elected.
        """
        others = {peer.name for peer in self.cluster.replicas}
        if not others:
            return True
        heard = sum(peer.active < _HEARD_NS for peer in self.cluster.replicas)
        is_majority = 1 + heard > (1 + len(others)) // 2
        return is_majority and self.cluster.leader not in {"", *others}


class Delivered(Struct, frozen=True):
    """How far a consumer has come."""

    consumer_seq: int = 0
    """Messages that it was asked for and gave, whoever asked."""


class ConsumerInfo(Struct, frozen=True):
    """A consumer as the server describes it."""

    delivered: Delivered = Delivered()
    num_pending: int = 0
    """Stored messages that it was not asked for yet."""


class _StoredMessage(Struct, frozen=True):
    subject: str
    seq: int
    time: str
    data: str = ""
    hdrs: str = ""


class _StoredAnswer(Struct, frozen=True):
    message: _StoredMessage


class _Subjects(Struct, frozen=True):
    subjects: dict[str, int] | None = None


class _SubjectsInfo(Struct, frozen=True):
    state: _Subjects


class Nothing(Struct, frozen=True):
    """An answer of which only the success matters."""


async def call(
    connection: Connection,
    operation: str,
    body: Any,
    kind: type[T],
    timeout_s: float | None = None,
) -> T:
    """Make one request to JetStream's API.

    Raises:
        BusRefusedError: the server says no.
        BusUnavailableError: no answer, or not now.
    """
    data = msgspec.json.encode(body) if body is not None else b""
    subject = connection.api_subject(operation)
    reply = await connection.request(subject, data, timeout_s=timeout_s)
    error = msgspec.json.decode(reply.data, type=_Answer).error
    if error is None:
        return msgspec.json.decode(reply.data, type=kind)
    if error.passing:
        raise BusUnavailableError(operation, error.description)
    raise BusRefusedError(operation, error.description, error.err_code)


async def call_retried(
    connection: Connection, operation: str, body: Any, kind: type[T]
) -> T:
    """Make a request that may safely be made twice, until it is answered."""
    return await retry(
        operation,
        lambda: call(connection, operation, body, kind),
        on=BusUnavailableError,
    )


async def read_info(
    connection: Connection, stream: str, timeout_s: float | None = None
) -> StreamInfo:
    """Ask the leader of a stream how it is.

    Raises:
        BusRefusedError: the server says no; `NO_STREAM`: there is none.
        BusUnavailableError: no answer, or none of the stream's leader.
    """
    operation = f"STREAM.INFO.{stream}"
    info = await call(connection, operation, None, StreamInfo, timeout_s)
    if not info.is_leaders:
        raise BusUnavailableError(operation, "no certain leader of the stream")
    return info


async def read_last_message(
    connection: Connection, stream: str, subject: str
) -> Received | None:
    """Read the last message of a subject from the stream's leader.

    A user outside of CORE gets it from any copy of the stream, which may be behind for
    a moment.

    Raises:
        MessageError: it is there and cannot be unpacked.
    """
    if connection.settings.is_outside:
        return await _read_last_copy(connection, stream, subject)
    try:
        answer = await call_retried(
            connection,
            f"STREAM.MSG.GET.{stream}",
            {"last_by_subj": subject},
            _StoredAnswer,
        )
    except BusRefusedError as error:
        if error.code == NO_MESSAGE:
            return None
        raise
    stored = answer.message
    return unpack(
        stored.subject,
        base64.b64decode(stored.data),
        read_headers(base64.b64decode(stored.hdrs)),
        stored.seq,
        seconds(stored.time),
    )


async def read_stored_time(
    connection: Connection, stream: str, sequence: int
) -> float | None:
    """Read when the stream stored the message of a sequence, in its leader's time.

    Seconds since the epoch; None: there is no such message, or no longer.

    Raises:
        BusError: the server does not say.
    """
    found = await _read_message(connection, stream, {"seq": sequence})
    return None if found is None else seconds(found.time)


async def find_next(
    connection: Connection, stream: str, subject: str, sequence: int
) -> int | None:
    """Find the first message of a subject (or wildcard) from a sequence on.

    Returns its sequence, as the stream's leader has it now; None: there is none.

    Raises:
        BusError: the server does not say.
    """
    wanted = {"seq": sequence, "next_by_subj": subject}
    found = await _read_message(connection, stream, wanted)
    return None if found is None else found.seq


async def _read_message(
    connection: Connection, stream: str, wanted: dict[str, Any]
) -> _StoredMessage | None:
    operation = f"STREAM.MSG.GET.{stream}"
    try:
        answer = await call(connection, operation, wanted, _StoredAnswer)
    except BusRefusedError as error:
        if error.code == NO_MESSAGE:
            return None
        raise
    return answer.message


async def read_server_time(connection: Connection, stream: str) -> float:
    """Ask the leader of a stream for its time, in seconds since the epoch.

    By it messages are stamped and expire; our own clock may be days away.

    Raises:
        BusError: the server says no, or the stream has had no leader for long.
    """
    info = await retry(
        f"STREAM.INFO.{stream}",
        lambda: read_info(connection, stream),
        on=BusUnavailableError,
    )
    return seconds(info.ts)


async def _read_last_copy(
    connection: Connection, stream: str, subject: str
) -> Received | None:
    asked = connection.api_subject(f"DIRECT.GET.{stream}.{subject}")

    async def ask() -> Delivery:
        delivery = await connection.request(asked)
        if delivery.status == BUSY_STATUS:
            raise BusUnavailableError(asked, delivery.headers.get("Description", ""))
        return delivery

    answer = await retry(asked, ask, on=BusUnavailableError)
    if answer.status == _NOT_FOUND:
        return None
    if answer.status:
        raise BusRefusedError(asked, answer.headers.get("Description", answer.status))
    return republished(subject, answer.data, answer.headers)


async def list_subjects(
    connection: Connection, stream: str, subjects: str
) -> frozenset[str]:
    """Return the subjects with messages that match a wildcard.

    The server goes through all that match, so it is for few.
    """
    operation, body = f"STREAM.INFO.{stream}", {"subjects_filter": subjects}
    info = await call_retried(connection, operation, body, _SubjectsInfo)
    return frozenset(info.state.subjects or ())


async def purge(
    connection: Connection, stream: str, subject: str, up_to: int = 0
) -> None:
    """Remove the messages of a subject or wildcard.

    All of them, or those up to a sequence.
    """
    if not subject:
        raise BusRefusedError(f"STREAM.PURGE.{stream}", "purge needs a subject")
    body: dict[str, Any] = {"filter": subject}
    if up_to:
        body["seq"] = up_to + 1
    await call_retried(connection, f"STREAM.PURGE.{stream}", body, Nothing)
