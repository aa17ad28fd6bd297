"""Reads back what was sent of this agent's nodes before it started.

So that a restart raises no generation and clears no taint. Once only: afterwards the
agent's own state is newer.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from contracts import messages, subjects
from contracts.errors import DecodeError
from contracts.ids import ClusterName, NodeName
from nodeagent.agent_state import AgentState
from runtime.bus.bus import Bus, Received
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
    inventory_subject, health_subject = (
        (subjects.wildcard("inv", cluster), subjects.wildcard("health", cluster))
        if len(nodes) > 1
        else (
            subjects.inventory(cluster, nodes[0]),
            subjects.health(cluster, nodes[0]),
        )
    )
    restored_count = 0
    async for received in _read_last(bus, "INV", inventory_subject, stop):
        try:
            state.restore_inventory(messages.INVENTORY.decode(received.data))
            restored_count += 1
        except DecodeError as error:
            log.warning("inventory.unreadable", field=error.field, reason=error.reason)
    async for received in _read_last(bus, "HEALTH", health_subject, stop):
        try:
            state.restore_health(messages.HEALTH.decode(received.data))
        except DecodeError as error:
            log.warning("health.unreadable", field=error.field, reason=error.reason)
    log.info("announcements.recalled", node_count=restored_count)


async def _read_last(
    bus: Bus, stream: str, subject: str, stop: asyncio.Event
) -> AsyncIterator[Received]:
    """Yield the last message of each subject, as of now."""
    done = asyncio.Event()
    async for page in bus.follow(stream, [subject], done):
        for message in page.messages:
            if not message.gone:
                yield message
        if page.synced or stop.is_set():
            done.set()
