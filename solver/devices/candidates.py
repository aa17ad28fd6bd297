"""Which devices of a pool may serve which kind of request.

Selectors are read from the recorded table, never evaluated. Sets of devices are
integers, one bit a device in pool order, so that a pool is one word. Results are
remembered on the pool's part: a pool that did not change is not looked at again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import Struct

from contracts.claim import DeviceToleration
from contracts.device import Device, DeviceTaint
from contracts.features import Features
from contracts.names import OWNED
from solver.cache import Slot, Slots
from solver.devices.marks import marks_of
from solver.devices.pools import SeenPool, slice_of
from solver.devices.tolerations import is_of
from solver.selectors.footprint import Reads, reads
from solver.selectors.table import Look, Row, SelectorTable, fault_of, looks
from solver.snapshot.pages import Page
from solver.snapshot.parts import NodePart, Part, PoolPart, UsePart

Seen = tuple[int, tuple[tuple[Look, ...], ...]]
"""The devices of a pool by what selectors see: how many, looks[selector][device]."""
BLOCKING_EFFECTS = frozenset({"NoSchedule", "NoExecute"})
MOST_ANSWERS = 65_536
"""Of selectors about pools that look alike; a table remembers so many."""
"""The taint that keeps kube-scheduler off our devices; it is not meant for us."""
OPTIONAL_NODE_OPERATIONS = "DRAOptionalNodeOperations"
"""What a node declares that can do without some node operations."""


class SelectorFault(Struct, frozen=True):
    """A selector that fails on a device."""

    device: int
    selector: int
    """Index into the list of selectors."""
    error: str


class Selected(Struct, frozen=True):
    """The devices of a pool that pass a list of selectors."""

    bits: int
    faults: tuple[SelectorFault, ...] = ()
    rows: frozenset[Row] = frozenset()
    """The rows of the table that were needed to know."""
    missing: tuple[tuple[str, Look, int], ...] = ()
    """(expression, look, device) that the table lacks; then the rest is void."""

    @property
    def faulty(self) -> int:
        """The devices on which a selector fails."""
        bits = 0
        for fault in self.faults:
            bits |= 1 << fault.device
        return bits


Selectors = tuple[str, ...]
"""Expressions that a device must pass, in their order."""
MOST_LISTS = 128
"""Lists of selectors that are remembered of one part or page."""
_POOLS: Slot[tuple[Part, ...]] = Slot()
"""Of a page: its pools."""
_ALIKE: Slots[Selectors, Mapping[Seen, Part]] = Slots(MOST_LISTS)
"""Of a page: the pools that differ to these selectors."""
_SELECTED: Slots[Selectors, Selected] = Slots(MOST_LISTS)
"""Of a pool's part: the devices that pass."""
_LOOKS: Slots[Reads, tuple[Look, ...]] = Slots(MOST_LISTS)
"""Of a pool's part: what an expression that reads so can see of each device."""
_FAULTS: Slot[Mapping[int, str]] = Slot()
"""Of a pool's part: why any selector fails on a device, by index."""
_SELECTED_ALIKE: Slots[tuple[Selectors, Seen], Selected] = Slots(MOST_ANSWERS)
"""Of a table: the devices that pass, of pools that look so."""


def pools_of(page: Page) -> tuple[Part, ...]:
    """List the pools of a page."""
    known = _POOLS.get(page.memory)
    if known is None:
        found = (part for part in page.parts() if isinstance(part.value, PoolPart))
        known = _POOLS.keep(page.memory, tuple(found))
    return known


def pool_of(part: Part) -> PoolPart:
    """Read the pool of a part that is known to hold one."""
    if not isinstance(part.value, PoolPart):
        raise TypeError(part.key)
    return part.value


def indices(bits: int) -> Iterator[int]:
    """Go through the devices of a set."""
    while bits:
        low = bits & -bits
        yield low.bit_length() - 1
        bits ^= low


def selected(part: Part, selectors: tuple[str, ...], table: SelectorTable) -> Selected:
    """Find the devices of a pool that pass all selectors, in order, lazily.

    Pools whose devices look the same to these selectors get the same answer, so a
    selector that reads what others read costs a pool a lookup.
    """
    results = _SELECTED.of(part.memory)
    known = results.get(selectors)
    if known is None:
        known = selected_alike(_seen(part, selectors), selectors, table)
        if not known.missing:
            results.keep(selectors, known)
    return known


def alike(page: Page, selectors: tuple[str, ...]) -> Mapping[Seen, Part]:
    """Find the pools of a page that differ to these selectors: of each sort the first.

    Kept, as the same is asked until the table has all that the selectors need.
    """
    results = _ALIKE.of(page.memory)
    known = results.get(selectors)
    if known is None:
        firsts: dict[Seen, Part] = {}
        for part in pools_of(page):
            firsts.setdefault(_seen(part, selectors), part)
        known = results.keep(selectors, firsts)
    return known


def forget_alike(page: Page, selectors: tuple[str, ...]) -> None:
    """Forget what `alike` found: the table has all that the selectors need."""
    _ALIKE.of(page.memory).pop(selectors, None)


