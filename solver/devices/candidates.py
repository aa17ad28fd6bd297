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
from contracts.gang import NodeToleration
from contracts.names import OWNED
from contracts.workload import NodeTaint
from solver.cache import Slot, Slots
from solver.devices.pools import SeenPool, marks_of, pool_of, slice_of
from solver.selectors.footprint import Footprint, footprint_of
from solver.selectors.projection import Projection, find_faults, project_all
from solver.selectors.table import SelectorTable, VerdictRow
from solver.snapshot.pages import Page
from solver.snapshot.parts import NodePart, Part, PoolPart, UsePart

PoolProjection = tuple[int, tuple[tuple[Projection, ...], ...]]
"""The devices of a pool by what selectors see: how many, looks[selector][device]."""
BLOCKING_EFFECTS = frozenset({"NoSchedule", "NoExecute"})
MOST_SELECTIONS = 65_536
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


class Selection(Struct, frozen=True):
    """The devices of a pool that pass a list of selectors."""

    bits: int
    faults: tuple[SelectorFault, ...] = ()
    rows: frozenset[VerdictRow] = frozenset()
    """The rows of the table that were needed to know."""
    missing: tuple[tuple[str, Projection, int], ...] = ()
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
_DISTINCT_POOLS: Slots[Selectors, Mapping[PoolProjection, Part]] = Slots(MOST_LISTS)
"""Of a page: the pools that differ to these selectors."""
_SELECTIONS: Slots[Selectors, Selection] = Slots(MOST_LISTS)
"""Of a pool's part: the devices that pass."""
_PROJECTIONS: Slots[Footprint, tuple[Projection, ...]] = Slots(MOST_LISTS)
"""Of a pool's part: what an expression that reads so can see of each device."""
_FAULTS: Slot[Mapping[int, str]] = Slot()
"""Of a pool's part: why any selector fails on a device, by index."""
_SELECTIONS_BY_PROJECTION: Slots[tuple[Selectors, PoolProjection], Selection] = Slots(
    MOST_SELECTIONS
)
"""Of a table: the devices that pass, of pools that look so."""


def pools_of(page: Page) -> tuple[Part, ...]:
    """List the pools of a page."""
    pools = _POOLS.get(page.memory)
    if pools is None:
        parts = (part for part in page.parts() if isinstance(part.value, PoolPart))
        pools = _POOLS.keep(page.memory, tuple(parts))
    return pools


def indices_of(bits: int) -> Iterator[int]:
    """Go through the devices of a set."""
    while bits:
        low = bits & -bits
        yield low.bit_length() - 1
        bits ^= low


def select_devices(
    part: Part, selectors: tuple[str, ...], table: SelectorTable
) -> Selection:
    """Find the devices of a pool that pass all selectors, in order, lazily.

    Pools whose devices look the same to these selectors get the same answer, so a
    selector that reads what others read costs a pool a lookup.
    """
    results = _SELECTIONS.of(part.memory)
    selection = results.get(selectors)
    if selection is None:
        selection = select_projected(_project_pool(part, selectors), selectors, table)
        if not selection.missing:
            results.keep(selectors, selection)
    return selection


def find_distinct_pools(
    page: Page, selectors: tuple[str, ...]
) -> Mapping[PoolProjection, Part]:
    """Find the pools of a page that differ to these selectors: of each sort the first.

    Kept, as the same is asked until the table has all that the selectors need.
    """
    results = _DISTINCT_POOLS.of(page.memory)
    first_by_projection = results.get(selectors)
    if first_by_projection is None:
        pools: dict[PoolProjection, Part] = {}
        for part in pools_of(page):
            pools.setdefault(_project_pool(part, selectors), part)
        first_by_projection = results.keep(selectors, pools)
    return first_by_projection


def forget_distinct_pools(page: Page, selectors: tuple[str, ...]) -> None:
    """Forget these pools: the table has all that the selectors need."""
    _DISTINCT_POOLS.of(page.memory).pop(selectors, None)


def select_projected(
    projection: PoolProjection, selectors: tuple[str, ...], table: SelectorTable
) -> Selection:
    """Find the devices that pass all selectors, of pools that look so."""
    results = _SELECTIONS_BY_PROJECTION.of(table.memory)
    selection = results.get((selectors, projection))
    if selection is None:
        selection = _select(selectors, projection, table)
        results.keep((selectors, projection), selection)
    return selection


def _project_pool(part: Part, selectors: tuple[str, ...]) -> PoolProjection:
    size = len(pool_of(part).devices)
    footprints = map(footprint_of, selectors)
    return size, tuple([_project_devices(part, footprint) for footprint in footprints])


