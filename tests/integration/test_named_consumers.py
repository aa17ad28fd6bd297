"""Readers from outside have consumers of certain names, which others may use as well.

Nobody uses up what services need, and a reader finds out what was done to its own.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from msgspec.structs import replace
from nats.aio.client import Client

from runtime.bus import consumer
from runtime.bus.bus import Bus
from runtime.bus.follower import follow
from runtime.bus.jetstream import call, purge
from runtime.errors import BusRefusedError, BusUnavailableError
from runtime.users import PLATFORM, VIEWER, api_prefix, consumer_names
from runtime.wire import Fetched
from tests.lab.secured_nats import SecuredNats
from tests.lab.seeded_bus import ANSWER_S, drop_consumer, make_consumer


@pytest.mark.parametrize("user", [VIEWER, PLATFORM])
async def test_who_reads_leaves_services_their_consumers(
    seeded: SecuredNats, user: str
) -> None:
    """It has those of its names and no more; those that are free, its readers use."""
    api, own = api_prefix(user), consumer_names(user)
    (other,) = {VIEWER, PLATFORM} - {user}
    others = ("any", f"{user}-{len(own)}", consumer_names(other)[0])
    async with (
        seeded.client(user) as client,
        _bus_of(seeded, user) as bus,
        _bus_of(seeded, "solver") as solver,
    ):
        for name in others:
            # By the subject; and by what its body says on a subject that is allowed.
            await client.publish(f"{api}.CONSUMER.CREATE.DEC.{name}", b"{}")
            await client.publish(f"{api}.CONSUMER.CREATE.DEC.{name}.>", b"{}")
            await make_consumer(client, api, "DEC", own[0], name=name)
        for legacy in ("CREATE.DEC", f"DURABLE.CREATE.DEC.{own[0]}"):
            await client.publish(f"{api}.CONSUMER.{legacy}", b"{}")
        for name in own:
            await make_consumer(client, api, "DEC", name)

        await _until_consumers(solver, len(own))
        all_used = f"all {len(own)} consumers of DEC for {user} are in use"
        with pytest.raises(BusRefusedError, match=all_used):
            await _read_decisions(bus)
        assert await _read_decisions(solver) == [b"kept"]

        for name in own[:16]:
            await drop_consumer(client, api, "DEC", name)
        readings = [_decisions(bus, asyncio.Event()) for _ in range(16)]
        await asyncio.gather(*map(anext, readings))
        await _until_consumers(solver, len(own))  # one each, and none is left
        await asyncio.gather(*(reading.aclose() for reading in readings))
        assert await _read_decisions(bus) == [b"kept"]
        for name in own[16:]:
            await drop_consumer(client, api, "DEC", name)
        await _until_consumers(solver, 0)


async def test_a_reader_finds_that_its_consumer_was_changed(
    seeded: SecuredNats, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It asks for what it missed, though later messages came."""
    monkeypatch.setattr(consumer, "_PULL_S", 1)
    monkeypatch.setattr(consumer, "_SURE_S", 0.0)
    api, stop = api_prefix(VIEWER), asyncio.Event()
    read: list[str] = []
    async with (
        _bus_of(seeded, VIEWER) as bus,
        _bus_of(seeded, "solver") as solver,
        seeded.client(VIEWER) as hostile,
        seeded.client("solver") as sender,
    ):

        async def interfere() -> None:
            (config,) = await _configs(hostile, api)
            config["filter_subject"] = "dec.v1.changed.shown.*"
            name = config.pop("name")
            await make_consumer(hostile, api, "DEC", name, action="update", **config)
            for name in ("hidden", "shown"):
                await sender.request(f"dec.v1.changed.{name}.g", timeout=ANSWER_S)

        subjects = ["dec.v1.changed.>"]
        pages = follow(bus._connection, "DEC", subjects, stop, "all")
        async with asyncio.timeout(60), asyncio.TaskGroup() as tasks:
            assert (await anext(pages)).synced
            tasks.create_task(interfere())
            async for page in pages:
                read += [message.subject.split(".")[3] for message in page.messages]
                if "hidden" in read and page.synced:
                    stop.set()
        await purge(solver._connection, "DEC", "dec.v1.changed.>")
        await _until_consumers(solver, 0)

    assert read[-2:] == ["hidden", "shown"]