def selected_alike(
    seen: Seen, selectors: tuple[str, ...], table: SelectorTable
) -> Selected:
    """Find the devices that pass all selectors, of pools that look so."""
    results = _SELECTED_ALIKE.of(table.memory)
    known = results.get((selectors, seen))
    if known is None:
        known = _selected(selectors, seen, table)
        results.keep((selectors, seen), known)
    return known


def _seen(part: Part, selectors: tuple[str, ...]) -> Seen:
    size = len(pool_of(part).devices)
    return size, tuple(_looks(part, reads(expression)) for expression in selectors)


def _looks(part: Part, seen: Reads) -> tuple[Look, ...]:
    """List what an expression can see of each device."""
    results = _LOOKS.of(part.memory)
    known = results.get(seen)
    if known is None:
        pool = pool_of(part)
        written = looks(seen, pool.driver, pool.devices, _faults(part))
        known = results.keep(seen, written)
    return known


def _faults(part: Part) -> Mapping[int, str]:
    """Say why any selector fails on a device of a pool, by its index."""
    known = _FAULTS.get(part.memory)
    if known is None:
        faults = ((i, fault_of(d)) for i, d in enumerate(pool_of(part).devices))
        known = _FAULTS.keep(part.memory, {i: fault for i, fault in faults if fault})
    return known


def _selected(selectors: tuple[str, ...], seen: Seen, table: SelectorTable) -> Selected:
    size, by_selector = seen
    bits, faults = 0, []
    rows: set[Row] = set()
    missing: list[tuple[str, Look, int]] = []
    for index in range(size):
        for number, expression in enumerate(selectors):
            row = (expression, by_selector[number][index])
            verdict = table.get(*row)
            if verdict is None:
                missing.append((*row, index))
                break
            rows.add((*row, verdict))
            if verdict.error:
                faults.append(SelectorFault(index, number, verdict.error))
                break
            if verdict.value is False:
                break
        else:
            bits |= 1 << index
    return Selected(bits, tuple(faults), frozenset(rows), tuple(missing))


def is_shareable(device: Device, features: Features) -> bool:
    """Say whether several requests may have the device at once (KEP-5075)."""
    return bool(device.allow_multiple_allocations) and features.consumable_capacity


def free(seen: SeenPool, features: Features, *, admin: bool = False) -> int:
    """Find the devices that nobody holds; with admin access holders do not matter."""
    devices = seen.view.devices
    everything = (1 << len(devices)) - 1
    if admin or seen.use is None or not (seen.use.taken or seen.use.shared):
        return everything
    taken = set(seen.use.taken)
    if not features.consumable_capacity:
        taken |= {share.device for share in seen.use.shared}
    return sum(1 << i for i, d in enumerate(devices) if d.name not in taken)


def supported(seen: SeenPool, node: NodePart, features: Features) -> int:
    """Find the devices that need nothing which the cluster or the node cannot do."""
    pool = pool_of(seen.view.part)
    bits = (1 << len(pool.devices)) - 1
    if not features.partitionable_devices:
        bits &= ~marks_of(seen.view.part).counting
    skips = any(item.skip_node_operations for item in pool.slices)
    checked = skips and (
        features.list_type_attributes
        or features.optional_node_operations
        or features.derived_attributes
        or features.compatibility_groups
    )
    able = (
        features.optional_node_operations
        and OPTIONAL_NODE_OPERATIONS in node.declared_features
    )
    for index in indices(bits if checked and not able else 0):
        if slice_of(pool, index).skip_node_operations:
            bits &= ~(1 << index)
    return bits


def tolerated(
    seen: SeenPool, tolerations: tuple[DeviceToleration, ...], features: Features
) -> int:
    """Find the devices without a taint that blocks these tolerations."""
    devices = seen.view.devices
    bits = (1 << len(devices)) - 1
    if not features.device_taints:
        return bits
    added: dict[str, list[DeviceTaint]] = {}
    for name, taint in seen.use.taints if seen.use is not None else ():
        added.setdefault(name, []).append(taint)
    for index in indices(bits if added else marks_of(seen.view.part).tainted):
        device = devices[index]
        taints = (*device.taints, *added.get(device.name, ()))
        if not all(tolerates(tolerations, taint) for taint in taints):
            bits &= ~(1 << index)
    return bits


def tolerates(tolerations: tuple[DeviceToleration, ...], taint: DeviceTaint) -> bool:
    """Say whether a taint keeps no request with these tolerations away (KEP-5055)."""
    if taint.effect not in BLOCKING_EFFECTS or taint.key == OWNED:
        return True
    return any(is_of(toleration, taint) for toleration in tolerations)


def use_of_shares(use: UsePart | None) -> dict[str, dict[str, int]]:
    """Read what shares consume: device -> capacity -> 1e-9 units."""
    if use is None:
        return {}
    return {
        share.device: {name: amount.nano for name, amount in share.consumed}
        for share in use.shared
    }
