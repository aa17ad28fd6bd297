"""Reads back what was sent of this agent's nodes before it started.

So that a restart raises no generation and clears no taint. Once only: afterwards the
agent's own state is newer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from contracts.ids import ClusterName, NodeName
from contracts.messages import DevicesAnnounced
from contracts.topics import HEALTH, INVENTORIES
from nodeagent.agent_state import AgentState
from runtime.bus.bus import Bus
from runtime.log import get_logger
from runtime.refusals import Refusals

_NODES_AT_ONCE = 64

log = get_logger(__name__)


async def restore_state(
    bus: Bus,
    state: AgentState,
    cluster: ClusterName,
    nodes: tuple[NodeName, ...],
    stop: asyncio.Event,
    *,
    recall: Callable[[DevicesAnnounced], None] | None = None,
) -> None:
    """Fill the state with the last messages about these nodes; tell the source, too.

    Asks for each by its subject, which needs no consumer. What cannot be read is
    logged and counts as never sent.

    Raises:
        BusError: the streams are not there, or not allowed.
    """
    refusals = Refusals()

    async def restore(node: NodeName) -> bool:
        inventory = None
        with refusals.guard(INVENTORIES.subject(cluster, node)):
            inventory = await bus.read_last(INVENTORIES, cluster, node)
            if inventory is not None and inventory.message is not None:
                state.restore_inventory(inventory.message)
                if recall is not None:
                    recall(inventory.message)
        with refusals.guard(HEALTH.subject(cluster, node)):
            health = await bus.read_last(HEALTH, cluster, node)
            if health is not None and health.message is not None:
                state.restore_health(health.message)
        return inventory is not None

    restored_count = 0
    for begin in range(0, len(nodes), _NODES_AT_ONCE):
        if stop.is_set():
            return
        some = nodes[begin : begin + _NODES_AT_ONCE]
        restored_count += sum(await asyncio.gather(*map(restore, some)))
    log.info("announcements.recalled", node_count=restored_count)
