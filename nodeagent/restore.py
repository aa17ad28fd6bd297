"""Reads back what was sent of this agent's nodes before it started.

So that a restart raises no generation and clears no taint. Once only: afterwards the
agent's own state is newer.
"""

from __future__ import annotations

import asyncio

from contracts.ids import ClusterName, NodeName
from contracts.topics import HEALTH, INVENTORIES
from nodeagent.agent_state import AgentState
from runtime.bus.bus import Bus
from runtime.log import get_logger

log = get_logger(__name__)


async def restore_state(
    bus: Bus,
    state: AgentState,
    cluster: ClusterName,
    nodes: tuple[NodeName, ...],
    stop: asyncio.Event,
) -> None:
    """Fill the state with the last messages about these nodes.

    What cannot be read is logged and counts as never sent.
    """
    names = (cluster,) if len(nodes) > 1 else (cluster, nodes[0])
    restored_count = 0
    async for inventories in bus.read_existing(INVENTORIES, *names, stop=stop):
        for inventory in inventories.messages:
            if inventory.message is not None:
                state.restore_inventory(inventory.message)
                restored_count += 1
    async for verdicts in bus.read_existing(HEALTH, *names, stop=stop):
        for health in verdicts.messages:
            if health.message is not None:
                state.restore_health(health.message)
    log.info("announcements.recalled", node_count=restored_count)
