"""Which gangs hold devices, and what would be free without some of them. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from datetime import datetime

from contracts.ids import (
    DeviceID,
    DeviceName,
    DriverName,
    GangKey,
    NodeName,
    PoolName,
)
from contracts.lifecycle import GangRecord
from moorings.views.inventory import KnownDevices, view_devices
from solver.snapshot.snapshot import Snapshot
from solver.timeline.candidates import Candidate
from solver.timeline.holdings import Holding


def list_running(known: KnownDevices) -> list[Candidate]:
    """List the gangs that have a place, with since when as far as claims say so."""
    records = known.snapshot.gangs.values()
    return [
        Candidate(record=record, started_s=_find_start(known.snapshot, record))
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


def find_freed(
    records: Mapping[NodeName, Mapping[str, object]],
    known: KnownDevices,
    gangs: Collection[str],
) -> Holding:
    """Find what these gangs, by `namespace/name`, hold alone of devices and nodes."""
    devices = set[DeviceID]()
    amounts: dict[NodeName, dict[str, int]] = {}
    for node, record in records.items():
        shown = record["gangs"]
        if not isinstance(shown, Mapping) or not set(gangs) & shown.keys():
            continue
        for row in view_devices(known, node):
            holders = [holder["gang"] for holder in row["holders"]]
            if holders and set(holders) <= set(gangs):
                driver, pool = DriverName(row["driver"]), PoolName(row["pool"])
                devices.add(DeviceID(driver, pool, DeviceName(row["name"])))
        amounts[node] = sum_amounts(known, node, gangs)
    return Holding(devices=frozenset(devices), amounts=amounts)


def name_gangs(known: KnownDevices) -> dict[GangKey, str]:
    """Return `namespace/name` of each gang."""
    gangs = known.snapshot.gangs.values()
    return {gang.key: f"{gang.namespace}/{gang.name}" for gang in gangs}


def sum_amounts(
    known: KnownDevices, node: NodeName, gangs: Collection[str] | None = None
) -> dict[str, int]:
    """Sum what gangs use of a node besides devices: some by name, or all."""
    sums: Counter[str] = Counter()
    names = name_gangs(known)
    for use in (known.snapshot.inventory.node_uses.get(node) or {}).values():
        if use.gang is not None and (gangs is None or names.get(use.gang) in gangs):
            sums.update(use.amounts)
    return dict(sums)
