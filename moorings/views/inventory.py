"""Nodes and devices as the solver knows them, as rows: what is free, held, or sick.

Devices of node agents and of third-party drivers alike. Who holds a device is a claim,
the pod that it is of, and the gang of that pod. Pure.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any

from msgspec import Struct

from contracts.device import Device, DeviceTaint
from contracts.drift import DeviceDrift
from contracts.ids import (
    DeviceID,
    DeviceName,
    GangKey,
    GangUID,
    Namespace,
    NodeName,
    PoolID,
)
from contracts.messages import DeviceHealth
from contracts.names import OWNED, UNHEALTHY
from moorings.views.states import (
    AWAY,
    DRIFTED,
    FREE,
    HEALTHY,
    HELD,
    SHARED,
    SICK,
    TAINTED,
)
from solver.devices.candidates import BLOCKING_EFFECTS
from solver.explain.node_checks import format_taint
from solver.selectors.drivers import driver_of
from solver.snapshot.device_uses import DeviceUse
from solver.snapshot.parts import (
    ClassPart,
    NodePart,
    PoolPart,
    PoolSlice,
    UsePart,
    pool_key,
)
from solver.snapshot.snapshot import NodePresence, Snapshot, apply

_CLAIM, _GANG = "claim/", "gang/"


class KnownDevices(Struct, frozen=True, kw_only=True, dict=True):
    """All known devices and their holders."""

    snapshot: Snapshot
    pod_gangs: Mapping[str, GangKey] = {}
    """By `namespace/name`, the gang that a pod runs for; empty: none."""
    claim_pods: Mapping[str, tuple[str, ...]] = {}
    """By `namespace/name`, the pods that a claim was written for, by name."""
    judged: Mapping[DeviceID, DeviceHealth] = {}
    """Devices that agents say are not healthy."""
    drifts: Mapping[DeviceID, tuple[DeviceDrift, ...]] = {}
    """Devices that agents say are used otherwise than was decided."""
    announced: frozenset[PoolID] = frozenset()
    """Pools of which agents say how their devices are."""
    refused: Mapping[NodeName, tuple[PoolPart, ...]] = {}
    """Pools that agents announce and the solver does not take, with the reason."""
    heard: frozenset[NodeName] | None = None
    """Nodes whose agents are heard; None: that could not be read."""
    named_by_decision: frozenset[GangKey] = frozenset()
    """Gangs whose claims were written by the names that the decision gives them."""

    @cached_property
    def decided_claims(self) -> dict[tuple[GangKey, DeviceID, str], str]:
        """The claims of those gangs, as `namespace/name`, by device and share."""
        records = map(self.snapshot.gangs.get, self.named_by_decision)
        return {
            (r.key, result.device_id, result.share_id or ""): (
                f"{r.namespace}/{claim.ref.name}"
            )
            for r in records
            if r is not None and r.placed is not None
            for member in r.placed.members
            for claim in member.claims
            for result in claim.allocation.devices.results
        }


def view_devices(
    known: KnownDevices, owner: NodeName | None = None
) -> list[dict[str, Any]]:
    """Return a row for each device, by node, driver, pool and name.

    `owner`: only those of this node, or with "" those that are not of one node alone.
    """
    pages = known.snapshot.inventory.pages
    parts = list(pages.values() if owner is None else pages.of(owner))
    taints = _group_taints(part for part in parts if isinstance(part, UsePart))
    nodes = {part.name: part for part in parts if isinstance(part, NodePart)}
    pools = [part for part in parts if isinstance(part, PoolPart)]
    pools += list_refused(known, known.refused if owner is None else (owner,))
    rows = [
        _view_device(known, pool, pool_slice, device, taints=taints, nodes=nodes)
        for pool in pools
        for pool_slice in _newest_slices(pool)
        for device in pool_slice.devices
    ]
    return sorted(rows, key=lambda r: (r["node"], r["driver"], r["pool"], r["name"]))


def list_refused(known: KnownDevices, nodes: Iterable[NodeName]) -> list[PoolPart]:
    """List the pools of nodes that the solver refuses, and nobody else publishes."""
    return [
        pool
        for node in nodes
        for pool in known.refused.get(node, ())
        if pool_key(pool.driver, pool.pool) not in known.snapshot.inventory.pool_nodes
    ]


def view_nodes(
    known: KnownDevices, devices: Iterable[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Return a row for each node, by name; `devices` are the rows of all devices."""
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    pools: defaultdict[str, set[tuple[str, str]]] = defaultdict(set)
    for row in devices:
        counts[row["node"]].update(row["states"])
        counts[row["node"]]["devices"] += 1
        pools[row["node"]].add((row["driver"], row["pool"]))
    parts = known.snapshot.inventory.pages.values()
    nodes = sorted((p for p in parts if isinstance(p, NodePart)), key=lambda p: p.name)
    return [
        {
            "name": node.name,
            "status": status_of(known, node),
            "devices": counts[node.name]["devices"],
            "free": counts[node.name][FREE],
            "held": counts[node.name][HELD] + counts[node.name][SHARED],
            "unusable": counts[node.name][SICK] + counts[node.name][TAINTED],
            "pools": len(pools[node.name]),
            "drivers": sorted({driver for driver, _ in pools[node.name]}),
            "refused": [
                f"{pool.driver}/{pool.pool}: {pool.contested}"
                for pool in list_refused(known, (node.name,))
            ],
            "taints": [format_taint(taint) for taint in node.taints],
            "labels": dict(node.labels),
        }
        for node in nodes
    ]


