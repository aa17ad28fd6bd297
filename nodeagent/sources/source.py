"""The protocol of a source of devices.

A source returns what it reads now; whether that makes a device unhealthy is decided in
`health.py`, and what is announced in `inventory.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from msgspec import Struct

from contracts.ids import DeviceID, DriverName, NodeName
from nodeagent.cdi import ContainerEdits
from nodeagent.health import Reading
from nodeagent.inventory import NodeDevices


class Readings(Struct, frozen=True, kw_only=True):
    """One reading of all devices; a device that is not named is good."""

    symptoms: dict[NodeName, tuple[Reading, ...]] = {}
    changed: frozenset[NodeName] = frozenset()
    """Nodes whose devices must be discovered again."""
    unread: frozenset[DeviceID] = frozenset()
    """Devices of which nothing new is known: it was not their turn, or the answer is
    not there yet. For a source that reads less often than it is asked."""
    away: frozenset[NodeName] = frozenset()
    """Nodes that only pretend to be here: no heartbeat for them."""


class PartitionHooks(Struct, frozen=True, kw_only=True):
    """Programs that make a device what a claim needs, and undo it.

    Each is called with the claim and the device as JSON on its standard input; another
    exit code than 0 refuses. They must bear to be called again for what they have done.
    """

    set_up: tuple[str, ...] = ()
    """Program and arguments; empty: nothing is to be done."""
    tear_down: tuple[str, ...] = ()
    limit_s: float = 10.0
    """Each call is ended after this; kubelet itself waits 45 s."""


class NetworkDescription(Struct, frozen=True, kw_only=True):
    """The network interface that a device is, as the node sees it."""

    interface: str
    hardware_address: str = ""
    addresses: tuple[str, ...] = ()
    """With the length of their prefixes, such as `10.0.0.5/24`."""


class DeviceCondition(Struct, frozen=True, kw_only=True):
    """A condition of a device besides its health, as in metav1.Condition."""

    type: str
    """Not `Ready`, which is what health says."""
    status: str
    """`True`, `False` or `Unknown`."""
    reason: str
    message: str = ""


class DeviceDescription(Struct, frozen=True, kw_only=True):
    """Facts about a device for holders of its claim."""

    data: Mapping[str, Any] = {}
    """JSON; our keys are in the form of fields of Kubernetes, such as `kernelDriver`.
    """
    conditions: tuple[DeviceCondition, ...] = ()
    network: NetworkDescription | None = None
    """None: it is no network interface, or none that the node sees."""
    card: str = ""
    """Tells the hardware from other hardware that may get its name, such as the UUID of
    a GPU; empty: its name does, or nothing is known."""


class DeviceSource(Protocol):
    """Where devices come from: of one node, or of many in a simulation.

    The caller reads over and over, each time with a later `now_s`, and discovers again
    the nodes that a reading names as changed.
    """

    @property
    def nodes(self) -> tuple[NodeName, ...]:
        """The nodes of this source; fixed while it is open."""
        ...

    @property
    def drivers(self) -> tuple[DriverName, ...]:
        """The drivers that its devices are of; fixed, also while no device is here."""
        ...

    async def discover(self, node: NodeName) -> NodeDevices:
        """List all devices of a node.

        Raises:
            SourceError: they cannot be listed now.
        """
        ...

    async def read(self, now_s: float) -> Readings:
        """Read all devices; `now_s` never runs backwards.

        Raises:
            SourceError: nothing can be read now; all devices count as silent.
        """
        ...

    async def edits(self, device: DeviceID) -> ContainerEdits:
        """Return the container edits of a device.

        Raises:
            SourceError: the device is not here, or its state cannot be read now.
        """
        ...

    async def describe(self, device: DeviceID) -> DeviceDescription:
        """Return the description of a device that a claim holds.

        Raises:
            SourceError: the device is not here, or nothing can be read of it now.
        """
        ...

    def find_hooks(self, device: DeviceID) -> PartitionHooks | None:
        """Return what sets a device up and tears it down; None: nothing needs it."""
        ...
