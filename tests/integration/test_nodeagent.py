"""The node agent on a real bus: announces, judges, beats, restarts, reconnects."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import time
from pathlib import Path

from contracts import topics
from contracts.ids import NodeName
from contracts.messages import DevicesAnnounced, HealthJudged
from runtime.bus.bus import Bus
from runtime.errors import BusError
from tests.lab.nats_server import LabServer
from tests.lab.services import CLUSTER, Process, eventually, running

FLEET = """
apiVersion: moorings.dev/v1alpha1
kind: Fleet
name: test
nodes:
- shape: n
  count: 3
  devices:
  - {driver: gpu.example.com, count: 4, name: "gpu-{index}", numaNodes: 2}
"""
NODES = tuple(NodeName(f"n-{index}") for index in range(3))


class Agent(Process):
    """A node agent in a folder of its own."""

    def __init__(self, url: str, folder: Path, **variables: str) -> None:
        self._folder = folder
        (folder / "fleet.yaml").write_text(FLEET)
        super().__init__(
            "nodeagent",
            folder / "agent.log",
            NODEAGENT_SERVERS=url,
            NODEAGENT_FLEET=str(folder / "fleet.yaml"),
            NODEAGENT_FAULTS_FILE=str(folder / "faults.yaml"),
            **variables,
        )

    @property
    def is_running(self) -> bool:
        """Whether it has not ended yet."""
        return self._process is not None and self._process.poll() is None

    def wait(self) -> int:
        """Wait until it ends by itself; gives its exit code."""
        assert self._process is not None
        return self._process.wait(timeout=20)

    def inject(self, faults: str) -> None:
        """Replace the faults file."""
        new = self._folder / "faults.new"
        new.write_text(f"faults: [{faults}]")
        new.replace(self._folder / "faults.yaml")


async def inventory_of(bus: Bus, node: NodeName) -> DevicesAnnounced | None:
    found = await bus.last("INV", topics.INVENTORIES.subject(CLUSTER, node))
    return None if found is None else topics.INVENTORIES.codec.decode(found.data)


async def health_of(bus: Bus, node: NodeName) -> HealthJudged | None:
    found = await bus.last("HEALTH", topics.HEALTH.subject(CLUSTER, node))
    return None if found is None else topics.HEALTH.codec.decode(found.data)


async def unhealthy(bus: Bus, node: NodeName) -> list[str]:
    found = await health_of(bus, node)
    return [str(item.device.device) for item in found.devices] if found else []


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
        beat = await bus.last("HB", topics.HEARTBEATS.subject(CLUSTER, NODES[0]))
        assert beat is not None


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
        assert agent.wait() == 1
        assert "nodes[0].count: must be at least 1" in agent.log()
        assert "Traceback" not in agent.log()


async def test_a_heartbeat_that_the_bus_would_forget_is_refused(tmp_path: Path) -> None:
    agent = Agent("nats://127.0.0.1:1", tmp_path, NODEAGENT_HEARTBEAT_S="3600")
    async with running(agent):
        assert agent.wait() == 2
        assert "NODEAGENT_HEARTBEAT_S" in agent.log()


SOURCES = """
apiVersion: moorings.dev/v1alpha1
kind: Sources
sources:
- kind: counted
  name: dongles
  driver: dongle.example.com
  resources: [{{name: dongle, count: 2}}]
- kind: command
  name: disks
  driver: disk.example.com
  exec: [/bin/cat, {answer}]
  readSeconds: 0.2
"""


class SourcesAgent(Process):
    """The agent of the node n-0, with two sources."""

    def __init__(self, url: str, folder: Path, **variables: str) -> None:
        self.answer = folder / "answer.json"
        self.file = folder / "sources.yaml"
        self.file.write_text(SOURCES.format(answer=self.answer))
        super().__init__(
            "nodeagent",
            folder / "agent.log",
            NODEAGENT_SERVERS=url,
            NODEAGENT_SOURCES=str(self.file),
            NODEAGENT_NODE="n-0",
            **variables,
        )

    def says(self, text: str) -> None:
        """Replace what the command prints."""
        new = self.answer.with_suffix(".new")
        new.write_text(text)
        new.replace(self.answer)

    def wait(self) -> int:
        """Wait until it ends by itself; gives its exit code."""
        assert self._process is not None
        return self._process.wait(timeout=60)


async def pools_of(bus: Bus, node: NodeName) -> dict[str, list[str]]:
    """Give the names of the announced devices, by driver."""
    found = await inventory_of(bus, node)
    pools = found.pools if found is not None else ()
    return {str(p.driver): [str(d.name) for d in p.devices] for p in pools}


async def test_a_source_that_fails_is_silent_alone_also_over_a_restart(
    bus: Bus, nats_server: LabServer, tmp_path: Path
) -> None:
    """Its devices stay announced as Unknown; the other source's are as before."""
    both = {"disk.example.com": ["a"], "dongle.example.com": ["dongle-0", "dongle-1"]}
    agent = SourcesAgent(nats_server.url, tmp_path, NODEAGENT_UNKNOWN_AFTER_S="0.5")
    agent.says('{"devices": [{"name": "a"}]}')

    async def announced() -> bool:
        return await pools_of(bus, NODES[0]) == both

    async def silent() -> bool:
        found = await health_of(bus, NODES[0])
        return found is not None and [
            (item.device.device, item.verdict, item.reason) for item in found.devices
        ] == [("a", "Unknown", "SourceFailed")]

    async with running(agent):
        await eventually(announced, "both sources are announced")
        agent.says("nonsense")
        await eventually(silent, "the device of the broken source is Unknown")
        assert await announced()
        assert agent.stop() == 0
        agent.start()

        async def started_again() -> bool:
            return agent.log().count("announcements.recalled") == 2

        await eventually(started_again, "the agent is back")
        await asyncio.sleep(0.5)
        assert await announced()
        assert await silent()

        agent.says('{"devices": [{"name": "b"}]}')

        async def listed_anew() -> bool:
            pools = await pools_of(bus, NODES[0])
            return pools["disk.example.com"] == ["b"] and not await unhealthy(
                bus, NODES[0]
            )

        await eventually(listed_anew, "what the source lists now is announced")


async def test_only_a_listed_reason_evicts(
    bus: Bus, nats_server: LabServer, tmp_path: Path
) -> None:
    """The whole way from a command's words to the taint on the bus."""
    agent = SourcesAgent(
        nats_server.url, tmp_path, NODEAGENT_EVICT_REASONS="FellOff,Xid79"
    )
    sick = '{{"name": "{}", "health": {{"symptom": "Bad", "reason": "{}"}}}}'
    devices = ", ".join([sick.format("a", "FellOff"), sick.format("b", "Hot")])
    agent.says(f'{{"devices": [{devices}]}}')

    async def judged() -> bool:
        found = await health_of(bus, NODES[0])
        return found is not None and {
            item.device.device: item.taints[0].effect for item in found.devices
        } == {"a": "NoExecute", "b": "NoSchedule"}

    async with running(agent):
        await eventually(judged, "one device ends its pods, the other does not")


async def test_a_wrong_sources_file_ends_the_start(
    nats_server: LabServer, tmp_path: Path
) -> None:
    """With file, field and rule in the log."""
    agent = SourcesAgent(nats_server.url, tmp_path)
    agent.file.write_text(agent.file.read_text().replace("count: 2", "count: 0.5"))
    async with running(agent):
        assert agent.wait() != 0
        assert "sources[0].resources[0].count: 0.5: must be an integer" in agent.log()
