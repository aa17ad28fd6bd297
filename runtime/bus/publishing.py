"""Publishing into streams: one message, many in flight, or a batch as one.

Decides what an answer means: stored, refused for good, or try again. A refusal may be
about our own message, after an attempt without an answer, or about one that a server
without the others has only proposed; so what is stored is looked up before anybody is
told. Knows nothing of what messages mean.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime

import msgspec
from msgspec import Struct

from contracts.cloud_events import make_attributes
from runtime import metrics
from runtime.bus.connection import Connection
from runtime.bus.jetstream import JetStreamError, read_last_message
from runtime.bus.subscription import Delivery
from runtime.errors import (
    BusFullError,
    BusRefusedError,
    BusUnavailableError,
    NobodyListensError,
    PublishRefusedError,
    RefusalKind,
)
from runtime.retry import retry
from runtime.wire import Outgoing, pack

MAX_BATCH = 1_000
"""Messages in an atomic batch, set by the server."""
_WINDOW_MESSAGES = 512

_BATCH_ID = "Nats-Batch-Id"
_BATCH_SEQUENCE = "Nats-Batch-Sequence"
_BATCH_COMMIT = "Nats-Batch-Commit"

_STORE_FAILED = 10077
"""Full, or a subject that is written once: only the words tell."""
_TAKEN = "per subject"
_FULL = frozenset({10023, 10028, 10047, _STORE_FAILED})
"""No room on the server, in its memory, on its disk, or in the stream."""
_FULL_ATTEMPTS = 5
_STORES_NOTHING = (
    "the server is there and stores nothing, as when its disk is full or most of its "
    "peers are away; `moorings doctor` tells"
)
_STALE = frozenset({10071, 10164})
_PASSING = frozenset({10167, 10176})
"""Too many requests; a batch that the server lost the beginning of."""


class _Ack(Struct, frozen=True):
    stream: str = ""
    seq: int = 0
    error: JetStreamError | None = None


async def publish(
    connection: Connection, message: Outgoing, *, unsure: bool = False
) -> int:
    """Store a message and return its sequence; see `Bus.publish`.

    `unsure`: it was sent before, and nobody knows what became of it.
    """
    body, headers = _pack_message(connection, message)
    attempts = 0

    async def attempt() -> int:
        nonlocal unsure, attempts
        attempts += 1
        try:
            reply = await connection.request(message.subject, body, headers)
        except BusUnavailableError:
            unsure = True
            raise
        try:
            return _read_sequence(message.subject, reply)
        except BusFullError as error:
            error.is_final = attempts >= _FULL_ATTEMPTS
            raise
        except PublishRefusedError as error:
            return await _find_stored(connection, message, error, unsure=unsure)

    try:
        return await retry(message.subject, attempt, on=BusUnavailableError)
    except BusUnavailableError as error:
        is_clear = isinstance(error, BusFullError | NobodyListensError)
        if is_clear or not connection.connected:
            raise
        reason = f"{error.reason}; {_STORES_NOTHING}"
        raise BusUnavailableError(message.subject, reason) from error
    except BusRefusedError as error:
        raise PublishRefusedError(message.subject, "other", error.reason) from error


def _pack_message(
    connection: Connection, message: Outgoing
) -> tuple[bytes, dict[str, str]]:
    """Give body and headers, with those of CloudEvents where they are wanted."""
    body, headers = pack(message)
    if connection.settings.cloud_events:
        now = datetime.now(UTC).isoformat()
        headers |= make_attributes(
            message.subject, message.data, message.message_type, now
        )
    return body, headers


async def _find_stored(
    connection: Connection,
    message: Outgoing,
    refusal: PublishRefusedError,
    *,
    unsure: bool,
) -> int:
    """Look up what a refusal is about: if it is our own message, return its sequence.

    Raises:
        PublishRefusedError: `refusal`: it is about another message.
        BusUnavailableError: nothing is stored: a leader that cannot reach the others
            refuses for a message that it has only proposed, and may never store.
    """
    if refusal.kind == "other" or not refusal.stream:
        raise refusal
    if not unsure and refusal.kind != "exists":
        raise refusal
    stored = await read_last_message(connection, refusal.stream, message.subject)
    if stored is None and refusal.kind == "exists":
        reason = "taken by a message that is not stored"
        raise BusUnavailableError(message.subject, reason) from refusal
    if unsure and stored is not None and stored.data == message.data:
        return stored.sequence
    raise refusal


async def publish_many(
    connection: Connection,
    messages: Sequence[Outgoing],
    window_bytes: int,
    *,
    together: bool = False,
) -> int:
    """Store messages, a window of them in flight; see `Bus.publish_many`.

    `together`: each window is a batch, for which a disk is waited for once.
    """
    store = publish_batch if together else _publish_window
    highest = 0
    for window in _cut_windows(messages, window_bytes):
        highest = max(highest, await store(connection, window))
    return highest


async def _publish_window(connection: Connection, window: Sequence[Outgoing]) -> int:
    """Send a whole window first, then wait: one round trip for all of it."""
    futures: list[asyncio.Future[Delivery] | None] = []
    highest = 0
    try:
        for message in window:
            body, headers = _pack_message(connection, message)
            try:
                future = await connection.send(message.subject, body, headers)
            except (BusUnavailableError, BusRefusedError):
                futures.append(None)
            else:
                futures.append(future)
        for message, sent in zip(window, futures, strict=True):
            highest = max(highest, await _wait_stored(connection, message, sent))
    finally:
        _give_up(futures)
    return highest


def _give_up(futures: Iterable[asyncio.Future[Delivery] | None]) -> None:
    """Stop waiting for answers that nobody reads: they may never come."""
    for future in futures:
        if future is not None:
            future.cancel()


async def publish_batch(connection: Connection, messages: Sequence[Outgoing]) -> int:
    """Store all messages or none; see `Bus.publish_batch`."""
    if not 1 <= len(messages) <= MAX_BATCH:
        reason = f"a batch has 1 to {MAX_BATCH} messages, not {len(messages)}"
        raise PublishRefusedError("batch", "other", reason)
    batch_ids: list[str] = []

    async def attempt() -> int:
        batch_ids.append(uuid.uuid4().hex)
        return await _send_batch(connection, messages, batch_ids[-1])

    subject = messages[-1].subject
    try:
        return await retry(subject, attempt, on=BusUnavailableError)
    except BusRefusedError as error:
        raise PublishRefusedError(subject, "other", error.reason) from error
    except PublishRefusedError as error:
        # As in `publish`: an earlier attempt may have stored the batch.
        if len(batch_ids) > 1 and error.kind != "other" and error.stream:
            stored = await read_last_message(connection, error.stream, subject)
            if stored is not None and stored.headers.get(_BATCH_ID) in batch_ids:
                return stored.sequence
        raise


async def _send_batch(
    connection: Connection, messages: Sequence[Outgoing], batch: str
) -> int:
    await connection.wait_up("batch")
    asked: list[asyncio.Future[Delivery]] = []
    try:
        for number, message in enumerate(messages, start=1):
            body, headers = _pack_message(connection, message)
            headers[_BATCH_ID] = batch
            headers[_BATCH_SEQUENCE] = str(number)
            if number == len(messages):
                headers[_BATCH_COMMIT] = "1"
            if number in {1, len(messages)}:
                asked.append(await connection.send(message.subject, body, headers))
            else:
                await connection.publish(message.subject, body, headers=headers)
        first, final = asked[0], asked[-1]
        reply = await connection.answer(messages[-1].subject, final)
        # Of a batch that was refused from its beginning the first answer says why.
        if first.done() and (begun := first.result()).data:
            _read_sequence(messages[0].subject, begun)
    finally:
        _give_up(asked)
    return _read_sequence(messages[-1].subject, reply)


async def _wait_stored(
    connection: Connection, message: Outgoing, sent: asyncio.Future[Delivery] | None
) -> int:
    """Return the sequence of a message of a window; what is in doubt is sent again."""
    unsure = sent is not None
    if sent is not None:
        subject = message.subject
        try:
            return _read_sequence(subject, await connection.answer(subject, sent))
        except BusUnavailableError:
            pass
        except BusRefusedError as error:
            raise PublishRefusedError(subject, "other", error.reason) from error
        except PublishRefusedError as error:
            if error.kind != "exists":
                raise
            unsure = False
    return await publish(connection, message, unsure=unsure)


def _read_sequence(subject: str, reply: Delivery) -> int:
    try:
        ack = msgspec.json.decode(reply.data, type=_Ack)
    except msgspec.DecodeError as error:
        reason = f"no acknowledgement, but: {reply.data[:80]!r}"
        raise PublishRefusedError(subject, "other", reason) from error
    if ack.error is None:
        return ack.seq
    code, words = ack.error.err_code, ack.error.description
    is_taken = code == _STORE_FAILED and _TAKEN in words
    if code in _FULL and not is_taken:
        metrics.BUS_PUBLISH_REFUSED.labels("full").inc()
        raise BusFullError(subject, words)
    kind: RefusalKind = "exists" if is_taken else "stale" if code in _STALE else "other"
    if kind == "other" and (ack.error.passing or code in _PASSING):
        raise BusUnavailableError(subject, ack.error.description)
    metrics.BUS_PUBLISH_REFUSED.labels(kind).inc()
    raise PublishRefusedError(subject, kind, ack.error.description, code, ack.stream)


def _cut_windows(
    messages: Sequence[Outgoing], window_bytes: int
) -> Iterator[tuple[Outgoing, ...]]:
    """Cut into runs of at most `window_bytes` (or one message)."""
    window: list[Outgoing] = []
    size = 0
    for message in messages:
        length = len(message.data)
        if window and (size + length > window_bytes or len(window) == _WINDOW_MESSAGES):
            yield tuple(window)
            window, size = [], 0
        window.append(message)
        size += length
    if window:
        yield tuple(window)
