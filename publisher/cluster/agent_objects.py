"""All that is written because of node agents and ownership, as one part of a service.

Slices of announced pools, taint rules of owned drivers, conditions of devices in
claims: each has its writer; here they get what they must know and begin when all of it
is known. One publisher at a time runs the tasks, all may take pages in.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from contracts.claim import ResourceClaim
from contracts.device import DeviceTaintRule, ResourceSlice
from contracts.errors import ContractsError
from contracts.ids import ClusterName, DriverName, NodeName, PoolID
from contracts.kubernetes import KubernetesObject, decode_object
from contracts.process.bus import Bus
from contracts.process.log import get_logger
from contracts.process.run import Task
from contracts.process.waits import first_of
from contracts.workload import Node
from publisher.announced import Announced
from publisher.announcements import Announcements
from publisher.api import KubernetesApi
from publisher.changes import Change, Page
from publisher.cluster.device_status import DeviceStatusWriter
from publisher.cluster.known_slices import KnownSlices
from publisher.cluster.ownership import Ownership
from publisher.cluster.slice_sink import ClusterSlices
from publisher.cluster.taint_rules import TaintRuleWriter
from publisher.kinds import NODE, Kind, ServedKinds
from publisher.slice_writer import SliceWriter
from publisher.slices import is_ours

_FEATURES_S = 600.0
"""How often it is tried whether the API server keeps a field by now."""

log = get_logger(__name__)


class AgentObjects:
    """What is known, and who writes."""

    def __init__(
        self,
        cluster: ClusterName,
        bus: Bus,
        api: KubernetesApi,
        served: ServedKinds,
        *,
        ownership: Ownership,
        now: Callable[[], str],
    ) -> None:
        self._ownership = ownership
        self._known = KnownSlices()
        self._announced = Announced(self._is_tainted)
        self._announcements = Announcements(cluster, bus, self._announced)
        sink = ClusterSlices(api, served.resource_slice, self._known)
        self._slices = SliceWriter(sink, self._announcements, now)
        rules = served.device_taint_rule
        self._rules = TaintRuleWriter(
            api, rules, ownership, self._known, self._announced
        )
        self._status = DeviceStatusWriter(
            api, served.resource_claim, self._announced, now
        )
        self._announcements.listen(self._status.hear)
        self._announcements.listen(self._hear)
        self.kinds: tuple[Kind, ...] = (
            NODE,
            served.resource_slice,
            served.resource_claim,
            *(() if rules is None else (rules,)),
        )
        """What is to be followed."""
        self._unsynced = {kind.name for kind in self.kinds}
        self._synced = asyncio.Event()

    def tasks(self) -> dict[str, Task]:
        """Name what runs for as long as we lead."""
        return {
            **self._announcements.tasks(),
            "slices": self._when_known(self._slices.publish),
            "taint-rules": self._when_known(self._rules.write),
            "device-status": self._when_known(self._status.write),
            "features": self._try_features,
        }

    def take(self, page: Page, kind: Kind) -> None:
        """Take in what changed of a kind, whether we lead or not."""
        for change in page.changes:
            try:
                self._apply(change)
            except ContractsError as error:
                name = f"{kind.name} {change.key}"
                log.warning("object.refused", object=name, reason=str(error)[:500])
        if page.synced and kind.name in self._unsynced:
            self._unsynced.discard(kind.name)
            if not self._unsynced:
                self._synced.set()

    def _apply(self, change: Change) -> None:
        """Take in one change.

        Raises:
            ContractsError: the object cannot be read.
        """
        name, item = change.key, _read(change.object)
        match change.kind:
            case "ResourceSlice":
                part = item if isinstance(item, ResourceSlice) else None
                self._heed(self._known.apply_slice(name, part))
            case "Node":
                self._apply_node(
                    NodeName(name), item if isinstance(item, Node) else None
                )
            case "DeviceTaintRule":
                rule = item if isinstance(item, DeviceTaintRule) else None
                self._rules.apply_rule(name, rule)
            case "ResourceClaim":
                claim = item if isinstance(item, ResourceClaim) else None
                self._status.apply_claim(name, claim)
            case _:
                return

    def _apply_node(self, name: NodeName, node: Node | None) -> None:
        if self._known.apply_node(name, node):
            self._heed(self._announced.of_node(name))

    def _heed(self, pools: frozenset[PoolID]) -> None:
        if pools:
            self._slices.hear(pools)
        self._rules.look_again()

    def _hear(self, node: NodeName, pools: frozenset[PoolID]) -> None:  # noqa: ARG002 # as listeners are told
        if pools:
            self._rules.look_again()

    def _is_tainted(self, driver: DriverName, node: NodeName) -> bool:
        """Whether our own slices carry the taint of owned devices."""
        if not self._ownership.taints_driver(driver):
            return False
        return self._ownership.owns_node(self._known.labels(node) or {})

    def _when_known(self, task: Task) -> Task:
        """Let a task begin once the cluster and the agents are known."""

        async def begin(stop: asyncio.Event) -> None:
            await self._announcements.wait_synced(stop)
            await first_of(self._synced, stop)
            if not stop.is_set():
                await task(stop)

        return begin

    async def _try_features(self, stop: asyncio.Event) -> None:
        """Send now and then what the API server did not keep."""
        while not stop.is_set():
            await first_of(stop, within_s=_FEATURES_S)
            self._slices.hear(self._known.forget_kept())


def _read(raw: Mapping[str, Any] | None) -> KubernetesObject | None:
    """Read an object; of slices that others write, all but the devices.

    Raises:
        ContractsError: it cannot be read.
    """
    if raw is None:
        return None
    if raw.get("kind") != "ResourceSlice":
        return decode_object(raw).value
    spec = raw.get("spec") or {}
    slim = {key: value for key, value in spec.items() if key not in _HEAVY}
    item = decode_object({**raw, "spec": slim}).value
    if isinstance(item, ResourceSlice) and is_ours(item):
        return decode_object(raw).value
    return item


_HEAVY = ("devices", "sharedCounters")