def _project_devices(part: Part, footprint: Footprint) -> tuple[Projection, ...]:
    """List what an expression can see of each device."""
    results = _PROJECTIONS.of(part.memory)
    projections = results.get(footprint)
    if projections is None:
        pool = pool_of(part)
        written = project_all(footprint, pool.driver, pool.devices, _find_faults(part))
        projections = results.keep(footprint, written)
    return projections


def _find_faults(part: Part) -> Mapping[int, str]:
    """Return why any selector fails on a device of a pool, by its index."""
    fault_by_index = _FAULTS.get(part.memory)
    if fault_by_index is None:
        faults = find_faults(pool_of(part).devices)
        fault_by_index = _FAULTS.keep(part.memory, faults)
    return fault_by_index


def _select(
    selectors: tuple[str, ...], projection: PoolProjection, table: SelectorTable
) -> Selection:
    size, projections = projection
    bits, faults = 0, []
    rows: set[VerdictRow] = set()
    missing: list[tuple[str, Projection, int]] = []
    for index in range(size):
        for number, expression in enumerate(selectors):
            row = (expression, projections[number][index])
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
    return Selection(bits, tuple(faults), frozenset(rows), tuple(missing))


def is_shareable(device: Device, features: Features) -> bool:
    """Whether several requests may have the device at once (KEP-5075)."""
    return bool(device.allow_multiple_allocations) and features.consumable_capacity


def find_free(seen: SeenPool, features: Features, *, admin: bool = False) -> int:
    """Find the devices that nobody holds; with admin access holders do not matter."""
    pool, use = pool_of(seen.view.part), seen.use
    free = (1 << len(pool.devices)) - 1
    if admin or use is None:
        return free
    for name in use.taken:
        free &= ~pool.bits_by_name.get(name, 0)
    for share in () if features.consumable_capacity else use.shared:
        free &= ~pool.bits_by_name.get(share.device, 0)
    return free


def find_supported(seen: SeenPool, node: NodePart, features: Features) -> int:
    """Find the devices that need nothing which the cluster or the node cannot do."""
    pool = pool_of(seen.view.part)
    bits = (1 << len(pool.devices)) - 1
    if not features.partitionable_devices:
        bits &= ~marks_of(seen.view.part).counting
    skips = any(pool_slice.skip_node_operations for pool_slice in pool.slices)
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
    for index in indices_of(bits if checked and not able else 0):
        if slice_of(pool, index).skip_node_operations:
            bits &= ~(1 << index)
    return bits


def find_tolerated(
    seen: SeenPool, tolerations: tuple[DeviceToleration, ...], features: Features
) -> int:
    """Find the devices without a taint that blocks these tolerations."""
    bits = (1 << len(seen.view.devices)) - 1
    added = seen.use is not None and seen.use.taints
    if not (added or marks_of(seen.view.part).tainted):
        return bits
    for index, _ in find_blocking_taints(seen, tolerations, features):
        bits &= ~(1 << index)
    return bits


def find_blocking_taints(
    seen: SeenPool, tolerations: tuple[DeviceToleration, ...], features: Features
) -> Iterator[tuple[int, DeviceTaint]]:
    """Go through the devices that a taint keeps these tolerations from, with one."""
    if not features.device_taints:
        return
    devices = seen.view.devices
    added: dict[str, list[DeviceTaint]] = {}
    for name, taint in seen.use.taints if seen.use is not None else ():
        added.setdefault(name, []).append(taint)
    everything = (1 << len(devices)) - 1
    for index in indices_of(everything if added else marks_of(seen.view.part).tainted):
        device = devices[index]
        for taint in (*device.taints, *added.get(device.name, ())):
            if not tolerates(tolerations, taint):
                yield index, taint
                break


def tolerates(tolerations: tuple[DeviceToleration, ...], taint: DeviceTaint) -> bool:
    """Whether a taint keeps no request with these tolerations away (KEP-5055)."""
    if taint.effect not in BLOCKING_EFFECTS or taint.key == OWNED:
        return True
    return any(tolerates_taint(toleration, taint) for toleration in tolerations)


def tolerates_taint(
    toleration: DeviceToleration | NodeToleration, taint: DeviceTaint | NodeTaint
) -> bool:
    """Whether a toleration is of a taint: one rule for nodes and for devices.

    Source: k8s.io/api/core/v1, Toleration.ToleratesTaint; KEP-5055 does it alike.
    """
    if toleration.effect not in ("", taint.effect):
        return False
    if toleration.key not in ("", taint.key):
        return False
    if toleration.operator in ("", "Equal"):
        return toleration.value == taint.value
    return toleration.operator == "Exists"


def sum_shares(use: UsePart | None) -> dict[str, dict[str, int]]:
    """Read what shares consume: device -> capacity -> 1e-9 units."""
    if use is None:
        return {}
    return {
        share.device: {name: amount.nano for name, amount in share.consumed}
        for share in use.shared
    }
