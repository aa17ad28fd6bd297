"""Content-addressed bytes on a real nats-server."""

from __future__ import annotations

import hashlib
import random
import time

import pytest

from contracts import topics
from runtime.bus.blobs import CHUNK_BYTES, CHUNKS_BEFORE
from runtime.bus.bus import Bus
from runtime.errors import BlobCorruptedError, BlobMissingError
from runtime.wire import Outgoing

LARGE = 20 << 20


@pytest.mark.parametrize("size", [0, 1, CHUNK_BYTES, CHUNK_BYTES + 1, LARGE], ids=str)
async def test_a_blob_comes_back(bus: Bus, size: int) -> None:
    """Whatever its size, under its digest."""
    data = random.Random(7).randbytes(size)  # bytes that do not compress

    sha256 = await bus.put_blob(data)

    assert sha256 == hashlib.sha256(data).hexdigest()
    assert await bus.get_blob(sha256) == data


async def test_a_blob_is_written_once(bus: Bus) -> None:
    """A second put finds the first and writes nothing."""
    sha256 = await bus.put_blob(b"same")
    before = await bus.last("BLOB", topics.BLOBS.subject(sha256, "ok"))

    assert await bus.put_blob(b"same") == sha256

    after = await bus.last("BLOB", topics.BLOBS.subject(sha256, "ok"))
    assert before is not None
    assert after == before


@pytest.mark.parametrize("more", [0, 600])
async def test_blobs_that_are_new_come_back(bus: Bus, more: int) -> None:
    """All of them, of any size, few or many; one that was there already as well."""
    blobs = [b"", b"same", bytes(2 * CHUNK_BYTES)]
    if more:
        blobs += [random.Random(7).randbytes(LARGE)]
        blobs += [b"%d" % number for number in range(more)]
    sha256 = await bus.put_blob(b"same")

    digests = [hashlib.sha256(data).hexdigest() for data in blobs]
    await bus.put_new_blobs(zip(digests, blobs, strict=True))

    assert sha256 in digests
    assert [await bus.get_blob(digest) for digest in digests] == blobs


async def test_a_blob_is_as_old_as_the_server_says(
    bus: Bus, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It expires by the server's clock; ours may be days away."""
    sha256 = await bus.put_blob(b"same")
    before = await bus.last("BLOB", topics.BLOBS.subject(sha256, "ok"))
    ahead_s = time.time() + 6 * topics.DAY_S
    monkeypatch.setattr(time, "time", lambda: ahead_s)

    await bus.put_blob(b"same")

    assert await bus.last("BLOB", topics.BLOBS.subject(sha256, "ok")) == before


async def test_a_blob_without_all_chunks_is_missing(bus: Bus) -> None:
    """A digest nobody wrote, and one whose chunk expired."""
    with pytest.raises(BlobMissingError):
        await bus.get_blob("0" * 64)

    for chunk in ("1", "ok"):
        sha256 = await bus.put_blob(bytes(3 * CHUNK_BYTES))
        await bus.purge("BLOB", topics.BLOBS.subject(sha256, chunk))
        with pytest.raises(BlobMissingError):
            await bus.get_blob(sha256)
        await bus.purge("BLOB", topics.BLOBS.subject(sha256, "ok"))


@pytest.mark.parametrize("chunk", ["0", "ok"])
@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Content-Encoding": "zstd"},
        {CHUNKS_BEFORE: "1"},
        {CHUNKS_BEFORE: "-1"},
        {CHUNKS_BEFORE: "9" * 5000},
    ],
)
async def test_other_bytes_under_a_digest_are_refused(
    bus: Bus, headers: dict[str, str], chunk: str
) -> None:
    """Readable or not: they are not what the digest says. Who writes it heals it."""
    data = bytes(2 * CHUNK_BYTES)
    sha256 = await bus.put_blob(data)
    subject = topics.BLOBS.subject(sha256, chunk)
    await bus.publish(Outgoing(subject=subject, data=b"other", headers=headers))

    with pytest.raises(BlobCorruptedError):
        await bus.get_blob(sha256)
    if chunk == "ok":
        await bus.put_blob(data)
        assert await bus.get_blob(sha256) == data
