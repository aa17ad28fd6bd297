"""The facts of a cluster, each a part: a pool, what is used of it, a node, a class.

A part belongs to one node, or to the cluster as a whole; `pages.py` says where it
lies. Its bytes are made once. Knows nothing of gangs.
"""

from __future__ import annotations

from functools import cached_property

from msgspec import Raw, Struct

from contracts.claim import DeviceConfiguration
from contracts.codec import Codec
from contracts.device import (
    CounterSet,
    Device,
    DeviceCounterConsumption,
    DeviceTaint,
    NodeSelector,
    ResourceSlice,
)
from contracts.ids import DeviceClassName, DeviceName, DriverName, NodeName, PoolName
from contracts.quantity import Quantity
from contracts.workload import NodeTaint
from solver.cache import Memory


class PoolSlice(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """What decides about devices in one ResourceSlice of a pool."""

    name: str
    generation: int = 0
    slice_count: int = 0
    """Slices that this generation of the pool has, as the driver says."""
    node_name: NodeName | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    per_device_node_selection: bool | None = None
    devices: tuple[Device, ...] = ()
    shared_counters: tuple[CounterSet, ...] = ()
    skip_node_operations: tuple[str, ...] | None = None

    @classmethod
    def of(cls, resource_slice: ResourceSlice) -> PoolSlice:
        """Keep of a ResourceSlice what decides."""
        spec = resource_slice.spec
        return cls(
            name=resource_slice.metadata.name,
            generation=spec.pool.generation,
            slice_count=spec.pool.resource_slice_count,
            node_name=spec.node_name,
            node_selector=spec.node_selector,
            all_nodes=spec.all_nodes,
            per_device_node_selection=spec.per_device_node_selection,
            devices=spec.devices,
            shared_counters=spec.shared_counters,
            skip_node_operations=spec.skip_node_operations,
        )


class PoolPart(
    Struct,
    frozen=True,
    kw_only=True,
    rename="camel",
    omit_defaults=True,
    tag="Pool",
    dict=True,
):
    """All slices of a pool, of every generation; what a node makes of them differs."""

    driver: DriverName
    pool: PoolName
    node: NodeName = NodeName("")
    """The node that every slice names; empty when they are not local to one."""
    slices: tuple[PoolSlice, ...] = ()
    """By name: kube-scheduler's order."""
    contested: str = ""
    """Why the pool may not be used; empty: it may."""

    @property
    def devices(self) -> tuple[Device, ...]:
        """The devices of all slices; bit i of a set of devices is the i-th of them."""
        if len(self.slices) == 1:
            return self.slices[0].devices
        return self._devices_of_all

    @cached_property
    def _devices_of_all(self) -> tuple[Device, ...]:
        return tuple(
            device for pool_slice in self.slices for device in pool_slice.devices
        )


class ShareUse(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """What the shares of one device consume together (KEP-5075)."""

    device: DeviceName
    consumed: tuple[tuple[str, Quantity], ...] = ()
    """By capacity name, sorted."""


class UnpublishedUse(
    Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True
):
    """A device that somebody holds though no slice of its pool has it any more."""

    device: DeviceName
    holder: str
    """One of them: `claim/namespace/name` or `gang/...`."""
    consumes_counters: tuple[DeviceCounterConsumption, ...] | None = None
    """What it draws, by the last slice that had it; None: unknown."""


class UsePart(
    Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, tag="Use"
):
    """What is not free in a pool, and the taints that its slices do not have."""

    driver: DriverName
    pool: PoolName
    node: NodeName = NodeName("")
    taken: tuple[DeviceName, ...] = ()
    """Held by one claim for itself; sorted."""
    shared: tuple[ShareUse, ...] = ()
    """Held in shares; by device."""
    taints: tuple[tuple[DeviceName, DeviceTaint], ...] = ()
    """From health and DeviceTaintRules, sorted by device."""
    unpublished: tuple[UnpublishedUse, ...] = ()
    """In pools with counters, what is held but not published; sorted by device."""


class NodePart(
    Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, tag="Node"
):
    """A node: what it is, what it has left, and what it keeps away."""

    name: NodeName
    labels: dict[str, str] = {}
    declared_features: tuple[str, ...] = ()
    """Those of `status.declaredFeatures` that devices or pods may need."""
    plugin_resources: tuple[str, ...] = ()
    """Extended resources that the node itself offers (device plugins); sorted."""
    unavailable: str = ""
    """Why nothing may be placed here (`away`, `not ready`); empty: usable."""
    taints: tuple[NodeTaint, ...] = ()
    """Those that keep pods away unless tolerated: NoSchedule and NoExecute."""
    unschedulable: bool = False
    """Cordoned: for pods that tolerate just that."""
    free: dict[str, int] | None = None
    """What is left of each resource (cpu in thousandths, else whole units; negative
    where more is in use than there is). A resource that is not in it the node does not
    have, except that without `pods` their number has no limit. None: nobody has said
    what the node has, and nothing limits."""


class ClassPart(
    Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, tag="Class"
):
    """A DeviceClass: the selectors of its devices and their configuration."""

    name: DeviceClassName
    selectors: tuple[str, ...] = ()
    config: tuple[DeviceConfiguration, ...] = ()
    extended_resource_name: str = ""
    created: str = ""
    """`metadata.creationTimestamp`: of two classes for one resource the later wins."""


PartValue = PoolPart | UsePart | NodePart | ClassPart
_PART: Codec[PartValue] = Codec(PartValue, "part")


class Part:
    """One fact: its value and its canonical bytes, made when asked for.

    `memory`: what is remembered of it.
    """

    __slots__ = ("__weakref__", "_data", "key", "memory", "owner", "value")

    def __init__(self, value: PartValue, data: bytes | None = None) -> None:
        self.value = value
        self.memory = Memory()
        self.key = _key_of(value)
        self.owner = _owner_of(value)
        """The node that it belongs to; empty: the cluster."""
        self._data = data

    @classmethod
    def decode(cls, data: bytes) -> Part:
        """Read a part back.

        Raises:
            DecodeError: the bytes are no part.
        """
        return cls(_PART.decode(data), data)

    @property
    def data(self) -> bytes:
        """Canonical bytes; kept from now on."""
        if self._data is None:
            self._data = _PART.encode(self.value)
        return self._data

    @property
    def written(self) -> Raw | None:
        """The bytes for whoever writes the part as one of several; None: not kept."""
        return None if self._data is None else Raw(self._data)


def pool_key(driver: DriverName, pool: PoolName) -> str:
    """Name a pool's part."""
    return f"pool/{driver}/{pool}"


def use_key(driver: DriverName, pool: PoolName) -> str:
    """Name the part that says what is used of a pool."""
    return f"use/{driver}/{pool}"


def use_key_of(pool: str) -> str:
    """Name the part that says what is used of a pool, by the name of its own part."""
    return "use" + pool.removeprefix("pool")


def node_key(name: NodeName) -> str:
    """Name a node's part."""
    return f"node/{name}"


def class_key(name: DeviceClassName) -> str:
    """Name a class's part."""
    return f"class/{name}"


def _key_of(value: PartValue) -> str:
    match value:
        case PoolPart():
            return pool_key(value.driver, value.pool)
        case UsePart():
            return use_key(value.driver, value.pool)
        case NodePart():
            return node_key(value.name)
        case ClassPart():
            return class_key(value.name)


def _owner_of(value: PartValue) -> str:
    match value:
        case PoolPart() | UsePart():
            return value.node
        case NodePart():
            return value.name
        case ClassPart():
            return ""
