"""Bytes by their digest, kept as compressed chunks in the stream BLOB.

Each chunk is compressed by itself, so writers with other compressors still write
chunks that fit together. The last one is written last, under the name `ok`, and says
how many are before it; so most blobs are one message.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterable, Mapping, Sequence

from contracts.topics import BLOBS, DAY_S
from runtime.bus import publishing
from runtime.bus.connection import Connection
from runtime.bus.jetstream import read_last_message, read_server_time
from runtime.bus.subscription import Delivery
from runtime.errors import (
    BlobCorruptedError,
    BlobMissingError,
    BusUnavailableError,
    MessageError,
)
from runtime.wire import Outgoing, Received, unpack

STREAM = BLOBS.stream
CHUNK_BYTES = 512 << 10
CHUNKS_BEFORE = "Moorings-Chunks-Before"
"""Header of the last chunk: how many chunks are before it."""
_WINDOW = 16
_MOST_DIGITS = 6
"""Of a number of chunks: half a terabyte."""
_FEW = 12
"""Messages that are written each by itself: a batch waits for the disk even where the
server does not wait for it with each message."""
_YOUNG_S = 5 * DAY_S
"""An older blob is written again, so that it outlives the manifests that name it."""


def _last_subject(sha256: str) -> str:
    return BLOBS.subject(sha256, "ok")


async def put(connection: Connection, data: bytes) -> str:
    """Keep bytes; see `Bus.put_blob`."""
    sha256 = hashlib.sha256(data).hexdigest()
    stored = await _find_last(connection, sha256)
    if stored is not None and _is_last_of(stored, _cut_chunks(data)):
        now_s = await read_server_time(connection, STREAM)
        if now_s - stored.time_s < _YOUNG_S:
            return sha256
    await _write_chunks(connection, {sha256: data})
    return sha256


async def _find_last(connection: Connection, sha256: str) -> Received | None:
    """Look the last chunk up; None: it is not there, or not readable."""
    try:
        return await read_last_message(connection, STREAM, _last_subject(sha256))
    except MessageError:
        return None


def _is_last_of(stored: Received, chunks: Sequence[bytes]) -> bool:
    count = stored.headers.get(CHUNKS_BEFORE)
    return stored.data == chunks[-1] and count == str(len(chunks) - 1)


async def put_new(connection: Connection, blobs: Iterable[tuple[str, bytes]]) -> None:
    """Keep bytes that are hardly there yet; see `Bus.put_new_blobs`."""
    window: dict[str, bytes] = {}
    size = 0
    for sha256, data in blobs:
        window[sha256] = data
        size += len(data)
        if size >= _WINDOW * CHUNK_BYTES:
            await _write_chunks(connection, window)
            window, size = {}, 0
    await _write_chunks(connection, window)


async def _write_chunks(connection: Connection, blobs: Mapping[str, bytes]) -> None:
    """Store all chunks, and then the last ones; `blobs` by their digests."""
    chunks, last_chunks = list[Outgoing](), list[Outgoing]()
    for sha256, data in blobs.items():
        *before, last = _cut_chunks(data)
        chunks.extend(
            Outgoing(subject=BLOBS.subject(sha256, str(index)), data=chunk, zstd=True)
            for index, chunk in enumerate(before)
        )
        last_chunks.append(
            Outgoing(
                subject=_last_subject(sha256),
                data=last,
                zstd=True,
                headers={CHUNKS_BEFORE: str(len(before))},
            )
        )
    together = len(chunks) + len(last_chunks) > _FEW
    for messages in (chunks, last_chunks):
        await publishing.publish_many(
            connection, messages, _WINDOW * CHUNK_BYTES, together=together
        )


async def get(connection: Connection, sha256: str) -> bytes:
    """Read bytes back; see `Bus.get_blob`."""
    try:
        last = await read_last_message(connection, STREAM, _last_subject(sha256))
    except MessageError as error:
        raise BlobCorruptedError(sha256, error.reason) from error
    if last is None:
        raise BlobMissingError(sha256)
    count = last.headers.get(CHUNKS_BEFORE, "")
    if not (count.isascii() and count.isdigit()) or len(count) > _MOST_DIGITS:
        reason = f"header {CHUNKS_BEFORE} is {count!r}, not a number of chunks"
        raise BlobCorruptedError(sha256, reason)
    parts: list[bytes] = []
    for begin in range(0, int(count), _WINDOW):
        window = range(begin, min(begin + _WINDOW, int(count)))
        parts.extend(await _read_chunks(connection, sha256, window))
    data = b"".join((*parts, last.data))
    if hashlib.sha256(data).hexdigest() != sha256:
        raise BlobCorruptedError(sha256, "the stored bytes have another digest")
    return data


async def _read_chunks(
    connection: Connection, sha256: str, window: Sequence[int]
) -> list[bytes]:
    names = [BLOBS.subject(sha256, str(index)) for index in window]
    sent: list[asyncio.Future[Delivery] | None] = []
    for name in names:
        try:
            subject = connection.api_subject(f"DIRECT.GET.{STREAM}.{name}")
            sent.append(await connection.send(subject, b""))
        except BusUnavailableError:
            sent.append(None)
    return [
        await _read_chunk(connection, sha256, name, future)
        for name, future in zip(names, sent, strict=True)
    ]


async def _read_chunk(
    connection: Connection,
    sha256: str,
    name: str,
    sent: asyncio.Future[Delivery] | None,
) -> bytes:
    try:
        if sent is not None:
            delivery = await connection.answer(name, sent)
            if not delivery.status:
                return unpack(name, delivery.data, delivery.headers, 0, 0.0).data
    except BusUnavailableError:
        pass
    except MessageError as error:
        raise BlobCorruptedError(sha256, error.reason) from error
    return await _read_chunk_of_leader(connection, sha256, name)


async def _read_chunk_of_leader(
    connection: Connection, sha256: str, name: str
) -> bytes:
    """Read a chunk that the nearest replica does not have, or not yet."""
    try:
        stored = await read_last_message(connection, STREAM, name)
    except MessageError as error:
        raise BlobCorruptedError(sha256, error.reason) from error
    if stored is None:
        raise BlobMissingError(sha256)
    return stored.data


def _cut_chunks(data: bytes) -> list[bytes]:
    """Cut into chunks: one at least."""
    begins = range(0, max(len(data), 1), CHUNK_BYTES)
    return [data[begin : begin + CHUNK_BYTES] for begin in begins]
