"""A pool as one node sees it: which slices count, whether it is complete and valid.

A node sees the slices that are meant for it, of the highest generation among those;
whether the pool is complete may need slices of other nodes. The rules are
kube-scheduler's, in its order.

Source: k8s.io/dynamic-resource-allocation/structured, GatherPools; KEP-4381, 4815.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct, structs

from contracts.device import CounterSet, Device, NodeSelector
from contracts.features import Features
from contracts.ids import DriverName, NodeName, PoolName
from solver.devices.facts import (
    NO_MARKS,
    PoolFacts,
    facts_of,
    marks_of,
    pool_of,
)
from solver.devices.node_selectors import node_matches
from solver.errors import GatherError, NodeSelectorError
from solver.snapshot.parts import NodePart, Part, PoolPart, PoolSlice, UsePart


class PoolView(Struct, frozen=True, kw_only=True):
    """A pool as one node sees it; sets of devices are bits, as in its part."""

    driver: DriverName
    pool: PoolName
    part: Part
    facts: PoolFacts
    """What is known of all its devices, whatever this node sees."""
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
    """True if any targeting device says something about binding conditions."""
    is_plain: bool = False
    """True if it is one whole slice of the node's own, of devices without any marks
    but those of amounts: its facts say all but what they publish."""
    use: UsePart | None = None
    """What of it is not free; None: all is."""

    @property
    def usable(self) -> bool:
        """True if devices may be allocated from it."""
        return not (self.incomplete or self.invalid)

    @property
    def devices(self) -> tuple[Device, ...]:
        """All devices of the pool, of every slice and generation."""
        return pool_of(self.part).devices


def view_pool(
    part: Part, node: NodePart, features: Features, use: UsePart | None = None
) -> PoolView | None:
    """See a pool, and what is used of it, from a node; None: it does not exist there.

    Raises:
        GatherError: a node selector of one of its slices is malformed.
    """
    pool, facts = pool_of(part), facts_of(part)
    if _is_simple(facts, pool, node):
        return _see_simple(part, pool, facts, node, use)
    view = _see_slices(part, pool, node, features)
    return view if view is None or use is None else structs.replace(view, use=use)


def _see_slices(
    part: Part, pool: PoolPart, node: NodePart, features: Features
) -> PoolView | None:
    """See a pool of any slices; None: none of them is for the node."""
    facts = facts_of(part)
    ignored = _find_ignored(part, pool, features)
    relevant = [
        i
        for i, pool_slice in enumerate(pool.slices)
        if i not in ignored and _is_relevant(pool_slice, node, features)
    ]
    if not relevant:
        return None
    # First the newest generation of what is meant for this node ...
    generation = max(pool.slices[i].generation for i in relevant)
    targeting = [i for i in relevant if pool.slices[i].generation == generation]
    # ... then, where that is not the whole pool, what other nodes see of it: without
    # that nobody could say whether it is complete, or what draws from its counters.
    is_whole = len(targeting) == pool.slices[targeting[0]].slice_count
    if not is_whole and any(each.generation > generation for each in pool.slices):
        return None
    others = [] if is_whole else _find_rest(pool, targeting, ignored)
    if others is None:
        return PoolView(
            driver=pool.driver,
            pool=pool.pool,
            part=part,
            facts=facts,
            incomplete=True,
        )
    return _build_view(part, pool, (targeting, others), node, features)


def _see_simple(
    part: Part,
    pool: PoolPart,
    facts: PoolFacts,
    node: NodePart,
    use: UsePart | None,
) -> PoolView:
    """See a pool that is one whole slice for the node."""
    everything = facts.all_devices
    return PoolView(
        driver=pool.driver,
        pool=pool.pool,
        part=part,
        facts=facts,
        targeting=everything,
        reachable=everything,
        binding=facts.marks.says_binding > 0,
        is_plain=(
            (facts.marks is NO_MARKS or not facts.marks.has_others)
            and pool.node == node.name
            and not pool.slices[0].skip_node_operations
        ),
        use=use,
    )


def _find_rest(
    pool: PoolPart, targeting: list[int], ignored: frozenset[int]
) -> list[int] | None:
    """Find the slices of other nodes that make a pool whole; None: some are missing."""
    first = pool.slices[targeting[0]]
    everywhere = [
        i
        for i, pool_slice in enumerate(pool.slices)
        if pool_slice.generation == first.generation and i not in ignored
    ]
    if len(everywhere) != first.slice_count:
        return None
    names = {pool.slices[i].name for i in targeting}
    return [i for i in everywhere if pool.slices[i].name not in names]


def _is_simple(facts: PoolFacts, pool: PoolPart, node: NodePart) -> bool:
    """True if a pool is one whole slice for this node that draws from no counters.

    Nearly every pool is, and nothing else needs to be asked about it.
    """
    if len(pool.slices) != 1 or facts.marks.counting:
        return False
    (only,) = pool.slices
    return (
        only.node_name == node.name
        and only.slice_count == 1
        and only.per_device_node_selection is None
        and not only.shared_counters
        and facts.has_unique_names
    )


def _build_view(
    part: Part,
    pool: PoolPart,
    indices: tuple[list[int], list[int]],
    node: NodePart,
    features: Features,
) -> PoolView:
    """Put the slices together: those that are meant for the node, and the others."""
    # First the slices of counters: they hold no devices.
    relevant, others = indices
    with_counters = [
        i
        for i in (*relevant, *others)
        if features.partitionable_devices and pool.slices[i].shared_counters
    ]
    counters = tuple(c for i in with_counters for c in pool.slices[i].shared_counters)
    here = [i for i in relevant if i not in with_counters]
    away = [i for i in others if i not in with_counters]
    # Then what makes the whole pool unusable.
    facts = facts_of(part)
    invalid = _find_invalid(facts, counters, pool, (here, away), features)
    if invalid:
        return PoolView(
            driver=pool.driver,
            pool=pool.pool,
            part=part,
            facts=facts,
            invalid=invalid,
        )
    # Then the devices of the rest: meant for this node, and within its reach.
    targeting = _bits_of(pool, here)
    reachable, malformed = _find_reachable(pool, here, node)
    return PoolView(
        driver=pool.driver,
        pool=pool.pool,
        part=part,
        facts=facts,
        targeting=targeting,
        reachable=reachable,
        malformed=malformed,
        elsewhere=_bits_of(pool, away),
        counters=counters,
        binding=bool(facts.marks.says_binding & targeting),
    )


def _find_invalid(
    facts: PoolFacts,
    counters: tuple[CounterSet, ...],
    pool: PoolPart,
    indices: tuple[list[int], list[int]],
    features: Features,
) -> str:
    """Return what makes a whole pool unusable, in upstream's order; empty: nothing.

    `indices` are of the slices with devices: those meant for the node, and the others.
    """
    invalid = ""
    if not facts.has_unique_names:
        devices = _list_devices(pool, indices[0])
        invalid = _find_duplicate("device name", (each.name for each in devices))
    if features.partitionable_devices:
        invalid = invalid or _find_duplicate(
            "counter set name", (each.name for each in counters)
        )
        for listed in indices if facts.marks.counting else ():
            devices = _list_devices(pool, listed)
            invalid = invalid or _find_unknown_counter(counters, devices)
    return invalid


def _find_reachable(
    pool: PoolPart, here: list[int], node: NodePart
) -> tuple[int, tuple[tuple[int, str], ...]]:
    """Find the devices of slices that a node can reach, and whose selection fails."""
    starts, bits = _slice_starts(pool), 0
    malformed: list[tuple[int, str]] = []
    for i in here:
        start, pool_slice = starts[i]
        if not pool_slice.per_device_node_selection:
            bits |= ((1 << len(pool_slice.devices)) - 1) << start
            continue
        for bit, device in enumerate(pool_slice.devices, start):
            try:
                bits |= _is_here(device, node) << bit
            except GatherError as error:
                malformed.append((bit, str(error)))
    return bits, tuple(malformed)


def _is_relevant(pool_slice: PoolSlice, node: NodePart, features: Features) -> bool:
    if not features.partitionable_devices and (
        pool_slice.per_device_node_selection is not None or pool_slice.shared_counters
    ):
        return False
    if (
        pool_slice.node_name
        or pool_slice.all_nodes
        or pool_slice.node_selector is not None
    ):
        return _names_node(
            node, pool_slice.node_name, pool_slice.node_selector, pool_slice.all_nodes
        )
    if pool_slice.per_device_node_selection:
        return any(_is_here(device, node) for device in pool_slice.devices)
    return False


def _is_here(device: Device, node: NodePart) -> bool:
    return _names_node(node, device.node_name, device.node_selector, device.all_nodes)


def _names_node(
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


def _find_ignored(part: Part, pool: PoolPart, features: Features) -> frozenset[int]:
    """Find the slices that compatibility groups hide while their gate is off."""
    if features.compatibility_groups or not marks_of(part).counting:
        return frozenset()
    return frozenset(
        i
        for i, pool_slice in enumerate(pool.slices)
        if any(
            consumption.compatibility_groups
            for device in pool_slice.devices
            for consumption in device.consumes_counters
        )
    )


def _list_devices(pool: PoolPart, indices: Iterable[int]) -> list[Device]:
    return [device for i in indices for device in pool.slices[i].devices]


def _slice_starts(pool: PoolPart) -> list[tuple[int, PoolSlice]]:
    """Pair each slice with the bit of its first device."""
    starts, start = [], 0
    for pool_slice in pool.slices:
        starts.append((start, pool_slice))
        start += len(pool_slice.devices)
    return starts


def _bits_of(pool: PoolPart, indices: Iterable[int]) -> int:
    starts, bits = _slice_starts(pool), 0
    for i in indices:
        start, pool_slice = starts[i]
        bits |= ((1 << len(pool_slice.devices)) - 1) << start
    return bits


def slice_of(pool: PoolPart, device: int) -> PoolSlice:
    """Find the slice of the device with this bit."""
    if len(pool.slices) == 1:
        return pool.slices[0]
    for start, pool_slice in reversed(_slice_starts(pool)):
        if device >= start and pool_slice.devices:
            return pool_slice
    raise IndexError(device)


def _find_duplicate(what: str, names: Iterable[str]) -> str:
    names_before: set[str] = set()
    for name in names:
        if name in names_before:
            return f"duplicate {what} {name}"
        names_before.add(name)
    return ""


def _find_unknown_counter(counters: Iterable[CounterSet], devices: list[Device]) -> str:
    counters_by_set = {
        counter_set.name: counter_set.counters for counter_set in counters
    }
    for device in devices:
        for consumption in device.consumes_counters:
            if consumption.counter_set not in counters_by_set:
                return f"counter set {consumption.counter_set} not found"
            for name in consumption.counters:
                if name not in counters_by_set[consumption.counter_set]:
                    return (
                        f"counter {name} not found in counter set "
                        f"{consumption.counter_set}"
                    )
    return ""
