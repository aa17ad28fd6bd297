"""Which gangs hold devices, and what would be free without some of them. Pure."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from msgspec import structs

from contracts.ids import GangKey, NodeName
from contracts.lifecycle import GangRecord
from moorings.views.inventory import KnownDevices
from solver.snapshot.node_state import add_amounts
from solver.snapshot.snapshot import Snapshot
from solver.timeline.candidates import Candidate, make_candidate
from solver.timeline.holdings import Holding, read_holding


def list_running(known: KnownDevices) -> list[Candidate]:
    """List the gangs that have a place, with since when as far as claims say so."""
    records = known.snapshot.gangs.values()
    return [
        structs.replace(
            make_candidate(known.snapshot, record),
            started_s=_find_start(known.snapshot, record),
        )
        for record in sorted(records, key=lambda r: r.key)
        if record.placed is not None
    ]


def _find_start(snapshot: Snapshot, record: GangRecord) -> float:
    """Find when a gang got the last of its devices; 0: nothing says so."""
    starts = [0.0]
    for pod in () if record.placed is None else record.placed.members:
        for placed in pod.claims:
            claim = snapshot.claims.get(str(placed.ref))
            status = None if claim is None else claim.status
            allocation = None if status is None else status.allocation
            if allocation is not None and allocation.allocation_timestamp:
                at = datetime.fromisoformat(allocation.allocation_timestamp)
                starts.append(at.timestamp())
    return max(starts)


def find_freed(known: KnownDevices, gangs: Collection[str]) -> list[Holding]:
    """Find what these gangs, by `namespace/name`, hold of devices and nodes."""
    names = name_gangs(known)
    return [
        read_holding(known.snapshot, record)
        for record in known.snapshot.gangs.values()
        if names[record.key] in gangs
    ]


def name_gangs(known: KnownDevices) -> dict[GangKey, str]:
    """Return `namespace/name` of each gang."""
    gangs = known.snapshot.gangs.values()
    return {gang.key: f"{gang.namespace}/{gang.name}" for gang in gangs}


def sum_amounts(known: KnownDevices, node: NodeName) -> dict[str, int]:
    """Sum what gangs use of a node besides devices."""
    sums: dict[str, int] = {}
    for candidate in list_running(known):
        holding = read_holding(known.snapshot, candidate.record)
        add_amounts(sums, holding.amounts.get(node, {}))
    return sums