async def test_a_reader_leaves_alone_whoever_has_its_name_now(
    seeded: SecuredNats, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was stopped for so long that the server ended its consumer."""
    monkeypatch.setattr(consumer, "_PULL_S", 1)
    monkeypatch.setattr(consumer, "_UNUSED_NAMED_S", 1)
    monkeypatch.setattr(consumer, "_SURE_S", 0.0)
    api = api_prefix(VIEWER)
    async with _bus_of(seeded, VIEWER) as bus, seeded.client(VIEWER) as client:
        late = consumer.Consumer(bus._connection, "DEC", lambda: None)
        await late.create(["dec.v1.none.>"], {"deliver_policy": "all"}, ANSWER_S)
        async with asyncio.timeout(60):
            while "config" in await _info(client, api, late.name):  # noqa: ASYNC110 # no event
                await asyncio.sleep(0.05)
        await make_consumer(client, api, "DEC", late.name)

        await late.pull()
        assert not late.usable
        await late.discard()

        info = await _info(client, api, late.name)
        assert info["num_waiting"] == 0
        await drop_consumer(client, api, "DEC", late.name)


async def test_who_got_no_answer_ends_nobodys_consumer(seeded: SecuredNats) -> None:
    """The name that it asked for may be another's."""
    api, own = api_prefix(VIEWER), consumer_names(VIEWER)
    async with (
        _bus_of(seeded, VIEWER) as bus,
        _bus_of(seeded, "solver") as solver,
        seeded.client(VIEWER) as client,
    ):
        for name in own:
            await make_consumer(client, api, "DEC", name)
        await _until_consumers(solver, len(own))
        unanswered = consumer.Consumer(bus._connection, "DEC", lambda: None)
        with pytest.raises(BusUnavailableError, match="no answer"):
            await unanswered.create(["dec.v1.>"], {}, 1e-9)
        await unanswered.discard()

        assert len(await _configs(client, api)) == len(own)
        for name in own:
            await drop_consumer(client, api, "DEC", name)


async def _configs(client: Client, api: str) -> list[dict[str, Any]]:
    """Read how the viewer's consumers of DEC were made; by guessing their names."""
    infos = [await _info(client, api, name) for name in consumer_names(VIEWER)]
    return [info["config"] for info in infos if "config" in info]


async def _info(client: Client, api: str, name: str) -> dict[str, Any]:
    subject = f"{api}.CONSUMER.INFO.DEC.{name}"
    answer = await client.request(subject, timeout=ANSWER_S)
    return dict(json.loads(answer.data))


@asynccontextmanager
async def _bus_of(seeded: SecuredNats, user: str) -> AsyncIterator[Bus]:
    settings = replace(seeded.settings(user), request_timeout_s=ANSWER_S)
    async with Bus.open(settings) as bus:
        await bus.wait_connected(ANSWER_S)
        yield bus


async def _consumers(bus: Bus) -> int:
    """Count those of DEC."""
    info = await call(bus._connection, "STREAM.INFO.DEC", None, dict[str, Any])
    return int(info["state"]["consumer_count"])


async def _until_consumers(bus: Bus, count: int) -> None:
    """The stream's leader hears a little later of what other servers have made."""
    async with asyncio.timeout(60):
        while await _consumers(bus) != count:  # noqa: ASYNC110 # no event
            await asyncio.sleep(0.05)


def _decisions(bus: Bus, stop: asyncio.Event) -> AsyncGenerator[Fetched, None]:
    """Read DEC by a consumer; who is refused one is told."""
    subjects = ["dec.v1.>"]
    return follow(
        bus._connection, "DEC", subjects, stop, "last_per_subject", patient=False
    )


async def _read_decisions(bus: Bus) -> list[bytes]:
    """Read what DEC holds."""
    stop = asyncio.Event()
    read: list[bytes] = []
    async for page in _decisions(bus, stop):
        read += [message.data for message in page.messages]
        if page.synced:
            stop.set()
    return read
