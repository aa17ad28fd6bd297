"""A pool as one node sees it: which slices count, whether it is complete and valid.

A node sees the slices that are meant for it, of the highest generation among those;
whether the pool is complete may need slices of other nodes. The rules are
kube-scheduler's, in its order.

Source: k8s.io/dynamic-resource-allocation/structured, GatherPools; KEP-4381, 4815.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from contracts.device import CounterSet, Device, NodeSelector
from contracts.features import Features
from contracts.ids import DriverName, NodeName, PoolName
from solver.devices.marks import marks_of
from solver.devices.node_selectors import node_matches
from solver.errors import GatherError, NodeSelectorError
from solver.snapshot.parts import NodePart, Part, PoolPart, PoolSlice, UsePart


class PoolView(Struct, frozen=True, kw_only=True):
    """A pool as one node sees it; sets of devices are bits, as in its part."""

    driver: DriverName
    pool: PoolName
    part: Part
    incomplete: bool = False
    invalid: str = ""
    """Why the pool must not be used; empty when it may."""
    targeting: int = 0
    """Devices in the slices that are meant for this node."""
    reachable: int = 0
    """Those of them that this node can reach."""
    malformed: tuple[tuple[int, str], ...] = ()
    """Targeting devices whose own node selection cannot be read, and why."""
    elsewhere: int = 0
    """Devices of the rest of the pool: they only draw from its counters."""
    counters: tuple[CounterSet, ...] = ()
    binding: bool = False
    """Whether any targeting device says something about binding conditions."""

    @property
    def usable(self) -> bool:
        """Whether devices may be allocated from it."""
        return not (self.incomplete or self.invalid)

    @property
    def devices(self) -> tuple[Device, ...]:
        """All devices of the pool, of every slice and generation."""
        return _pool(self.part).devices


class SeenPool(Struct, frozen=True):
    """A pool as a node sees it, and what is used of it."""

    view: PoolView
    use: UsePart | None


def _pool(part: Part) -> PoolPart:
    if not isinstance(part.value, PoolPart):
        raise TypeError(part.key)
    return part.value


def pool_view(part: Part, node: NodePart, features: Features) -> PoolView | None:
    """See a pool from a node; None: it does not exist there.

    Raises:
        GatherError: a node selector of one of its slices is malformed.
    """
    pool = _pool(part)
    ignored = _ignored(part, pool, features)
    relevant = [
        i
        for i, item in enumerate(pool.slices)
        if i not in ignored and _is_relevant(item, node, features)
    ]
    if not relevant:
        return None
    generation = max(pool.slices[i].generation for i in relevant)
    mine = [i for i in relevant if pool.slices[i].generation == generation]
    wanted = pool.slices[mine[0]].slice_count
    others: list[int] = []
    if len(mine) != wanted:
        if any(item.generation > generation for item in pool.slices):
            return None
        everywhere = [
            i
            for i, item in enumerate(pool.slices)
            if item.generation == generation and i not in ignored
        ]
        if len(everywhere) != wanted:
            return PoolView(
                driver=pool.driver, pool=pool.pool, part=part, incomplete=True
            )
        names = {pool.slices[i].name for i in mine}
        others = [i for i in everywhere if pool.slices[i].name not in names]
    return _built(part, pool, (mine, others), node, features)


def _built(
    part: Part,
    pool: PoolPart,
    indices: tuple[list[int], list[int]],
    node: NodePart,
    features: Features,
) -> PoolView:
    """Put the slices together: those that are meant for the node, and the others."""
    mine, others = indices
    counted = [
        i
        for i in (*mine, *others)
        if features.partitionable_devices and pool.slices[i].shared_counters
    ]
    counters = tuple(c for i in counted for c in pool.slices[i].shared_counters)
    here = [i for i in mine if i not in counted]
    away = [i for i in others if i not in counted]
    invalid, marks = "", marks_of(part)
    if not pool.has_unique_names:
        invalid = _duplicate("device name", (d.name for d in _devices(pool, here)))
    if features.partitionable_devices:
        invalid = invalid or _duplicate("counter set name", (c.name for c in counters))
        if marks.counting:
            invalid = invalid or _unknown_counter(counters, _devices(pool, here))
            invalid = invalid or _unknown_counter(counters, _devices(pool, away))
    if invalid:
        return PoolView(driver=pool.driver, pool=pool.pool, part=part, invalid=invalid)
    targeting = _bits(pool, here)
    reachable, malformed = _reachable(pool, here, node)
    return PoolView(
        driver=pool.driver,
        pool=pool.pool,
        part=part,
        targeting=targeting,
        reachable=reachable,
        malformed=malformed,
        elsewhere=_bits(pool, away),
        counters=counters,
        binding=bool(marks.says_binding & targeting),
    )


def _reachable(
    pool: PoolPart, here: list[int], node: NodePart
) -> tuple[int, tuple[tuple[int, str], ...]]:
    """Find the devices of slices that a node can reach, and whose selection fails."""
    starts, bits = _starts(pool), 0
    malformed: list[tuple[int, str]] = []
    for i in here:
        start, item = starts[i]
        if not item.per_device_node_selection:
            bits |= ((1 << len(item.devices)) - 1) << start
            continue
        for bit, device in enumerate(item.devices, start):
            try:
                bits |= _device_here(device, node) << bit
            except GatherError as error:
                malformed.append((bit, str(error)))
    return bits, tuple(malformed)


def _is_relevant(item: PoolSlice, node: NodePart, features: Features) -> bool:
    if not features.partitionable_devices and (
        item.per_device_node_selection is not None or item.shared_counters
    ):
        return False
    if item.node_name or item.all_nodes or item.node_selector is not None:
        return _means(node, item.node_name, item.node_selector, item.all_nodes)
    if item.per_device_node_selection:
        return any(_device_here(device, node) for device in item.devices)
    return False


def _device_here(device: Device, node: NodePart) -> bool:
    return _means(node, device.node_name, device.node_selector, device.all_nodes)


def _means(
    node: NodePart,
    name: NodeName | None,
    selector: NodeSelector | None,
    everywhere: bool | None,  # a field of the API
) -> bool:
    if name:
        return name == node.name
    if everywhere or selector is None:
        return bool(everywhere)
    try:
        return node_matches(selector, node)
    except NodeSelectorError as error:
        raise GatherError(
            f"gather pool information: failed to perform node selection: {error}"
        ) from error


def _ignored(part: Part, pool: PoolPart, features: Features) -> frozenset[int]:
    """Find the slices that compatibility groups hide while their gate is off."""
    if features.compatibility_groups or not marks_of(part).counting:
        return frozenset()
    return frozenset(
        i
        for i, item in enumerate(pool.slices)
        if any(
            consumption.compatibility_groups
            for device in item.devices
            for consumption in device.consumes_counters
        )
    )


def _devices(pool: PoolPart, indices: Iterable[int]) -> list[Device]:
    return [device for i in indices for device in pool.slices[i].devices]


def _starts(pool: PoolPart) -> list[tuple[int, PoolSlice]]:
    """Pair each slice with the bit of its first device."""
    found, start = [], 0
    for item in pool.slices:
        found.append((start, item))
        start += len(item.devices)
    return found


def _bits(pool: PoolPart, indices: Iterable[int]) -> int:
    starts, bits = _starts(pool), 0
    for i in indices:
        start, item = starts[i]
        bits |= ((1 << len(item.devices)) - 1) << start
    return bits


def slice_of(pool: PoolPart, device: int) -> PoolSlice:
    """Find the slice of the device with this bit."""
    for start, item in reversed(_starts(pool)):
        if device >= start and item.devices:
            return item
    raise IndexError(device)


def _duplicate(what: str, names: Iterable[str]) -> str:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return f"duplicate {what} {name}"
        seen.add(name)
    return ""


def _unknown_counter(counters: Iterable[CounterSet], devices: list[Device]) -> str:
    known = {item.name: item.counters for item in counters}
    for device in devices:
        for consumption in device.consumes_counters:
            if consumption.counter_set not in known:
                return f"counter set {consumption.counter_set} not found"
            for name in consumption.counters:
                if name not in known[consumption.counter_set]:
                    return (
                        f"counter {name} not found in counter set "
                        f"{consumption.counter_set}"
                    )
    return ""
