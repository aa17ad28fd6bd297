"""Which gangs hold devices, and what would be free without some of them. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping

from contracts.ids import DeviceName, DriverName, GangKey, NodeName, PoolName
from moorings.console.proposals import Holder
from moorings.console.what_if import Freed
from moorings.views.inventory import KnownDevices, view_devices
from moorings.views.waiting import find_priorities
from solver.snapshot.parts import pool_key


def list_holders(
    records: Mapping[NodeName, Mapping[str, object]], known: KnownDevices
) -> list[Holder]:
    """List the gangs in the records of the fleet, with what they hold."""
    devices: Counter[str] = Counter()
    for record in records.values():
        gangs = record["gangs"]
        if isinstance(gangs, Mapping):
            devices.update({name: len(held) for name, held in gangs.items() if name})
    priorities = find_priorities(known)
    return [
        Holder(name=name, priority=priorities.get(name, 0), devices=count)
        for name, count in sorted(devices.items())
    ]


def find_freed(
    records: Mapping[NodeName, Mapping[str, object]],
    known: KnownDevices,
    gangs: Collection[str],
) -> Freed:
    """Find what these gangs, by `namespace/name`, hold alone of devices and nodes."""
    devices: defaultdict[str, set[DeviceName]] = defaultdict(set)
    amounts: dict[NodeName, dict[str, int]] = {}
    names = {
        gang.key: f"{gang.namespace}/{gang.name}"
        for gang in known.snapshot.gangs.values()
    }
    for node, record in records.items():
        shown = record["gangs"]
        if not isinstance(shown, Mapping) or not set(gangs) & shown.keys():
            continue
        for row in view_devices(known, node):
            holders = [holder["gang"] for holder in row["holders"]]
            if holders and set(holders) <= set(gangs):
                pool = pool_key(DriverName(row["driver"]), PoolName(row["pool"]))
                devices[pool].add(DeviceName(row["name"]))
        amounts[node] = _sum_amounts(known, node, names, gangs)
    return Freed(
        devices={pool: frozenset(held) for pool, held in devices.items()},
        amounts=amounts,
    )


def _sum_amounts(
    known: KnownDevices,
    node: NodeName,
    names: Mapping[GangKey, str],
    gangs: Collection[str],
) -> dict[str, int]:
    """Sum what gangs use of a node besides devices."""
    sums: Counter[str] = Counter()
    for use in (known.snapshot.inventory.node_uses.get(node) or {}).values():
        if use.gang is not None and names.get(use.gang) in gangs:
            sums.update(use.amounts)
    return dict(sums)
