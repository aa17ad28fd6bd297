"""What every source of devices offers, whatever it reads them from.

A source says what it sees now; whether that makes a device unhealthy is decided in
`health.py`, and what is announced in `inventory.py`.
"""

from __future__ import annotations

from typing import Protocol

from msgspec import Struct

from contracts.ids import NodeName
from nodeagent.health import Reading
from nodeagent.inventory import NodeDevices


class Readings(Struct, frozen=True, kw_only=True):
    """One look at all devices of all nodes; what is not named is good."""

    symptoms: dict[NodeName, tuple[Reading, ...]] = {}
    changed: frozenset[NodeName] = frozenset()
    """Nodes whose devices must be discovered again."""
    away: frozenset[NodeName] = frozenset()
    """Nodes that only pretend to be here: no heartbeat for them."""


class DeviceSource(Protocol):
    """Where devices come from: of one node, or of many in a simulation."""

    @property
    def nodes(self) -> tuple[NodeName, ...]:
        """The nodes that this source speaks for; fixed while it is open."""
        ...

    async def discover(self, node: NodeName) -> NodeDevices:
        """List all devices of a node.

        Raises:
            SourceError: they cannot be listed now.
        """
        ...

    async def read(self, now_s: float) -> Readings:
        """Look at all devices; `now_s` never runs backwards.

        Raises:
            SourceError: nothing can be read now; all devices count as silent.
        """
        ...
