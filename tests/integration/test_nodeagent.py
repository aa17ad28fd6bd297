"""The node agent on a real bus: announces, judges, beats, restarts, reconnects."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import time
from pathlib import Path

import pytest

from contracts import topics
from runtime.bus.bus import Bus
from runtime.errors import BusError
from tests.lab.nats_server import LabServer
from tests.lab.node_agents import (
    FLEET,
    NODES,
    Agent,
    health_of,
    inventory_of,
    unhealthy,
)
from tests.lab.services import CLUSTER, eventually, running


async def sequences(bus: Bus) -> list[int]:
    """Give where in their streams the last messages of all nodes are."""
    found = [
        await bus.last(topic.stream, topic.subject(CLUSTER, node))
        for topic in (topics.INVENTORIES, topics.HEALTH)
        for node in NODES
    ]
    return [message.sequence for message in found if message is not None]


async def all_said(bus: Bus) -> bool:
    return len(await sequences(bus)) == 2 * len(NODES)


async def test_every_node_is_announced_whole(
    bus: Bus, nats_server: LabServer, tmp_path: Path
) -> None:
    async with running(Agent(nats_server.url, tmp_path)):
        await eventually(lambda: all_said(bus), "all nodes announced")
        for node in NODES:
            found = await inventory_of(bus, node)
            assert found is not None
            (pool,) = found.pools
            assert (str(pool.name), pool.generation) == (str(node), 1)
            assert [device.name for device in pool.devices] == [
                f"gpu-{index}" for index in range(4)
            ]


async def test_one_node_alone_speaks_for_itself(
    bus: Bus, nats_server: LabServer, tmp_path: Path
) -> None:
    async with running(Agent(nats_server.url, tmp_path, NODEAGENT_NODE="n-1")):
        await eventually(lambda: health_of(bus, NODES[1]), "n-1 announced")
        assert await inventory_of(bus, NODES[1]) is not None
        assert await inventory_of(bus, NODES[0]) is None


async def test_a_fault_is_on_the_bus_within_a_second_and_goes_again(
    bus: Bus, nats_server: LabServer, tmp_path: Path
) -> None:
    agent = Agent(nats_server.url, tmp_path, NODEAGENT_RECOVERY_S="0.5")
    async with running(agent):
        await eventually(lambda: all_said(bus), "all nodes announced")
        agent.inject("{node: n-1, device: gpu-2, verdict: Unhealthy, message: hot}")
        began_s = time.time()
        await eventually(lambda: unhealthy(bus, NODES[1]), "a device is unhealthy")
        stored = await bus.last("HEALTH", topics.HEALTH.subject(CLUSTER, NODES[1]))
        assert stored is not None
        assert stored.time_s - began_s < 1.0
        (item,) = topics.HEALTH.codec.decode(stored.data).devices
        assert (item.device.device, item.message) == ("gpu-2", "hot")
        assert [taint.effect for taint in item.taints] == ["NoSchedule"]
        assert await unhealthy(bus, NODES[0]) == []

        agent.inject("")

        async def recovered() -> bool:
            return await unhealthy(bus, NODES[1]) == []

        await eventually(recovered, "the device is healthy again")


async def test_a_removed_device_raises_the_generation_of_its_pool_alone(
    bus: Bus, nats_server: LabServer, tmp_path: Path
) -> None:
    agent = Agent(nats_server.url, tmp_path)
    async with running(agent):
        await eventually(lambda: all_said(bus), "all nodes announced")
        agent.inject("{node: n-0, device: gpu-0, verdict: Removed}")

        async def generations() -> list[int]:
            found = [await inventory_of(bus, node) for node in NODES]
            return [item.pools[0].generation for item in found if item is not None]

        async def risen() -> bool:
            return await generations() == [2, 1, 1]

        await eventually(risen, "a new generation")


async def test_heartbeats_end_with_the_agent(
    bus: Bus, nats_server: LabServer, tmp_path: Path
) -> None:
    """What is left of them is not repeated by anybody."""
    agent = Agent(nats_server.url, tmp_path, NODEAGENT_HEARTBEAT_S="0.2")

    async def beats() -> list[int]:
        subjects = [topics.HEARTBEATS.subject(CLUSTER, node) for node in NODES]
        found = [await bus.last("HB", subject) for subject in subjects]
        return [0 if beat is None else beat.sequence for beat in found]

    async with running(agent):

        async def twice() -> bool:
            return min(await beats()) > len(NODES)

        await eventually(twice, "every node repeats its heartbeat")
        agent.kill()
        assert agent.wait() != 0
        last = await beats()
    assert await beats() == last


async def test_a_node_that_is_away_stops_its_heartbeat_alone(
    bus: Bus, nats_server: LabServer, tmp_path: Path
) -> None:
    agent = Agent(nats_server.url, tmp_path, NODEAGENT_HEARTBEAT_S="0.5")
    agent.inject("{node: n-2, verdict: Away, at: 1s}")
    async with running(agent):

        async def presence() -> list[bool]:
            """A second and a half apart, three heartbeats: who sent one meanwhile."""
            subjects = [topics.HEARTBEATS.subject(CLUSTER, node) for node in NODES]
            before = [await bus.last("HB", subject) for subject in subjects]
            await asyncio.sleep(1.5)
            after = [await bus.last("HB", subject) for subject in subjects]
            return [
                new is not None and (old is None or old.sequence != new.sequence)
                for old, new in zip(before, after, strict=True)
            ]

        async def everybody() -> bool:
            return await presence() == [True, True, True]

        async def but_one() -> bool:
            return await presence() == [True, True, False]

        await eventually(everybody, "all nodes are alive")
        await eventually(but_one, "one node is away")


async def test_a_restart_says_nothing_that_was_said_before(
    bus: Bus, nats_server: LabServer, tmp_path: Path
) -> None:
    """Generations and taints outlive the process; a clean stop exits with 0."""
    agent = Agent(nats_server.url, tmp_path, NODEAGENT_REPEAT_S="10000")
    agent.inject("{node: n-1, device: gpu-2, verdict: Unhealthy}")
    async with running(agent):
        await eventually(lambda: all_said(bus), "all nodes announced")
        await eventually(lambda: unhealthy(bus, NODES[1]), "a device is unhealthy")
        before = await sequences(bus)
        assert agent.stop() == 0
        agent.start()

        async def started_again() -> bool:
            return agent.log().count("announcements.recalled") == 2

        await eventually(started_again, "the agent is back")
        await asyncio.sleep(0.5)
        assert await sequences(bus) == before
        agent.inject("{node: n-1, device: gpu-3, verdict: Removed}")

        async def risen() -> bool:
            found = await inventory_of(bus, NODES[1])
            return found is not None and found.pools[0].generation == 2

        await eventually(risen, "the generation goes on from there")


async def test_everything_is_said_again_after_a_reconnect(
    bus: Bus, nats_server: LabServer, tmp_path: Path
) -> None:
    agent = Agent(nats_server.url, tmp_path)
    async with running(agent):
        await eventually(lambda: all_said(bus), "all nodes announced")
        before = await sequences(bus)
        connection = bus.connection
        nats_server.kill()
        nats_server.start()

        async def reconnected() -> bool:
            return bus.connected and bus.connection > connection

        await eventually(reconnected, "we are connected again")

        async def said_again() -> bool:
            now = await sequences(bus)
            return min(now[:3]) > max(before[:3]) and min(now[3:]) > max(before[3:])

        await eventually(said_again, "everything is said again")

        async def beats() -> bool:
            subject = topics.HEARTBEATS.subject(CLUSTER, NODES[0])
            return await bus.last(topics.HEARTBEATS.stream, subject) is not None

        # Heartbeats are kept in memory; the next is due within its interval.
        await eventually(beats, "it beats again")


async def test_a_server_that_forgot_everything_hears_everything_again(
    bus: Bus, nats_server: LabServer, tmp_path: Path
) -> None:
    """The bus can be rebuilt from the nodes, streams included."""
    async with running(Agent(nats_server.url, tmp_path)):
        await eventually(lambda: all_said(bus), "all nodes announced")
        nats_server.kill()
        shutil.rmtree(nats_server.store_dir / "data")
        nats_server.start()

        async def said_again() -> bool:
            with contextlib.suppress(BusError):
                return await all_said(bus)
            return False

        await eventually(said_again, "everything is said again")


@pytest.mark.parametrize("stream", ["INV", "HEALTH"])
async def test_what_the_bus_lost_is_said_again_by_itself(
    bus: Bus, nats_server: LabServer, tmp_path: Path, stream: str
) -> None:
    """Also for who starts later and knows no device, or no sick one: no reconnect."""
    agent = Agent(nats_server.url, tmp_path, NODEAGENT_VERIFY_S="0.2")
    async with running(agent):
        await eventually(lambda: all_said(bus), "all nodes announced")
        await bus.purge(stream, f"{stream.lower()}.>")
        await eventually(lambda: all_said(bus), "all nodes announced again")
        assert '"announcements.lost"' in agent.log()
        inventory = await inventory_of(bus, NODES[0])
        assert inventory is not None
        assert inventory.pools[0].generation == 1


async def test_what_changed_while_the_bus_was_away_is_said_when_it_is_back(
    bus: Bus, nats_server: LabServer, tmp_path: Path
) -> None:
    agent = Agent(nats_server.url, tmp_path)
    async with running(agent):
        await eventually(lambda: all_said(bus), "all nodes announced")
        connection = bus.connection
        nats_server.kill()
        agent.inject("{node: n-0, device: gpu-1, verdict: Unhealthy}")

        async def judged() -> bool:
            return "device.judged" in agent.log()

        await eventually(judged, "the agent judges without a bus")
        nats_server.start()

        async def reconnected() -> bool:
            return bus.connected and bus.connection > connection

        await eventually(reconnected, "we are connected again")

        async def told() -> bool:
            return await unhealthy(bus, NODES[0]) == ["gpu-1"]

        await eventually(told, "the fault is on the bus")


async def test_a_broken_fleet_ends_the_agent_with_its_rule(tmp_path: Path) -> None:
    agent = Agent("nats://127.0.0.1:1", tmp_path)
    (tmp_path / "fleet.yaml").write_text(FLEET.replace("count: 3", "count: 0"))
    async with running(agent):
        assert agent.wait() == 2
        assert "nodes[0].count: must be at least 1" in agent.log()
        assert "Traceback" not in agent.log()


async def test_a_heartbeat_that_the_bus_would_forget_is_refused(tmp_path: Path) -> None:
    agent = Agent("nats://127.0.0.1:1", tmp_path, NODEAGENT_HEARTBEAT_S="3600")
    async with running(agent):
        assert agent.wait() == 2
        assert "NODEAGENT_HEARTBEAT_S" in agent.log()
