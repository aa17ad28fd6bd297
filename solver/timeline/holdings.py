"""What gangs hold of a cluster, and a cluster's pages as if they held nothing. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct, structs

from contracts.allocation import DeviceRequestAllocationResult
from contracts.ids import DeviceID, GangKey, NodeName
from contracts.lifecycle import GangRecord
from contracts.messages import GangAllocated
from solver.snapshot.node_state import NodeUse, add_amounts
from solver.snapshot.pages import PAGES, Page, Pages, page_number_of
from solver.snapshot.parts import NodePart, PartValue, UsePart
from solver.snapshot.snapshot import Snapshot


class Holding(Struct, frozen=True, kw_only=True):
    """What a gang's end gives back, at most."""

    devices: frozenset[DeviceID] = frozenset()
    """Those that it has for itself."""
    shares: Mapping[DeviceID, Mapping[str, int]] = {}
    """Of those that it shares what it consumes: 1e-9 units by capacity."""
    amounts: Mapping[NodeName, Mapping[str, int]] = {}
    """Resources of nodes."""


def read_holding(snapshot: Snapshot, record: GangRecord) -> Holding:
    """Read what a gang with a place holds."""
    placed = record.placed
    if placed is None:
        return Holding()
    devices = set[DeviceID]()
    consumed: dict[tuple[DeviceID, str], dict[str, int]] = {}
    for result in _list_results(snapshot, placed):
        if result.share_id is None:
            devices.add(result.device_id)
        else:
            amounts_of = result.consumed_capacity.items()
            share = result.device_id, result.share_id
            # As wherever shares are summed: a negative amount gives no room.
            consumed[share] = {name: max(a.nano, 0) for name, a in amounts_of}
    shares: dict[DeviceID, dict[str, int]] = {}
    for (device, _), of_share in consumed.items():
        add_amounts(shares.setdefault(device, {}), of_share)
    nodes = sorted({pod.node for pod in placed.members})
    uses = {node: snapshot.inventory.node_uses.get(node) or {} for node in nodes}
    amounts = {node: _sum_amounts(of.values(), record.key) for node, of in uses.items()}
    return Holding(devices=frozenset(devices), shares=shares, amounts=amounts)


def _list_results(
    snapshot: Snapshot, placed: GangAllocated
) -> Iterator[DeviceRequestAllocationResult]:
    """List what was decided for a gang, and what its claims say that they have."""
    for pod in placed.members:
        for each in pod.claims:
            claim = snapshot.claims.get(str(each.ref))
            status = None if claim is None else claim.status
            observed = None if status is None else status.allocation
            for allocation in (each.allocation, observed):
                if allocation is not None:
                    results = allocation.devices.results
                    yield from (each for each in results if not each.admin_access)


def _sum_amounts(uses: Iterable[NodeUse], gang: GangKey) -> dict[str, int]:
    """Add up what a gang uses of a node: its decision, or its pods if that is more."""
    decided, bound = dict[str, int](), dict[str, int]()
    for use in uses:
        if use.gang == gang:
            add_amounts(decided if use.decided else bound, use.amounts)
    return {
        name: max(decided.get(name, 0), bound.get(name, 0))
        for name in sorted(decided.keys() | bound.keys())
    }


def sort_pages(pages: Iterable[Page]) -> Pages:
    """Put recorded pages, which are not numbered, where their nodes belong."""
    by_number = {page_number_of(next(iter(page.nodes))): page for page in pages}
    return Pages(tuple(by_number.get(number) or Page({}) for number in range(PAGES)))


def free_all(pages: Iterable[Page], holdings: Iterable[Holding]) -> tuple[Page, ...]:
    """Return the pages as if all this were free: at least what would be.

    Shares, and devices in use that are not published, are left out altogether.
    """
    devices, amounts = set[DeviceID](), dict[NodeName, dict[str, int]]()
    for holding in holdings:
        devices |= holding.devices
        for node, of_node in holding.amounts.items():
            add_amounts(amounts.setdefault(node, {}), of_node)
    sorted_pages = sort_pages(pages)
    freed = (_free(value, devices, amounts) for value in sorted_pages.values())
    changed = [value for value in freed if value is not None]
    return tuple(sorted_pages.with_values(changed))


def _free(
    value: PartValue,
    devices: set[DeviceID],
    amounts: Mapping[NodeName, Mapping[str, int]],
) -> PartValue | None:
    """Return a part as if all this were free; None: it stays the same."""
    if isinstance(value, UsePart):
        if not (value.taken or value.shared or value.unpublished):
            return None
        taken = (
            device
            for device in value.taken
            if DeviceID(value.driver, value.pool, device) not in devices
        )
        return structs.replace(value, taken=tuple(taken), shared=(), unpublished=())
    if isinstance(value, NodePart) and value.free is not None:
        freed = amounts.get(value.name, {})
        free = {name: left + freed.get(name, 0) for name, left in value.free.items()}
        return structs.replace(value, free=free)
    return None