def _newest_slices(pool: PoolPart) -> Iterator[PoolSlice]:
    """Go through the slices that count: those of the newest generation."""
    newest = max((part.generation for part in pool.slices), default=0)
    return (part for part in pool.slices if part.generation == newest)


def _group_taints(
    uses: Iterable[UsePart],
) -> dict[str, dict[DeviceName, list[DeviceTaint]]]:
    """Return the taints that slices do not have, by pool and device."""
    taints: dict[str, dict[DeviceName, list[DeviceTaint]]] = {}
    for use in uses:
        of_pool = taints.setdefault(pool_key(use.driver, use.pool), {})
        for name, taint in use.taints:
            of_pool.setdefault(name, []).append(taint)
    return taints


def _view_device(
    known: KnownDevices,
    pool: PoolPart,
    pool_slice: PoolSlice,
    device: Device,
    *,
    taints: Mapping[str, Mapping[DeviceName, list[DeviceTaint]]],
    nodes: Mapping[NodeName, NodePart],
) -> dict[str, Any]:
    key = pool_key(pool.driver, pool.pool)
    use = (known.snapshot.inventory.holders.get(key) or {}).get(
        device.name, DeviceUse()
    )
    of_device = (*device.taints, *taints.get(key, {}).get(device.name, ()))
    name = pool_slice.node_name or device.node_name
    node = nodes.get(name) if name else None
    device_id = DeviceID(pool.driver, pool.pool, device.name)
    holders = [
        _view_holder(known, holder, share, device_id)
        for share, names in _list_holders(use)
        for holder in leave_out_decided(names)
    ]
    drifts = known.drifts.get(device_id, ())
    states = _list_states(use, of_device, node, pool)
    return {
        "node": name or "",
        "driver": pool.driver,
        "pool": pool.pool,
        "name": device.name,
        "states": [*states, DRIFTED] if drifts else states,
        **_view_health(known, device_id),
        "drift": [_view_drift(drift) for drift in drifts],
        "holders": holders,
        "taints": [format_taint(t) for t in of_device if t.key != OWNED],
        "why": pool.contested or (node.unavailable if node is not None else ""),
        "attributes": device.attributes,
        "capacity": device.capacity,
    }


def _view_health(known: KnownDevices, device: DeviceID) -> dict[str, str]:
    """Return the health of a device, since when, and why; empty if unknown."""
    judged = known.judged.get(device)
    if judged is None:
        is_ours = PoolID(device.driver, device.pool) in known.announced
        return {
            "health": HEALTHY if is_ours else "",
            "healthSince": "",
            "healthMessage": "",
        }
    times = (taint.time_added for taint in judged.taints)
    return {
        "health": judged.verdict,
        "healthSince": next(filter(None, times), ""),
        "healthMessage": ": ".join(filter(None, (judged.reason, judged.message))),
    }


def _view_drift(drift: DeviceDrift) -> dict[str, str]:
    named = {"kind": drift.kind.value, "claim": drift.claim, "pod": drift.pod}
    return {**named, "since": drift.since}


