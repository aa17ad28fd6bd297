"""Publishing against a real nats-server."""

from __future__ import annotations

import asyncio
import time

import pytest
import zstandard

from contracts.streams import STREAMS, Stream
from contracts.topics import INVENTORIES
from runtime.bus import connection as bus_connection
from runtime.bus.bus import Bus
from runtime.bus.jetstream import StreamInfo, call
from runtime.bus.subscription import Delivery
from runtime.errors import (
    BusFullError,
    BusUnavailableError,
    MessageError,
    PublishRefusedError,
)
from runtime.wire import BusSettings, Outgoing
from tests.lab.nats_server import LabServer

FENCE = "fence.v1.c"
HOSTILE = (
    {"Nats-Rollup": "all"},
    {"Nats-TTL": "1"},
    {"Nats-Schedule": "@at 2020-01-01T00:00:00Z", "Nats-Schedule-Target": "{}"},
)


def dec(number: int) -> Outgoing:
    return Outgoing(subject=f"dec.v1.c.n.{number}", data=b"%d" % number)


async def test_what_was_published_is_read_back(bus: Bus) -> None:
    """A write is seen by the next read, with its bytes, headers and sequence."""
    subject = "state.v1.c.node.a"
    sequence = await bus.publish(
        Outgoing(subject=subject, data=b"a" * 9000, zstd=True, headers={"Kind": "x"})
    )

    stored = await bus.last("STATE", subject)

    assert stored is not None
    assert (stored.data, stored.sequence) == (b"a" * 9000, sequence)
    assert stored.headers["Kind"] == "x"
    assert abs(stored.time_s - time.time()) < 60
    assert await bus.last("STATE", "state.v1.c.node.b") is None


async def test_a_taken_write_once_subject_is_refused(bus: Bus) -> None:
    """The first submission stays."""
    await bus.publish(Outgoing(subject="submit.v1.c.n.u", data=b"first"))

    with pytest.raises(PublishRefusedError) as refused:
        await bus.publish(Outgoing(subject="submit.v1.c.n.u", data=b"second"))

    assert refused.value.kind == "exists"
    stored = await bus.last("SUBMIT", "submit.v1.c.n.u")
    assert stored is not None
    assert stored.data == b"first"


async def test_a_stale_expectation_is_refused(bus: Bus) -> None:
    """Compare and set: only who knows the last sequence may write."""
    epoch = await bus.publish(
        Outgoing(subject=FENCE, data=b"1", expected_last_subject_sequence=0)
    )

    for expected in (0, epoch + 7):
        with pytest.raises(PublishRefusedError) as refused:
            await bus.publish(
                Outgoing(
                    subject=FENCE, data=b"2", expected_last_subject_sequence=expected
                )
            )
        assert refused.value.kind == "stale"


async def test_a_batch_behind_a_stale_fence_stores_nothing(bus: Bus) -> None:
    """A deposed leader's batch leaves no trace; the leader's is stored whole."""
    epoch = await bus.publish(Outgoing(subject=FENCE, data=b"1"))
    batch = [dec(number) for number in range(998)]

    def fenced(expected: int) -> list[Outgoing]:
        fence = Outgoing(
            subject=FENCE, data=b"", expected_last_subject_sequence=expected
        )
        return [fence, *batch]

    with pytest.raises(PublishRefusedError) as refused:
        await bus.publish_batch(fenced(epoch + 1))
    assert refused.value.kind == "stale"
    assert await bus.last("DEC", "dec.v1.c.n.0") is None
    assert await bus.last("DEC", "dec.v1.c.n.997") is None

    sequence = await bus.publish_batch(fenced(epoch))

    stored = await bus.last("DEC", "dec.v1.c.n.997")
    assert stored is not None
    assert stored.sequence == sequence == epoch + 999


@pytest.mark.parametrize("count", [0, 1001])
async def test_a_batch_has_one_to_a_thousand_messages(bus: Bus, count: int) -> None:
    """Other sizes are refused before anything is sent."""
    with pytest.raises(PublishRefusedError):
        await bus.publish_batch([dec(number) for number in range(count)])


@pytest.mark.parametrize("count", [1, 2, 3, 1000])
async def test_a_batch_gives_the_sequence_of_its_last(bus: Bus, count: int) -> None:
    """The first sequence follows from it."""
    sequence = await bus.publish_batch([dec(number) for number in range(count)])

    assert sequence == count


async def test_many_are_stored_in_windows(bus: Bus) -> None:
    """Every message is stored, however small the window."""
    messages = [
        Outgoing(subject=f"state.v1.c.k.{n}", data=b"x" * 1000) for n in range(700)
    ]

    await bus.publish_many(messages, window_bytes=10_000)

    stored = await bus.last("STATE", "state.v1.c.k.699")
    assert stored is not None
    assert stored.sequence == 700


