"""What a node sees of a pool, as the judge reads it, with code of its own."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from contracts.device import (
    CounterSet,
    Device,
    NodeSelector,
    NodeSelectorRequirement,
)
from contracts.features import Features
from solver.snapshot.parts import NodePart, PoolPart, PoolSlice

CounterAmounts = dict[tuple[str, str], int]
"""(counter set, counter) -> 1e-9 units."""


class VisiblePool(Struct, frozen=True):
    """A pool as one node sees it."""

    usable: bool
    devices: dict[str, tuple[Device, PoolSlice]] = {}
    """Those in slices that are meant for the node."""
    unreachable: frozenset[str] = frozenset()
    """Devices of these slices that say themselves that they are for other nodes."""
    elsewhere: tuple[Device, ...] = ()
    """Those in slices of other nodes, which make the pool whole."""
    counters: CounterAmounts = {}


def read_pool(pool: PoolPart, node: NodePart, features: Features) -> VisiblePool | None:
    """Read a pool from a node; None: there is no such pool there."""
    # First the slices that are meant for the node, of the highest generation of them.
    slices = [s for s in pool.slices if _is_published(s, features)]
    here = [s for s in slices if _is_for_node(s, node, features)]
    if not here:
        return None
    newest = max(s.generation for s in here)
    here = [s for s in here if s.generation == newest]
    # Then those of other nodes, if the pool is not whole without them.
    elsewhere: list[PoolSlice] = []
    if len(here) != here[0].slice_count:
        if max(s.generation for s in pool.slices) > newest:
            return None
        same_generation = [s for s in slices if s.generation == newest]
        if len(same_generation) != here[0].slice_count:
            return VisiblePool(usable=False)
        names = {s.name for s in here}
        elsewhere = [s for s in same_generation if s.name not in names]
    return _merge_slices(here, elsewhere, node, features)


def _merge_slices(
    here: list[PoolSlice],
    elsewhere: list[PoolSlice],
    node: NodePart,
    features: Features,
) -> VisiblePool:
    """Put slices together; what is named twice or not at all makes it unusable."""
    # First tell slices that define counters from slices that hold devices.
    partitions = features.partitionable_devices
    defining = [s for s in (*here, *elsewhere) if partitions and s.shared_counters]
    holding = [s for s in here if s not in defining]
    away = [device for s in elsewhere if s not in defining for device in s.devices]
    devices: dict[str, tuple[Device, PoolSlice]] = {
        device.name: (device, s) for s in holding for device in s.devices
    }
    sets = [counter_set for s in defining for counter_set in s.shared_counters]
    counters = {
        (counter_set.name, name): counter.value.nano
        for counter_set in sets
        for name, counter in counter_set.counters.items()
    }
    # Then refuse what names twice, and what draws from counters that nobody defines.
    named_twice = len(devices) < sum([len(s.devices) for s in holding])
    named_twice |= len({counter_set.name for counter_set in sets}) < len(sets)
    lacks = partitions and any(
        _draws_from_nothing(listed, sets)
        for listed in (*(s.devices for s in holding), away)
    )
    if named_twice or lacks:
        return VisiblePool(usable=False)
    return VisiblePool(
        usable=True,
        devices=devices,
        unreachable=_list_unreachable(devices, node),
        elsewhere=tuple(away),
        counters=counters,
    )


def _draws_from_nothing(devices: Iterable[Device], sets: list[CounterSet]) -> bool:
    """True if a device draws from a counter that none of these sets has."""
    drawing = [device for device in devices if device.consumes_counters]
    if not drawing:
        return False
    names = {counter_set.name: counter_set.counters.keys() for counter_set in sets}
    return any(
        consumption.counter_set not in names
        or not consumption.counters.keys() <= names[consumption.counter_set]
        for device in drawing
        for consumption in device.consumes_counters
    )


def _list_unreachable(
    devices: dict[str, tuple[Device, PoolSlice]], node: NodePart
) -> frozenset[str]:
    """Name the devices that may not be used on a node, as they say themselves."""
    return frozenset(
        [
            name
            for name, (device, s) in devices.items()
            if s.per_device_node_selection and not _is_at(device, node)
        ]
    )


def _is_published(pool_slice: PoolSlice, features: Features) -> bool:
    """True if the API server shows a slice; groups hide it while they are off."""
    if features.compatibility_groups:
        return True
    drawing = [device for device in pool_slice.devices if device.consumes_counters]
    return not any(
        consumption.compatibility_groups
        for device in drawing
        for consumption in device.consumes_counters
    )


def _is_for_node(pool_slice: PoolSlice, node: NodePart, features: Features) -> bool:
    if _is_partitioned(pool_slice) and not features.partitionable_devices:
        return False
    if _selects_nodes(pool_slice):
        return _is_at(pool_slice, node)
    return bool(pool_slice.per_device_node_selection) and any(
        _is_at(device, node) for device in pool_slice.devices
    )


def _is_partitioned(pool_slice: PoolSlice) -> bool:
    per_device = pool_slice.per_device_node_selection is not None
    return per_device or bool(pool_slice.shared_counters)


def _selects_nodes(pool_slice: PoolSlice) -> bool:
    return bool(
        pool_slice.node_name
        or pool_slice.all_nodes
        or pool_slice.node_selector is not None
    )


def _is_at(source: PoolSlice | Device, node: NodePart) -> bool:
    """True if the node selection of a slice, or of a device, matches this node."""
    if source.node_name:
        return source.node_name == node.name
    return bool(source.all_nodes) or (
        source.node_selector is not None and selects(source.node_selector, node)
    )


def is_readable(pool_slice: PoolSlice, node: NodePart, features: Features) -> bool:
    """True if a slice's node selection, as far as it is read, is well-formed."""
    hidden = _is_partitioned(pool_slice) and not features.partitionable_devices
    if hidden or not _is_published(pool_slice, features):
        return True
    if _selects_nodes(pool_slice):
        return _is_well_formed(pool_slice)
    # Devices are read in order, and only until one is at the node.
    devices = pool_slice.devices if pool_slice.per_device_node_selection else ()
    for device in devices:
        if not _is_well_formed(device):
            return False
        if _is_at(device, node):
            return True
    return True


