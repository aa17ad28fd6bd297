"""Node agents as processes, and what they said on the bus."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from contracts import topics
from contracts.ids import NodeName
from contracts.messages import DevicesAnnounced, HealthJudged
from runtime.bus.bus import Bus
from tests.lab.services import CLUSTER, Process

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
    """An agent of three simulated nodes in a folder of its own."""

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
        return self._process.wait(timeout=120)

    def inject(self, faults: str) -> None:
        """Replace the faults file."""
        new = self._folder / "faults.new"
        new.write_text(f"faults: [{faults}]")
        new.replace(self._folder / "faults.yaml")


def agent_of(
    url: str, folder: Path, node: NodeName, sources: list[dict[str, Any]]
) -> Process:
    """Make an agent of one node with some sources; its log is `agent.log`."""
    written = {
        "apiVersion": "moorings.dev/v1alpha1",
        "kind": "Sources",
        "sources": sources,
    }
    (folder / "sources.yaml").write_text(json.dumps(written))
    return Process(
        "nodeagent",
        folder / "agent.log",
        NODEAGENT_SERVERS=url,
        NODEAGENT_CLUSTER=CLUSTER,
        NODEAGENT_NODE=node,
        NODEAGENT_SOURCES=str(folder / "sources.yaml"),
    )


async def inventory_of(bus: Bus, node: NodeName) -> DevicesAnnounced | None:
    """Give what a node announced last."""
    found = await bus.last("INV", topics.INVENTORIES.subject(CLUSTER, node))
    return None if found is None else topics.INVENTORIES.codec.decode(found.data)


async def health_of(bus: Bus, node: NodeName) -> HealthJudged | None:
    """Give what a node said last of its health."""
    found = await bus.last("HEALTH", topics.HEALTH.subject(CLUSTER, node))
    return None if found is None else topics.HEALTH.codec.decode(found.data)


async def unhealthy(bus: Bus, node: NodeName) -> list[str]:
    """Give the devices of a node that are not healthy."""
    found = await health_of(bus, node)
    return [str(item.device.device) for item in found.devices] if found else []
