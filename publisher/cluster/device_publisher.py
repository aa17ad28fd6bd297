"""All that is written about devices: because of node agents and because of ownership.

Slices of announced pools, taint rules of owned drivers, conditions of devices in
claims: each has its writer; here they hear of what they must know. All publishers
take pages in, the one that leads writes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from contracts.device import DeviceTaintRule, ResourceSlice
from contracts.ids import ClusterName, DriverName, NodeName, PoolID
from contracts.kubernetes.decode import decode_object
from contracts.meta import ObjectMeta
from contracts.workload import Node
from publisher.device_status.writer import Claims, DeviceStatusWriter
from publisher.kube.changes import Change, ChangePage
from publisher.ownership.ownership import Ownership
from publisher.ownership.taint_rules import TaintRuleWriter
from publisher.slices.announced_pools import AnnouncedPools
from publisher.slices.announcement_limits import AnnouncementLimits
from publisher.slices.announcements import Announcements
from publisher.slices.cluster_sink import ClusterSliceSink
from publisher.slices.eviction_budget import EvictionBudget
from publisher.slices.known_slices import KnownSlices
from publisher.slices.layout import is_our_name, read_outline
from publisher.slices.reconciler import SliceReconciler
from runtime.bus.bus import Bus
from runtime.kube.api import KubernetesApi
from runtime.kube.kinds import NODE, ServedKinds
from runtime.refusals import Refusals
from runtime.run import Task
from runtime.waits import first_of

_FEATURES_S = 600.0
"""How often it is tried whether the API server keeps a field by now."""


class DevicePublisher:
    """Knows slices, nodes and announcements, and runs the writers."""

    def __init__(
        self,
        cluster: ClusterName,
        bus: Bus,
        *,
        api: KubernetesApi,
        served: ServedKinds,
        claims: Claims,
        ownership: Ownership,
        now: Callable[[], str],
        limits: AnnouncementLimits,
        evictions_percent: float,
        publish_slices: bool = True,
    ) -> None:
        """Node agents speak of `cluster` on `bus`; `api` is where we write."""
        self._ownership = ownership
        self._publish_slices = publish_slices
        self._slices = KnownSlices()
        self._announced = AnnouncedPools(
            self._is_tainted, EvictionBudget(evictions_percent)
        )
        sink = ClusterSliceSink(api, served.resource_slice, self._slices)
        self._reconciler = SliceReconciler(sink, self._announced, now)
        self._rules = TaintRuleWriter(
            api, served.device_taint_rule, ownership, self._slices, self._announced
        )
        self._conditions = DeviceStatusWriter(
            api, served.resource_claim, claims, self._announced, now
        )
        self._announcements = Announcements(
            cluster,
            bus,
            self._announced,
            limits,
            self._reconciler.hear,
            self._conditions.hear,
            self._note_pools,
        )
        self._refusals = Refusals()
        # Objects of these kinds change what is to be written.
        rules = served.device_taint_rule
        self.kinds: tuple[str, ...] = (
            NODE.name,
            served.resource_slice.name,
            served.resource_claim.name,
            *(() if rules is None else (rules.name,)),
        )
        """Kinds whose pages must be taken in."""

    def tasks(self) -> dict[str, Task]:
        """Name what runs whether we lead or not."""
        return self._announcements.tasks()

    async def write(self, stop: asyncio.Event) -> None:
        """Write until `stop`; the cluster must be known when this begins."""
        await self._announcements.wait_synced(stop)
        async with asyncio.TaskGroup() as writers:
            # ResourceSlices of the pools that node agents announce.
            if self._publish_slices:
                writers.create_task(self._reconciler.publish(stop), name="slices")
            # DeviceTaintRules that keep kube-scheduler from owned devices of others.
            writers.create_task(self._rules.write(stop), name="taint-rules")
            # Health of allocated devices, in the status of their claims.
            writers.create_task(self._conditions.write(stop), name="device-status")
            # What the API server did not keep, sent again now and then.
            writers.create_task(self._retry_fields(stop), name="dropped-fields")

    async def take(self, page: ChangePage) -> None:
        """Note what changed, whether we lead or not."""
        for change in page.changes:
            with self._refusals.guard(f"{change.kind}/{change.key}"):
                self._apply_change(change)

    def _apply_change(self, change: Change) -> None:
        """Note one change.

        Raises:
            ContractsError: the object cannot be read.
        """
        key, raw = change.key, change.object
        match change.kind:
            case "ResourceSlice":
                self._apply_slice(key, raw)
            case "Node":
                name, node = NodeName(key), None if raw is None else _read_node(raw)
                if self._slices.apply_node(name, node):
                    self._reconciler.look_at(self._announced.of_node(name))
                    self._rules.look_again()
            case "DeviceTaintRule":
                value = None if raw is None else decode_object(raw).value
                rule = value if isinstance(value, DeviceTaintRule) else None
                self._rules.apply_rule(key, rule)
            case "ResourceClaim" if raw is not None:
                self._conditions.look_at(key, raw)
            case _:
                return

    def _apply_slice(self, name: str, raw: dict[str, Any] | None) -> None:
        """Note a slice, unless our own write was answered with it.

        Raises:
            ContractsError: it cannot be read.
        """
        if raw is not None and self._slices.is_known(name, raw):
            return
        pools = self._slices.apply_slice(
            name, None if raw is None else _read_slice(raw)
        )
        if pools:
            self._reconciler.look_at(pools)
            self._rules.look_again()

    def _note_pools(self, node: NodeName, pools: frozenset[PoolID]) -> None:  # noqa: ARG002 # as listeners are told
        if pools:
            self._rules.look_again()

    def _is_tainted(self, driver: DriverName, node: NodeName) -> bool:
        """True if our own slices carry the taint of owned devices."""
        if not self._ownership.taints_driver(driver):
            return False
        return self._ownership.owns_node(self._slices.labels_of(node))

    async def _retry_fields(self, stop: asyncio.Event) -> None:
        """Send now and then what the API server did not keep."""
        while not stop.is_set():
            await first_of(stop, within_s=_FEATURES_S)
            self._reconciler.look_at(self._slices.forget_dropped())


def _read_node(raw: dict[str, Any]) -> Node:
    """Read the fields of a Node that slices depend on."""
    metadata = raw["metadata"]
    labels = metadata.get("labels") or {}
    return Node(
        metadata=ObjectMeta(name=metadata["name"], uid=metadata["uid"], labels=labels)
    )


def _read_slice(raw: dict[str, Any]) -> ResourceSlice | None:
    """Read a slice; only the outline of one that others write.

    Raises:
        ContractsError: it cannot be read.
    """
    metadata = ObjectMeta(name=raw["metadata"]["name"])
    spec = read_outline(raw)
    if not is_our_name(metadata.name, spec):
        return ResourceSlice(metadata=metadata, spec=spec)
    value = decode_object(raw).value
    return value if isinstance(value, ResourceSlice) else None
