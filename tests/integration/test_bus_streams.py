"""Settings of streams on a real server: bounds, upgrades, and what a full one does."""

from __future__ import annotations

import hashlib
import random

import msgspec
import pytest
from msgspec.structs import replace

from contracts.streams import SETTINGS_VERSION, STREAMS, UNUSED_CONSUMER_S, Stream
from runtime.bus import streams
from runtime.bus.bus import Bus
from runtime.bus.jetstream import StreamInfo, call
from runtime.bus.subscription import Delivery
from runtime.errors import BlobMissingError, BusFullError, StreamDiffersError
from runtime.wire import Outgoing

MIB = 1 << 20


def stream(name: str) -> Stream:
    """Take a stream from the table."""
    (found,) = (stream for stream in STREAMS if stream.name == name)
    return found


async def settings(bus: Bus, name: str) -> dict[str, object]:
    """Read what the server has."""
    operation = f"STREAM.INFO.{name}"
    return (await call(bus._connection, operation, None, StreamInfo)).config


def decision(number: int, size: int = 1000) -> Outgoing:
    """Make what stands for a decision."""
    return Outgoing(subject=f"dec.v1.c.n.{number}", data=random.randbytes(size))


async def fill(bus: Bus) -> int:
    """Publish decisions until there is no room; returns how many were stored."""
    stored = 0
    try:
        while True:
            await bus.publish(decision(stored, 10_000))
            stored += 1
    except BusFullError:
        return stored


async def test_older_settings_are_brought_up_to_date(
    bus: Bus, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An upgrade changes streams that hold messages, and loses none of them."""
    newer = replace(stream("DEC"), per_subject=8, max_bytes=9 * MIB)
    await bus.publish(decision(1))

    monkeypatch.setattr(streams, "SETTINGS_VERSION", SETTINGS_VERSION + 1)
    await bus.ensure_streams([newer])

    found = await settings(bus, "DEC")
    assert (found["max_msgs_per_subject"], found["max_bytes"]) == (8, 9 * MIB)
    assert await bus.last("DEC", "dec.v1.c.n.1") is not None


async def test_streams_from_before_settings_had_a_version_are_updated(bus: Bus) -> None:
    """They have no bounds and no metadata."""
    wanted = await settings(bus, "BLOB")
    before = {**wanted, "metadata": {}, "max_bytes": -1}
    await call(bus._connection, "STREAM.UPDATE.BLOB", before, StreamInfo)
    assert (await settings(bus, "BLOB"))["max_bytes"] == -1

    await bus.ensure_streams()

    assert (await settings(bus, "BLOB"))["max_bytes"] == stream("BLOB").max_bytes


@pytest.mark.parametrize("stream", [stream.name for stream in STREAMS])
async def test_no_consumer_stays_that_nobody_uses(bus: Bus, stream: str) -> None:
    """Also a durable one: else whoever reads could use up the account's consumers."""
    create = f"CONSUMER.DURABLE.CREATE.{stream}.mine"
    wanted = {"durable_name": "mine", "ack_policy": "none"}

    async def ask(**more: object) -> Delivery:
        body = {"stream_name": stream, "config": {**wanted, **more}}
        connection = bus._connection
        data = msgspec.json.encode(body)
        return await connection.request(connection.api_subject(create), data)

    refused = await ask(inactive_threshold=86_400 * 10**9)
    assert b"inactive threshold" in refused.data
    made = msgspec.json.decode((await ask()).data)
    assert made["config"]["inactive_threshold"] == UNUSED_CONSUMER_S * 10**9


async def test_an_older_version_leaves_newer_settings(
    bus: Bus, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two versions beside each other do not change settings back and forth."""
    with monkeypatch.context() as newer:
        newer.setattr(streams, "SETTINGS_VERSION", SETTINGS_VERSION + 1)
        await bus.ensure_streams([replace(stream("DEC"), per_subject=8)])

    await bus.ensure_streams()

    assert (await settings(bus, "DEC"))["max_msgs_per_subject"] == 8


async def test_what_the_server_does_not_change_is_named(bus: Bus) -> None:
    """The stream, the setting, and the server's reason."""
    other = replace(stream("STATE"), storage="memory")

    with pytest.raises(StreamDiffersError, match="storage") as differs:
        await bus.ensure_streams([other])

    assert differs.value.stream == "STATE"
    assert differs.value.fields == ("storage",)


async def test_recording_never_stops_deciding(bus: Bus) -> None:
    """Records give up their oldest; what decisions need is not touched by it."""
    await bus.ensure_streams([replace(stream("BLOB"), max_bytes=2 * MIB)])
    await bus.publish(decision(1))
    blobs = [random.randbytes(MIB // 2) for _ in range(12)]

    for blob in blobs:
        await bus.put_blob(blob)
        await bus.publish(decision(2))

    assert await bus.get_blob(hashlib.sha256(blobs[-1]).hexdigest()) == blobs[-1]
    with pytest.raises(BlobMissingError):
        await bus.get_blob(hashlib.sha256(blobs[0]).hexdigest())
    assert await bus.last("DEC", "dec.v1.c.n.1") is not None


async def test_a_full_stream_loses_nothing_and_goes_on_when_there_is_room(
    bus: Bus,
) -> None:
    """What is not a record is refused, not dropped; the server needs no restart."""
    await bus.ensure_streams([replace(stream("DEC"), max_bytes=MIB // 4)])
    stored = await fill(bus)
    assert stored > 10
    assert await bus.last("DEC", "dec.v1.c.n.0") is not None

    await bus.purge("DEC", "dec.v1.c.n.0")
    await bus.publish(decision(stored, 5_000))

    await bus.ensure_streams([replace(stream("DEC"), max_bytes=MIB)])
    assert await fill(bus) > stored
