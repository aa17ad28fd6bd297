"""Two agents of one node: the newer one speaks on the bus, until it is gone."""

from __future__ import annotations

from pathlib import Path

from contracts.ids import NodeName
from contracts.messages import HeartbeatMessage, NodeSeen
from contracts.topics import HEARTBEATS
from runtime.bus.bus import Bus
from tests.lab.nats_server import LabServer
from tests.lab.services import CLUSTER, Process, eventually, running

FLEET = """
apiVersion: moorings.dev/v1alpha1
kind: Fleet
name: test
nodes:
- shape: n
  count: 1
  devices:
  - {driver: gpu.example.com, count: 1, name: "gpu-{index}"}
"""
NODE = NodeName("n-0")


def agent(url: str, folder: Path, name: str) -> Process:
    """Make an agent of the one node that beats often."""
    (folder / "fleet.yaml").write_text(FLEET)
    return Process(
        "nodeagent",
        folder / f"{name}.log",
        NODEAGENT_SERVERS=url,
        NODEAGENT_FLEET=str(folder / "fleet.yaml"),
        NODEAGENT_HEARTBEAT_S="0.2",
    )


async def speaker(bus: Bus) -> str:
    """Tell the incarnation of the last heartbeat; empty: there is none."""
    last = await bus.read_last(HEARTBEATS, CLUSTER, NODE)
    message: HeartbeatMessage | None = None if last is None else last.message
    return message.incarnation if isinstance(message, NodeSeen) else ""


async def test_the_older_agent_of_a_node_is_silent_while_a_newer_one_speaks(
    bus: Bus, nats_server: LabServer, tmp_path: Path
) -> None:
    """And goes on when the heartbeats of the newer one have run out."""
    older = agent(nats_server.url, tmp_path, "older")
    newer = agent(nats_server.url, tmp_path, "newer")
    async with running(older):
        await eventually(lambda: speaker(bus), "the older one speaks")
        first = await speaker(bus)
        async with running(newer):
            await eventually(
                lambda: '"voice.yielded"' in older.log(), "the older one yields"
            )
            second = await speaker(bus)
            assert second > first
            assert '"voice.yielded"' not in newer.log()
        # Killed: what it said last runs out, which takes longer than a test may.
        await bus.purge(HEARTBEATS.stream, HEARTBEATS.subject(CLUSTER, NODE))
        await eventually(
            lambda: '"voice.resumed"' in older.log(), "the older one goes on"
        )

        async def speaks_again() -> bool:
            return await speaker(bus) == first

        await eventually(speaks_again, "the older one speaks again")
