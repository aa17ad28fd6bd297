"""Which devices of a pool may serve which kind of request.

Selectors are read from the recorded table, never evaluated. Sets of devices are
integers, one bit a device in pool order, so that a pool is one word. Results are
remembered with the table, by the projection of a pool, so pools that selectors cannot
tell apart are judged once.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from contracts.claim import DeviceToleration
from contracts.device import Device, DeviceTaint
from contracts.features import Features
from contracts.gang import NodeToleration
from contracts.names import OWNED
from contracts.workload import NodeTaint
from solver.cache import Slots
from solver.devices.capacity_amounts import domain_of, spell_as_device
from solver.devices.facts import pool_of
from solver.devices.pool_projections import PoolProjection, Selectors, projection_of
from solver.devices.pools import PoolView, slice_of
from solver.selectors.projection import Projection
from solver.selectors.table import SelectorTable, VerdictRow
from solver.snapshot.parts import NodePart, Part, UsePart

BLOCKING_EFFECTS = frozenset({"NoSchedule", "NoExecute"})
MOST_SELECTIONS = 65_536
"""Selections that a table remembers, by selectors and projection."""
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
    """(expression, projection, device) that the table lacks; then the rest is void."""

    @property
    def faulty(self) -> int:
        """The devices on which a selector fails."""
        bits = 0
        for fault in self.faults:
            bits |= 1 << fault.device
        return bits


_SELECTIONS: Slots[tuple[Selectors, PoolProjection], Selection] = Slots(MOST_SELECTIONS)
"""By table: the devices that pass, of pools with a projection."""


def indices_of(bits: int) -> Iterator[int]:
    """Yield the devices of a set."""
    while bits:
        low = bits & -bits
        yield low.bit_length() - 1
        bits ^= low


def select_devices(part: Part, selectors: Selectors, table: SelectorTable) -> Selection:
    """Find the devices of a pool that pass all selectors, in order, lazily.

    Pools whose devices look the same to these selectors get the same answer, so a
    selector that reads what others read costs a pool a lookup.
    """
    return select_projected(projection_of(part, selectors), selectors, table)


def select_projected(
    projection: PoolProjection, selectors: Selectors, table: SelectorTable
) -> Selection:
    """Find the devices that pass all selectors, of pools with this projection."""
    results = _SELECTIONS.of(table.memory)
    selection = results.get((selectors, projection))
    if selection is None:
        selection = _apply_selectors(selectors, projection, table)
        results.keep((selectors, projection), selection)
    return selection


def _apply_selectors(
    selectors: Selectors, projection: PoolProjection, table: SelectorTable
) -> Selection:
    bits, faults = 0, []
    rows: set[VerdictRow] = set()
    missing: list[tuple[str, Projection, int]] = []
    for index in range(projection.size):
        for number, expression in enumerate(selectors):
            row = (expression, projection.by_selector[number][index])
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
    """True if several requests may have the device at once (KEP-5075)."""
    return bool(device.allow_multiple_allocations) and features.consumable_capacity


def find_free(view: PoolView, features: Features, *, admin: bool = False) -> int:
    """Find the devices without a holder; with admin access holders do not matter.

    Who has a share holds a device that may not be shared any more (1.38's rule; older
    releases of kube-scheduler give it out).
    """
    facts, use = view.facts, view.use
    free = facts.all_devices
    if admin or use is None:
        return free
    for name in use.taken:
        free &= ~facts.bits_by_name.get(name, 0)
    shareable = facts.marks.shareable if features.consumable_capacity else 0
    for share in use.shared:
        free &= ~facts.bits_by_name.get(share.device, 0) | shareable
    return free


def find_supported(view: PoolView, node: NodePart, features: Features) -> int:
    """Find the devices that need nothing which the cluster or the node cannot do."""
    pool, facts = pool_of(view.part), view.facts
    bits = facts.all_devices
    if not features.partitionable_devices:
        bits &= ~facts.marks.counting
    skips = any(pool_slice.skip_node_operations for pool_slice in pool.slices)
    checked = skips and (
        features.rules_of_138
        or features.list_type_attributes
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
    view: PoolView, tolerations: tuple[DeviceToleration, ...], features: Features
) -> int:
    """Find the devices without a taint that blocks these tolerations."""
    facts = view.facts
    bits = facts.all_devices
    added = view.use is not None and view.use.taints
    if not (added or facts.marks.tainted):
        return bits
    for index, _ in find_blocking_taints(view, tolerations, features):
        bits &= ~(1 << index)
    return bits


def find_blocking_taints(
    view: PoolView, tolerations: tuple[DeviceToleration, ...], features: Features
) -> Iterator[tuple[int, DeviceTaint]]:
    """Yield the devices that a taint keeps these tolerations from, with one."""
    if not features.device_taints:
        return
    devices = view.devices
    added: dict[str, list[DeviceTaint]] = {}
    for name, taint in view.use.taints if view.use is not None else ():
        added.setdefault(name, []).append(taint)
    everything = (1 << len(devices)) - 1
    for index in indices_of(everything if added else view.facts.marks.tainted):
        device = devices[index]
        for taint in (*device.taints, *added.get(device.name, ())):
            if not tolerates(tolerations, taint):
                yield index, taint
                break


def tolerates(tolerations: tuple[DeviceToleration, ...], taint: DeviceTaint) -> bool:
    """True if a taint does not block requests with these tolerations (KEP-5055)."""
    if taint.effect not in BLOCKING_EFFECTS or taint.key == OWNED:
        return True
    return any(tolerates_taint(toleration, taint) for toleration in tolerations)


def tolerates_taint(
    toleration: DeviceToleration | NodeToleration, taint: DeviceTaint | NodeTaint
) -> bool:
    """True if a toleration matches a taint: one rule for nodes and for devices.

    Source: k8s.io/api/core/v1, Toleration.ToleratesTaint; KEP-5055 does it alike.
    """
    if toleration.effect not in ("", taint.effect):
        return False
    if toleration.key not in ("", taint.key):
        return False
    if toleration.operator in ("", "Equal"):
        return toleration.value == taint.value
    return toleration.operator == "Exists"


def shares_of(
    view: PoolView, device: Device, use: UsePart | None, features: Features
) -> dict[str, int] | None:
    """Read what shares of a device consume, 1e-9 units by its own names.

    None: nobody has a share of it.
    """
    shares = sum_shares(use).get(device.name)
    if shares is None:
        return None
    return spell_shares(shares, device, domain_of(view.driver, features))


def spell_shares(shares: dict[str, int], device: Device, domain: str) -> dict[str, int]:
    """Add up what shares of a device consume by its own names (`domain_of`)."""
    if not domain:
        return shares
    consumed: dict[str, int] = {}
    for name, own in spell_as_device(shares, device.capacity, domain).items():
        consumed[own] = consumed.get(own, 0) + shares[name]
    return consumed


def sum_shares(use: UsePart | None) -> dict[str, dict[str, int]]:
    """Read what shares consume: device -> capacity -> 1e-9 units."""
    if use is None:
        return {}
    return {
        share.device: {name: amount.nano for name, amount in share.consumed}
        for share in use.shared
    }