def _is_well_formed(source: PoolSlice | Device) -> bool:
    if source.node_name or source.all_nodes or source.node_selector is None:
        return True
    terms = source.node_selector.node_selector_terms
    return all(
        all(_is_sound(expression) for expression in term.match_expressions)
        and all(
            field.operator in ("In", "NotIn") and len(field.values) == 1
            for field in term.match_fields
        )
        for term in terms
    )


def _is_sound(requirement: NodeSelectorRequirement) -> bool:
    count = len(requirement.values)
    match requirement.operator:
        case "In" | "NotIn":
            sound = count > 0
        case "Exists" | "DoesNotExist":
            sound = count == 0
        case "Gt" | "Lt":
            sound = count == 1 and requirement.values[0].lstrip("+-").isdigit()
        case _:
            sound = False
    name = requirement.key.rpartition("/")[2]
    return sound and bool(name) and name[0].isalnum() and name[-1].isalnum()


def selects(selector: NodeSelector, node: NodePart) -> bool:
    """True if a well-formed selector matches a node."""
    return any(
        (term.match_expressions or term.match_fields)
        and all(_label_matches(each, node.labels) for each in term.match_expressions)
        and all(_name_matches(each, node.name) for each in term.match_fields)
        for term in selector.node_selector_terms
    )


def _label_matches(
    requirement: NodeSelectorRequirement, labels: dict[str, str]
) -> bool:
    value = labels.get(requirement.key)
    if requirement.operator == "DoesNotExist":
        return value is None
    if requirement.operator == "NotIn":
        return value not in requirement.values
    if value is None:
        return False
    if requirement.operator in ("Gt", "Lt"):
        try:
            difference = int(value) - int(requirement.values[0])
        except (ValueError, IndexError):
            return False
        return difference > 0 if requirement.operator == "Gt" else difference < 0
    return requirement.operator == "Exists" or value in requirement.values


def _name_matches(requirement: NodeSelectorRequirement, name: str) -> bool:
    value = name if requirement.key == "metadata.name" else ""
    return (value in requirement.values) == (requirement.operator == "In")
