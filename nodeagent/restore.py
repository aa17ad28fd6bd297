"""Reads back what was sent of this agent's nodes before it started.

So that a restart raises no generation and clears no taint. Each node once, just before
something is said of it: afterwards the agent's own state is newer, and the first nodes
of a large fleet need not wait for the last.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

from contracts.ids import ClusterName, NodeName
from contracts.messages import DevicesAnnounced, HealthJudged
from contracts.topics import HEALTH, INVENTORIES, Topic
from nodeagent.agent_state import AgentState
from runtime.bus.bus import Bus
from runtime.log import get_logger
from runtime.refusals import Refusals

_FEW = 2
"""For so many nodes messages are read without checking first whether there are any."""

log = get_logger(__name__)


class Restorer:
    """Reads back what earlier agents of the nodes sent."""

    def __init__(
        self,
        bus: Bus,
        state: AgentState,
        cluster: ClusterName,
        nodes: tuple[NodeName, ...],
        recall: Callable[[DevicesAnnounced], None] | None = None,
    ) -> None:
        """`recall` tells the source what was announced of a node."""
        self._bus = bus
        self._state = state
        self._cluster = cluster
        self._recall = recall
        self._count = len(nodes)
        self._due = set(nodes)
        self._restored = 0
        self._topics: tuple[Topic[Any], ...] | None = None
        """Topics with messages about our nodes; None: not asked yet."""
        self._refusals = Refusals()

    async def restore(self, nodes: Iterable[NodeName]) -> None:
        """Fill the state with the last messages about those that are due.

        Asks for each by its subject, which needs no consumer. What cannot be read is
        logged and counts as never sent.

        Raises:
            BusError: the streams are not there, or not allowed; they stay due.
        """
        due = self._due.intersection(nodes)
        if not due:
            return
        if self._topics is None:
            self._topics = await self._find_topics()
        found = await asyncio.gather(*map(self._restore_node, due))
        self._restored += sum(found)
        self._due -= due
        if not self._due:
            log.info("announcements.recalled", node_count=self._restored)

    async def _find_topics(self) -> tuple[Topic[Any], ...]:
        """Ask once about each topic instead of about each node of a fleet."""
        both = (INVENTORIES, HEALTH)
        if self._count <= _FEW:
            return both
        return tuple(
            [topic for topic in both if await self._bus.has_any(topic, self._cluster)]
        )

    async def _restore_node(self, node: NodeName) -> bool:
        """Restore a node; whether its inventory was there."""
        inventory = False
        for topic in self._topics or ():
            with self._refusals.guard(topic.subject(self._cluster, node)):
                last = await self._bus.read_last(topic, self._cluster, node)
                if last is None:
                    continue
                inventory = inventory or topic is INVENTORIES
                if isinstance(last.message, DevicesAnnounced):
                    self._state.restore_inventory(last.message)
                    if self._recall is not None:
                        self._recall(last.message)
                elif isinstance(last.message, HealthJudged):
                    self._state.restore_health(last.message)
        return inventory
