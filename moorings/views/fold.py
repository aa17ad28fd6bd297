"""Folds messages into devices and their holders, as the solver does.

For whoever looks: beside the Snapshot it keeps what the solver has no use for, such as
why an agent finds a device sick, and which pods a claim was written for. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import structs

from contracts.announcing import limit_drivers, refuse_driver
from contracts.drift import DeviceDrift, DriftFound
from contracts.ids import (
    DeviceID,
    DriverName,
    GangKey,
    GangUID,
    Namespace,
    NodeName,
    PoolID,
)
from contracts.messages import (
    AllocationWritten,
    DeviceHealth,
    DevicesAnnounced,
    HealthJudged,
    ObjectGone,
    ObjectObserved,
    SubmitGang,
)
from contracts.names import GANG_UID
from moorings.views.inventory import KnownDevices
from solver.snapshot.parts import PoolPart
from solver.snapshot.pools import pool_of_inventory
from solver.snapshot.snapshot import InventoryExpired, Snapshot, SnapshotMessage, apply


class DevicesFold:
    """Everything that is known of devices so far; changed by one message at a time."""

    def __init__(self) -> None:
        self.snapshot = Snapshot()
        self.heard: set[NodeName] = set()
        """Nodes whose agents are heard."""
        self._touched: set[str] = set()
        self._pod_gangs: dict[str, GangKey] = {}
        self._claim_pods: dict[str, tuple[str, ...]] = {}
        self._named_by_decision: set[GangKey] = set()
        self._judged: dict[NodeName, dict[DeviceID, DeviceHealth]] = {}
        self._drifts: dict[NodeName, tuple[DeviceDrift, ...]] = {}
        self._announced: dict[NodeName, frozenset[PoolID]] = {}
        self._inventories: dict[NodeName, DevicesAnnounced] = {}
        self._drivers: frozenset[DriverName] = frozenset()
        self._refused: dict[NodeName, tuple[PoolPart, ...]] = {}

    def apply(
        self, message: SnapshotMessage, sequence: int, time_s: float = 0.0
    ) -> None:
        """Take a message in; `sequence` is its place in its stream, `time_s` its time.

        Raises:
            DecodeError: an observed object is not what its kind demands.
            UnknownKindError: an observed object is of a kind that nobody follows.
        """
        match message:
            case HealthJudged(node=node, devices=devices):
                self._judged[node] = {health.device: health for health in devices}
            case DevicesAnnounced(node=node, pools=pools):
                ids = frozenset(PoolID(pool.driver, pool.name) for pool in pools)
                self._announced[node] = ids
                self._inventories[node] = message
                message = self._limit(message)
            case InventoryExpired(node=node):
                self._inventories.pop(node, None)
            case SubmitGang(uid=uid):
                self._touched.add(uid)
            case ObjectObserved(kind="ResourceClaim", key=key):
                self._touched.add(key)
            case ObjectObserved(kind="Pod", key=key):
                self._touched.add(key)
                annotations = message.object["metadata"].get("annotations") or {}
                uid = GangUID(str(annotations.get(GANG_UID, "")))
                namespace = Namespace(key.partition("/")[0])
                self._pod_gangs[key] = GangKey(namespace, uid)
            case ObjectGone(kind="ResourceClaim", key=key):
                self._touched.add(key)
            case ObjectGone(kind="Pod", key=key):
                self._touched.add(key)
                self._pod_gangs.pop(key, None)
            case AllocationWritten():
                self.note_written(message)
            case _:
                pass
        self.snapshot = apply(self.snapshot, message, sequence=sequence, time_s=time_s)

    def limit_drivers(self, drivers: Iterable[DriverName]) -> None:
        """Refuse what the solver refuses, which takes pools of these drivers only.

        None are named: it takes those of any.
        """
        if (wanted := frozenset(drivers)) == self._drivers:
            return
        self._drivers = wanted
        for message in self._inventories.values():
            self.snapshot = apply(self.snapshot, self._limit(message))

    def _limit(self, message: DevicesAnnounced) -> DevicesAnnounced:
        """Return what the solver takes of an inventory, and keep what it refuses."""
        node = message.node
        refused = tuple(
            structs.replace(pool_of_inventory(pool, node), contested=reason)
            for pool in message.pools
            if (reason := refuse_driver(pool.driver, self._drivers))
        )
        self._refused.pop(node, None)
        if refused:
            self._refused[node] = refused
        return limit_drivers(message, self._drivers)[0]

    def note_written(self, written: AllocationWritten) -> None:
        """Take note of the pods that claims were written for, if there are pods."""
        if not written.pods and not written.pods_omitted:
            self._named_by_decision.add(written.key)
            self._touched.add(written.uid)
        pods: dict[str, list[str]] = {}
        for pod in written.pods:
            for claim in pod.claims.values():
                pods.setdefault(f"{written.namespace}/{claim}", []).append(pod.pod)
        self._claim_pods |= {claim: tuple(names) for claim, names in pods.items()}
        self._touched |= pods.keys()

    def note_drift(self, found: DriftFound) -> None:
        """Take note of what runs on a node otherwise than was decided."""
        self._drifts[found.node] = found.devices

    def take_touched(self) -> set[str]:
        """Return the holders that may have changed since the last call.

        Claims and pods by `namespace/name`, gangs by uid.
        """
        touched, self._touched = self._touched, set()
        return touched

    def known(self, *, hears: bool = True) -> KnownDevices:
        """Return what is known now; `hears`: heartbeats could be read."""
        judged: dict[DeviceID, DeviceHealth] = {}
        for of_node in self._judged.values():
            judged |= of_node
        drifts: dict[DeviceID, tuple[DeviceDrift, ...]] = {}
        for drift in (drift for of_node in self._drifts.values() for drift in of_node):
            drifts[drift.device] = (*drifts.get(drift.device, ()), drift)
        return KnownDevices(
            snapshot=self.snapshot,
            pod_gangs=self._pod_gangs,
            claim_pods=self._claim_pods,
            judged=judged,
            drifts=drifts,
            announced=frozenset().union(*self._announced.values()),
            refused=self._refused,
            heard=frozenset(self.heard) if hears else None,
            named_by_decision=frozenset(self._named_by_decision),
        )
