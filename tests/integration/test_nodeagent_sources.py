"""The node agent with a sources file, on a real bus."""

from __future__ import annotations

import asyncio
from pathlib import Path

from contracts.ids import NodeName
from runtime.bus.bus import Bus
from tests.lab.nats_server import LabServer
from tests.lab.node_agents import NODES, health_of, inventory_of, unhealthy
from tests.lab.services import Process, eventually, running

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