async def test_many_name_the_refused_message(bus: Bus) -> None:
    """A refusal is an error also in a crowd."""
    taken = Outgoing(subject="submit.v1.c.n.u", data=b"")
    await bus.publish(taken)

    with pytest.raises(PublishRefusedError, match=r"submit\.v1\.c\.n\.u"):
        await bus.publish_many([Outgoing(subject="submit.v1.c.n.w", data=b""), taken])


async def test_an_oversized_message_costs_nobody_the_connection(bus: Bus) -> None:
    """It is refused here; the server would hang up."""
    with pytest.raises(PublishRefusedError, match="more than"):
        await bus.publish(Outgoing(subject="state.v1.c.k.x", data=bytes(9 << 20)))

    await bus.publish(Outgoing(subject="state.v1.c.k.x", data=bytes(1 << 20)))
    assert bus.connection == 1


async def test_an_illegal_subject_is_refused(bus: Bus) -> None:
    """Blanks never reach the wire."""
    with pytest.raises(PublishRefusedError):
        await bus.publish(Outgoing(subject="state.v1.c d", data=b""))


async def test_a_subject_of_no_stream_is_unavailable(
    bus: Bus, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody stores it, which may change: it is retried, then given up."""
    monkeypatch.setattr("runtime.retry.ATTEMPTS", 2)

    with pytest.raises(BusUnavailableError, match="nobody listens"):
        await bus.publish(Outgoing(subject="nobody.v1.c", data=b""))


@pytest.mark.parametrize("declared", [True, False])
async def test_a_zstd_bomb_is_refused(bus: Bus, declared: bool) -> None:
    """Neither a declared nor a hidden size over the limit is unpacked."""
    bomb = bytes(INVENTORIES.max_bytes + 1)
    if declared:
        body = zstandard.ZstdCompressor().compress(bomb)
    else:
        packer = zstandard.ZstdCompressor().compressobj()
        body = packer.compress(bomb) + packer.flush()
    subject = "inv.v1.c.node"
    await bus.publish(
        Outgoing(subject=subject, data=body, headers={"Content-Encoding": "zstd"})
    )

    with pytest.raises(MessageError):
        await bus.last("INV", subject)

    stop = asyncio.Event()
    async for page in bus.follow("INV", ["inv.v1.>"], stop):
        assert page.messages == ()
        if page.synced:
            stop.set()


async def test_streams_are_ensured_by_many_at_once(nats_server: LabServer) -> None:
    """Whoever comes first creates them; nobody fails, then or later."""
    settings = BusSettings(name="a", servers=(nats_server.url,))
    async with Bus.open(settings) as one, Bus.open(settings) as other:
        await asyncio.gather(one.ensure_streams(), other.ensure_streams())
        await one.ensure_streams()


@pytest.mark.parametrize("stream", [stream.name for stream in STREAMS])
@pytest.mark.parametrize("hostile", HOSTILE, ids=lambda headers: next(iter(headers)))
async def test_no_header_removes_what_others_sent(
    bus: Bus, stream: str, hostile: dict[str, str]
) -> None:
    """A sender of one subject must not remove or write the others."""
    subject = next(s.subjects[0] for s in STREAMS if s.name == stream)
    place = f"{subject.removesuffix('.>')}.c.n.x"
    await bus.publish(Outgoing(subject=f"{place}1", data=b"kept"))
    headers = {name: text.format(f"{place}1") for name, text in hostile.items()}

    with pytest.raises(PublishRefusedError):
        await bus.publish(Outgoing(subject=f"{place}2", data=b"", headers=headers))

    kept = await bus.last(stream, f"{place}1")
    assert kept is not None
    assert kept.data == b"kept"
    assert await bus.last(stream, f"{place}2") is None


async def test_no_stream_of_the_server_allows_rollups_or_times_to_live(
    bus: Bus,
) -> None:
    """The server's own answer: it allows more than it was asked for, at times."""
    connection = bus._connection
    for stream in STREAMS:
        info = await call(connection, f"STREAM.INFO.{stream.name}", None, StreamInfo)
        allowed = {
            name
            for name in ("allow_rollup_hdrs", "allow_msg_ttl", "allow_msg_schedules")
            if info.config.get(name)
        }
        assert (stream.name, allowed) == (stream.name, set())


async def test_a_heartbeat_is_small(bus: Bus) -> None:
    """They are in memory, which one sender must not fill."""
    (beats,) = (stream for stream in STREAMS if stream.name == "HB")
    large = bytes(beats.max_message_bytes + 1)

    with pytest.raises(PublishRefusedError, match="maximum"):
        await bus.publish(Outgoing(subject="hb.v1.c.n", data=large))

    assert 0 < beats.max_bytes <= 64 << 20


async def test_purge_removes_one_subject(bus: Bus) -> None:
    """The others stay."""
    await bus.publish_many([dec(1), dec(2)])

    await bus.purge("DEC", "dec.v1.c.n.1")

    assert await bus.last("DEC", "dec.v1.c.n.1") is None
    assert await bus.last("DEC", "dec.v1.c.n.2") is not None


async def test_decisions_are_republished_to_subscribers(bus: Bus) -> None:
    """A subscriber needs no stream and gets subject and sequence all the same."""
    stop = asyncio.Event()
    messages = await bus.subscribe("evt.dec.v1.>", stop)
    await bus.publish_batch([dec(1), dec(2)])

    seen = []
    async for message in messages:
        seen.append((message.subject, message.data, message.sequence))
        if len(seen) == 2:
            stop.set()

    assert seen == [("dec.v1.c.n.1", b"1", 1), ("dec.v1.c.n.2", b"2", 2)]


async def test_an_answer_that_was_lost_is_not_taken_for_a_refusal(
    bus: Bus, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stored, the answer lost, retried: the refusal is about our own message."""
    request = bus_connection.Connection.request
    lost = ["fence.v1.c", "submit.v1.c.n.u"]

    async def lossy(
        self: bus_connection.Connection, subject: str, *args: object, **named: object
    ) -> Delivery:
        reply = await request(self, subject, *args, **named)  # type: ignore[arg-type] # passed through
        if subject in lost:
            lost.remove(subject)
            raise BusUnavailableError(subject, "the answer was lost")
        return reply

    monkeypatch.setattr(bus_connection.Connection, "request", lossy)

    fence = Outgoing(subject=FENCE, data=b"me", expected_last_subject_sequence=0)
    assert await bus.publish(fence) == 1
    assert await bus.publish(Outgoing(subject="submit.v1.c.n.u", data=b"me")) == 1
    assert lost == []


async def test_many_of_which_the_answers_were_lost_are_not_refused(
    bus: Bus, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first time they are in flight together, then each on its own."""
    answer = bus_connection.Connection.answer
    subjects = [f"submit.v1.c.n.{number}" for number in range(3)]
    lost = list(subjects)

    async def lossy(
        self: bus_connection.Connection, subject: str, *args: object
    ) -> Delivery:
        reply = await answer(self, subject, *args)  # type: ignore[arg-type] # passed through
        if subject in lost:
            lost.remove(subject)
            raise BusUnavailableError(subject, "the answer was lost")
        return reply

    monkeypatch.setattr(bus_connection.Connection, "answer", lossy)
    messages = [Outgoing(subject=subject, data=b"me") for subject in subjects]

    assert await bus.publish_many(messages) == 3
    assert lost == []


@pytest.mark.parametrize("together", [True, False])
async def test_nobody_waits_for_the_answers_of_what_was_given_up(
    nats_server: LabServer, monkeypatch: pytest.MonkeyPatch, *, together: bool
) -> None:
    """A server that stores nothing, as one without room, costs nobody memory."""
    monkeypatch.setattr("runtime.retry.ATTEMPTS", 2)
    settings = BusSettings(name="a", servers=(nats_server.url,), request_timeout_s=0.2)
    async with Bus.open(settings) as bus:
        await bus.ensure_streams()
        many = [dec(number) for number in range(20)]
        nats_server.pause()
        try:
            with pytest.raises(BusUnavailableError):
                await (bus.publish_batch(many) if together else bus.publish_many(many))
        finally:
            nats_server.resume()
        await asyncio.sleep(0)
        assert bus.connection == 1
        assert not bus._connection._pending._futures


async def test_a_full_stream_is_not_one_that_has_the_message(bus: Bus) -> None:
    """The server gives both the same code; who submits must not believe it stored."""
    subject = "submit.v1.small.n"
    await bus.publish(Outgoing(subject=f"{subject}.u", data=b"x"))
    again = Outgoing(subject=f"{subject}.u", data=b"y")
    with pytest.raises(PublishRefusedError) as refused:
        await bus.publish(again)
    assert refused.value.kind == "exists"
    small = Stream(
        name="SMALL",
        subjects=("small.v1.>",),
        per_subject=1,
        write_once=True,
        max_bytes=512,
    )
    await bus.ensure_streams([small])
    large = Outgoing(subject="small.v1.a", data=bytes(1024))
    with pytest.raises(BusFullError, match="not stored, the bus has no room: maximum"):
        await bus.publish(large)
    with pytest.raises(BusFullError):
        await bus.publish_many([large])
