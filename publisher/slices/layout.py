"""An announced pool -> the ResourceSlices that it becomes, by content and by name.

Decides where a pool is split and which taints its devices carry. Stands alone so that
the plan only compares; must not know what was published before.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from contracts.device import (
    Device,
    DeviceTaint,
    ResourcePool,
    ResourceSliceSpec,
    SlicePool,
)
from contracts.ids import DeviceName, DriverName, NodeName, PoolID, PoolName
from contracts.messages import HealthJudged
from contracts.meta import OwnerReference
from contracts.names import OWNED
from contracts.validate.names import MAX_SUBDOMAIN
from contracts.validate.slices import MAX_COUNTER_SETS, count_most_devices
from contracts.workload import Node

OWNED_TAINT = DeviceTaint(key=OWNED, effect="NoSchedule")
"""Keeps kube-scheduler away from devices that Moorings decides for."""
Taints = Mapping[DeviceName, tuple[DeviceTaint, ...]]

_INDEX = re.compile(r"([0-9a-f]{5,})-")
_DIGEST = 8

T = TypeVar("T")


class PoolLayout(Struct, frozen=True, kw_only=True):
    """A pool of a node, cut into slices; generations and counts are the plan's."""

    driver: DriverName
    name: PoolName
    node: NodeName
    generation: int
    """What its node agent says; a pool begins no lower."""
    slices: tuple[ResourceSliceSpec, ...]


def group_taints(health: HealthJudged | None) -> dict[PoolID, Taints]:
    """Return the taints of devices that are not healthy, by pool."""
    taints: dict[PoolID, dict[DeviceName, tuple[DeviceTaint, ...]]] = {}
    for judged in health.devices if health is not None else ():
        device = judged.device
        of_pool = taints.setdefault(device.pool_id, {})
        of_pool[device.device] = (*of_pool.get(device.device, ()), *judged.taints)
    return dict(taints)


def lay_out(
    pool: ResourcePool, node: NodeName, taints: Taints, *, owned: bool
) -> PoolLayout:
    """Cut a pool into as few slices as the API server takes, at least one.

    Counter sets stand in slices of their own, before the devices.
    """
    whole = ResourceSliceSpec(
        driver=pool.driver,
        pool=SlicePool(name=pool.name),
        node_name=node,
        devices=tuple(
            _with_taints(device, taints, owned=owned) for device in pool.devices
        ),
    )
    empty: ResourceSliceSpec = replace(whole, devices=())
    counters: list[ResourceSliceSpec] = [
        replace(empty, shared_counters=part)
        for part in _split_by_size(pool.shared_counters, MAX_COUNTER_SETS)
    ]
    devices: list[ResourceSliceSpec] = [
        replace(empty, devices=part)
        for part in _split_by_size(whole.devices, count_most_devices(whole))
    ]
    return PoolLayout(
        driver=pool.driver,
        name=pool.name,
        node=node,
        generation=pool.generation,
        slices=(*counters, *devices) or (empty,),
    )


def name_slice(index: int, layout: PoolLayout) -> str:
    """Name a slice: its place first, because allocation goes in the order of names."""
    return _name_slice(index, PoolID(layout.driver, layout.name), layout.node)


def is_our_name(name: str, spec: ResourceSliceSpec) -> bool:
    """True if a slice is one of those we write: nobody else makes our names.

    All that is in the name is immutable, so no edit makes a slice look like
    somebody else's.
    """
    index = index_of(name)
    if index is None or spec.node_name is None:
        return False
    return name == _name_slice(index, pool_of(spec), spec.node_name)


def pool_of(spec: ResourceSliceSpec) -> PoolID:
    """Name the pool that a slice is a part of."""
    return PoolID(spec.driver, spec.pool.name)


def read_outline(raw: Mapping[str, Any]) -> ResourceSliceSpec:
    """Read of a slice as it is served whose it is and where: no devices.

    Every served version has these fields alike.
    """
    spec = raw["spec"]
    node = spec.get("nodeName") or None
    return ResourceSliceSpec(
        driver=DriverName(spec["driver"]),
        pool=SlicePool(name=PoolName(spec["pool"]["name"])),
        node_name=None if node is None else NodeName(node),
    )


def owner_reference_of(node: Node) -> OwnerReference:
    """Refer to the Node with which its slices go."""
    return OwnerReference(
        api_version="v1",
        kind="Node",
        name=node.metadata.name,
        uid=node.metadata.uid,
        controller=True,
    )


def index_of(name: str) -> int | None:
    """Return the place of a slice in its pool; None: not one of our names."""
    match = _INDEX.match(name)
    return None if match is None else int(match[1], 16)


def _name_slice(index: int, pool: PoolID, node: NodeName) -> str:
    identity = f"{pool.driver}\n{pool.pool}\n{node}"
    digest = hashlib.sha256(identity.encode()).hexdigest()[:_DIGEST]
    head, tail = f"{index:05x}-", f"-{digest}"
    room = MAX_SUBDOMAIN - len(head) - len(tail)
    middle = f"{pool.driver}-{node}".lower()[:room].rstrip("-.")
    return f"{head}{middle}{tail}"


def _with_taints(device: Device, taints: Taints, *, owned: bool) -> Device:
    """Add the taints of health and ownership that the device does not have yet."""
    added = (*taints.get(device.name, ()), *((OWNED_TAINT,) if owned else ()))
    if not added:
        return device
    ours = {(taint.key, taint.value, taint.effect): taint for taint in added}
    its_own = {(taint.key, taint.value, taint.effect): taint for taint in device.taints}
    return replace(device, taints=tuple((ours | its_own).values()))


def _split_by_size(values: Sequence[T], size: int) -> list[tuple[T, ...]]:
    starts = range(0, len(values), size)
    return [tuple(values[start : start + size]) for start in starts]
