"""Reads back what was said of this agent's nodes before it started.

So that a restart raises no generation and clears no taint. Once only: afterwards the
book knows best.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from contracts import messages, subjects
from contracts.errors import DecodeError
from contracts.ids import ClusterName, NodeName
from nodeagent.agent_state import Book
from runtime.bus.bus import Bus, Received
from runtime.log import get_logger

log = get_logger(__name__)


async def recall(
    bus: Bus,
    book: Book,
    cluster: ClusterName,
    nodes: tuple[NodeName, ...],
    stop: asyncio.Event,
) -> None:
    """Fill the book with the last messages about these nodes.

    What cannot be read is logged and counts as never said.
    """
    inventories, healths = (
        (subjects.wildcard("inv", cluster), subjects.wildcard("health", cluster))
        if len(nodes) > 1
        else (
            subjects.inventory(cluster, nodes[0]),
            subjects.health(cluster, nodes[0]),
        )
    )
    recalled = 0
    async for received in _last(bus, "INV", inventories, stop):
        try:
            book.recall_inventory(messages.INVENTORY.decode(received.data))
            recalled += 1
        except DecodeError as error:
            log.warning("inventory.unreadable", field=error.field, reason=error.reason)
    async for received in _last(bus, "HEALTH", healths, stop):
        try:
            book.recall_health(messages.HEALTH.decode(received.data))
        except DecodeError as error:
            log.warning("health.unreadable", field=error.field, reason=error.reason)
    log.info("announcements.recalled", node_count=recalled)


async def _last(
    bus: Bus, stream: str, subject: str, stop: asyncio.Event
) -> AsyncIterator[Received]:
    """Give the last message of each subject, as of now."""
    done = asyncio.Event()
    async for page in bus.follow(stream, [subject], done):
        for message in page.messages:
            if not message.gone:
                yield message
        if page.synced or stop.is_set():
            done.set()