def _list_states(
    use: DeviceUse,
    taints: Iterable[DeviceTaint],
    node: NodePart | None,
    pool: PoolPart,
) -> list[str]:
    """List what a device is; only what nothing keeps away is free."""
    states = []
    if use.holders:
        states.append(HELD)
    if use.shares:
        states.append(SHARED)
    keys = {t.key for t in taints if t.effect in BLOCKING_EFFECTS and t.key != OWNED}
    if UNHEALTHY in keys:
        states.append(SICK)
    if keys - {UNHEALTHY}:
        states.append(TAINTED)
    if pool.contested or (node is not None and node.unavailable):
        states.append(AWAY)
    return states or [FREE]


def _list_holders(use: DeviceUse) -> Iterator[tuple[str, frozenset[str]]]:
    """Go through the holders of a whole device, then of its shares by id."""
    if use.holders:
        yield "", use.holders
    for share_id, share in sorted(use.shares.items()):
        yield share_id, share.holders


def leave_out_decided(holders: frozenset[str]) -> list[str]:
    """Name a decision only where no claim has what it decided."""
    claims = sorted(holder for holder in holders if holder.startswith(_CLAIM))
    return claims or sorted(holders)


def _view_holder(
    known: KnownDevices, holder: str, share: str, device: DeviceID
) -> dict[str, Any]:
    """Return the holder of a device: a claim with its pods and gang, or a decision."""
    if holder.startswith(_GANG):
        namespace, _, uid = holder.removeprefix(_GANG).partition("/")
        decided = GangKey(Namespace(namespace), GangUID(uid))
        gang = _name_gang(known, decided)
        claim_name = known.decided_claims.get((decided, device, share), "")
        rest = {"pods": [], "claim": claim_name, "share": share, "since": ""}
        return {"gang": gang, **rest}
    key = holder.removeprefix(_CLAIM)
    namespace = key.partition("/")[0]
    claim = known.snapshot.claims.get(key)
    owners = claim.metadata.owner_references if claim is not None else ()
    pods = [owner.name for owner in owners if owner.kind == "Pod"]
    pods = pods or list(known.claim_pods.get(key, ()))
    gangs = {known.pod_gangs.get(f"{namespace}/{pod}") for pod in pods}
    gang = _name_gang(known, gangs.pop()) if len(gangs) == 1 else ""
    allocation = claim.allocation if claim is not None else None
    since = allocation.allocation_timestamp if allocation is not None else None
    named = {"gang": gang, "pods": pods, "claim": key, "share": share}
    return {**named, "since": since or ""}


def _name_gang(known: KnownDevices, gang: GangKey | None) -> str:
    """Name a gang as `namespace/name`, or by uid if its name is unknown."""
    if gang is None or not gang.uid:
        return ""
    record = known.snapshot.gangs.get(gang)
    if record is None or not record.name:
        return gang.uid
    return f"{record.namespace}/{record.name}"


def read_presence(known: KnownDevices) -> Snapshot:
    """Return what is known with the nodes away whose agents are not heard."""
    snapshot = known.snapshot
    if known.heard is None:
        return snapshot
    for node in list(snapshot.inventory.announced):
        away = node not in known.heard
        snapshot = apply(snapshot, NodePresence(node=node, away=away))
    return snapshot


def status_of(known: KnownDevices, node: NodePart) -> str:
    """Return `ready`, or the word for why a node takes no more pods."""
    if node.unavailable:
        return node.unavailable
    announced = node.name in known.snapshot.inventory.announced
    if announced and known.heard is not None and node.name not in known.heard:
        return "silent"
    return "cordoned" if node.unschedulable else "ready"


def name_classes(known: KnownDevices) -> dict[str, list[str]]:
    """Return the classes that may choose a driver's devices; "": those of any."""
    classes: defaultdict[str, list[str]] = defaultdict(list)
    for part in known.snapshot.inventory.pages.of(""):
        if isinstance(part, ClassPart):
            drivers = {driver_of(selector) for selector in part.selectors} - {None}
            driver = str(drivers.pop()) if len(drivers) == 1 else ""
            classes[driver].append(part.name)
    return {driver: sorted(names) for driver, names in sorted(classes.items())}
