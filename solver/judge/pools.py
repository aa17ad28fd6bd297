"""What a node sees of a pool, as the judge reads it: its own words, its own code."""

from __future__ import annotations

from collections import Counter

from msgspec import Struct

from contracts.device import Device, NodeSelector, NodeSelectorRequirement
from contracts.features import Features
from solver.snapshot.parts import NodePart, PoolPart, PoolSlice

Amounts = dict[tuple[str, str], int]
"""(counter set, counter) -> 1e-9 units."""


class Seen(Struct, frozen=True):
    """A pool as one node sees it."""

    usable: bool
    devices: dict[str, tuple[Device, PoolSlice]] = {}
    """Those in slices that are meant for the node."""
    reachable: frozenset[str] = frozenset()
    elsewhere: tuple[Device, ...] = ()
    counters: Amounts = {}


def see(pool: PoolPart, node: NodePart, features: Features) -> Seen | None:
    """Read a pool from a node; None: there is no such pool there."""
    slices = [s for s in pool.slices if _known(s, features)]
    mine = [s for s in slices if _meant(s, node, features)]
    if not mine:
        return None
    newest = max(s.generation for s in mine)
    mine = [s for s in mine if s.generation == newest]
    others: list[PoolSlice] = []
    if len(mine) != mine[0].slice_count:
        if max(s.generation for s in pool.slices) > newest:
            return None
        same = [s for s in slices if s.generation == newest]
        if len(same) != mine[0].slice_count:
            return Seen(usable=False)
        names = {s.name for s in mine}
        others = [s for s in same if s.name not in names]
    return _read(mine, others, node, features)


def _read(
    mine: list[PoolSlice], others: list[PoolSlice], node: NodePart, features: Features
) -> Seen:
    partitions = features.partitionable_devices
    defined = [s for s in (*mine, *others) if partitions and s.shared_counters]
    here = [s for s in mine if s not in defined]
    away = [device for s in others if s not in defined for device in s.devices]
    names = Counter(device.name for s in here for device in s.devices)
    sets = Counter(c.name for s in defined for c in s.shared_counters)
    counters = {
        (c.name, name): counter.value.nano
        for s in defined
        for c in s.shared_counters
        for name, counter in c.counters.items()
    }
    drawing = [*(d for s in here for d in s.devices), *away]
    unknown = partitions and any(
        consumption.counter_set not in sets
        or any(
            (consumption.counter_set, n) not in counters for n in consumption.counters
        )
        for device in drawing
        for consumption in device.consumes_counters
    )
    if unknown or max([0, *names.values(), *sets.values()]) > 1:
        return Seen(usable=False)
    return Seen(
        usable=True,
        devices={device.name: (device, s) for s in here for device in s.devices},
        reachable=frozenset(
            device.name
            for s in here
            for device in s.devices
            if not s.per_device_node_selection or _at(device, node)
        ),
        elsewhere=tuple(away),
        counters=counters,
    )


def _known(item: PoolSlice, features: Features) -> bool:
    grouped = any(
        consumption.compatibility_groups
        for device in item.devices
        for consumption in device.consumes_counters
    )
    return features.compatibility_groups or not grouped


def _meant(item: PoolSlice, node: NodePart, features: Features) -> bool:
    partitioned = item.per_device_node_selection is not None or item.shared_counters
    if partitioned and not features.partitionable_devices:
        return False
    if item.node_name or item.all_nodes or item.node_selector is not None:
        return _at(item, node)
    return bool(item.per_device_node_selection) and any(
        _at(device, node) for device in item.devices
    )


def _at(item: PoolSlice | Device, node: NodePart) -> bool:
    if item.node_name:
        return item.node_name == node.name
    return bool(item.all_nodes) or (
        item.node_selector is not None and selects(item.node_selector, node)
    )


def is_readable(item: PoolSlice, node: NodePart, features: Features) -> bool:
    """Say whether a slice's node selection, as far as it is read, is well-formed."""
    partitioned = item.per_device_node_selection is not None or item.shared_counters
    if (partitioned and not features.partitionable_devices) or not _known(
        item, features
    ):
        return True
    if item.node_name or item.all_nodes or item.node_selector is not None:
        return _is_well_formed(item)
    for device in item.devices if item.per_device_node_selection else ():
        if not _is_well_formed(device):
            return False
        if _at(device, node):
            return True
    return True


def _is_well_formed(item: PoolSlice | Device) -> bool:
    if item.node_name or item.all_nodes or item.node_selector is None:
        return True
    terms = item.node_selector.node_selector_terms
    return all(
        all(_is_sound(r) for r in term.match_expressions)
        and all(
            r.operator in ("In", "NotIn") and len(r.values) == 1
            for r in term.match_fields
        )
        for term in terms
    )


def _is_sound(item: NodeSelectorRequirement) -> bool:
    count = len(item.values)
    match item.operator:
        case "In" | "NotIn":
            sound = count > 0
        case "Exists" | "DoesNotExist":
            sound = count == 0
        case "Gt" | "Lt":
            sound = count == 1 and item.values[0].lstrip("+-").isdigit()
        case _:
            sound = False
    name = item.key.rpartition("/")[2]
    return sound and bool(name) and name[0].isalnum() and name[-1].isalnum()


def selects(selector: NodeSelector, node: NodePart) -> bool:
    """Say whether a well-formed selector means a node."""
    return any(
        (term.match_expressions or term.match_fields)
        and all(_label(item, node.labels) for item in term.match_expressions)
        and all(_field(item, node.name) for item in term.match_fields)
        for term in selector.node_selector_terms
    )


def _label(item: NodeSelectorRequirement, labels: dict[str, str]) -> bool:
    here = labels.get(item.key)
    if item.operator == "DoesNotExist":
        return here is None
    if item.operator == "NotIn":
        return here not in item.values
    if here is None:
        return False
    if item.operator in ("Gt", "Lt"):
        try:
            difference = int(here) - int(item.values[0])
        except (ValueError, IndexError):
            return False
        return difference > 0 if item.operator == "Gt" else difference < 0
    return item.operator == "Exists" or here in item.values


def _field(item: NodeSelectorRequirement, name: str) -> bool:
    known = name if item.key == "metadata.name" else ""
    return (known in item.values) == (item.operator == "In")
