"""The publisher beside a cluster: what all of them read, what only the leader does.

Every publisher follows the API server and the bus and keeps its View warm; only the
one that holds the Lease writes. Nothing is written before everything was read once.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import (
    AsyncIterator,
    Callable,
    Coroutine,
    Iterable,
    Mapping,
)
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Any

from msgspec import Struct

from contracts.claim import ResourceClaim
from contracts.gang import Gang, GangPhase
from contracts.pods.membership import list_owner_kinds
from contracts.release import RELEASE, make_release
from publisher.cluster.budgets import Budgets
from publisher.cluster.device_publisher import DevicePublisher
from publisher.cluster.gang_bus import GangBus
from publisher.cluster.gang_controller import GangController
from publisher.cluster.group_queue import GroupQueue
from publisher.cluster.liveness import say_leading
from publisher.cluster.observer import Observer
from publisher.cluster.opened_pods import OpenedPods
from publisher.cluster.patch_writer import PatchWriter
from publisher.cluster.report_publisher import ReportPublisher
from publisher.cluster.state_publisher import StatePublisher
from publisher.cluster.status_writer import StatusWriter
from publisher.cluster.sweeper import Sweeper
from publisher.cluster.way import open_way
from publisher.config import PublisherConfig
from publisher.gangs.bypassed_pods import BypassedPods
from publisher.gangs.notes import UNOWNED, Subject, note_unowned
from publisher.gangs.view import GroupKey
from publisher.kube.changes import Change, ChangePage
from publisher.kube.discovery import watch_served
from publisher.kube.informer import Follow, Informer, follow
from publisher.kube.lease import LeaderLease
from publisher.kueue.admission_checks import AdmissionChecks
from publisher.metrics import FOREIGN_DEVICES, MOST_DRIVERS
from publisher.ownership.ownership import Ownership
from publisher.ownership.state_filter import StateFilter
from publisher.slices.announcement_limits import AnnouncementLimits
from runtime.bus.bus import Bus
from runtime.kube.api import KubernetesApi
from runtime.kube.errors import UnavailableError
from runtime.kube.kinds import (
    GANG,
    GANG_OWNERS,
    KUEUE_KINDS,
    LEASE,
    POD_GROUP,
    QUEUE_KINDS,
    STORAGE_KINDS,
    ServedKinds,
)
from runtime.kube.request_limit import RequestLimit
from runtime.log import get_logger
from runtime.metrics import BoundedLabels
from runtime.retry import retry
from runtime.run import ServiceTasks, Task
from runtime.tracing import GangTraces, open_traces
from runtime.waits import first_of
from runtime.wire import BusSettings

log = get_logger(__name__)
_UNPUBLISHED = frozenset(
    kind.name for kind in (*STORAGE_KINDS, *GANG_OWNERS, POD_GROUP, *KUEUE_KINDS)
)
"""Kinds that only the publisher decides by: the bus does not carry them."""
_Writer = Callable[[asyncio.Event], Coroutine[Any, Any, None]]
"""Works until the event is set: leading is over, or the service stops."""


@asynccontextmanager
async def open_cluster(
    config: PublisherConfig, settings: BusSettings, now: Callable[[], str]
) -> AsyncIterator[dict[str, Task]]:
    """Open the way to the cluster, then the bus; yields what runs from then on.

    Raises:
        ConfigError: there is no way to a cluster, and no folder either.
        ClusterError: nothing of resource.k8s.io is served that we know.
        ApiError: the API server does not answer.
        BusError: the streams are not as they should be.
    """
    limit = RequestLimit(config.kube_api_qps, config.kube_api_burst)
    async with AsyncExitStack() as stack:
        way = await stack.enter_async_context(open_way(config, limit))
        api = way.api
        kinds = await retry(
            "discover",
            partial(api.fetch_served_kinds, config.api_versions),
            on=UnavailableError,
        )
        traces = await stack.enter_async_context(open_traces(config, "publisher"))
        async with Bus.open(settings) as bus:
            await bus.wait_connected()
            await bus.ensure_streams()
            parts = _build_parts(
                config,
                api=api,
                limit=limit,
                kinds=kinds,
                bus=bus,
                traces=traces,
                identity=way.identity,
                now=now,
            )
            if kinds.release:
                said = Change(RELEASE, RELEASE, make_release(kinds.release))
                await parts.state.take(ChangePage((said,), synced=False))
            tasks = _list_tasks(parts, config, api=api, lease=way.lease, kinds=kinds)
            synced = (parts.informer.synced, parts.gangs.synced)
            yield ServiceTasks(tasks, lambda: all(event.is_set() for event in synced))


class _Parts(Struct, frozen=True, kw_only=True):
    """The parts of the service that have tasks of their own."""

    informer: Informer
    gangs: GangBus
    queue: GroupQueue
    state: StatePublisher
    statuses: StatusWriter
    reports: ReportPublisher
    controller: GangController
    limit: RequestLimit
    sweeper: Sweeper
    devices: DevicePublisher
    checks: AdmissionChecks
    say_leading: _Writer
    owns_nothing: bool


def _build_parts(
    config: PublisherConfig,
    *,
    api: KubernetesApi,
    limit: RequestLimit,
    kinds: ServedKinds,
    bus: Bus,
    traces: GangTraces,
    identity: str,
    now: Callable[[], str],
) -> _Parts:
    """Make the parts, each from those before it."""
    cluster = config.cluster
    ownership = Ownership.of(
        config.owned_drivers, config.owned_classes, config.owned_nodes
    )

    def owns(claim: ResourceClaim) -> bool:
        return ownership.owns_claim(claim.spec)

    leads = asyncio.Event()
    # First what is known: the groups that changed, what the cluster holds, what the
    # bus says of gangs and of devices.
    queue = GroupQueue(leads)
    observer = Observer(
        kinds.resource_claim,
        queue.add,
        config.workloads,
        now=now,
        late_gates=config.late_gates,
        bypassed=BypassedPods(owns, owns_classes=bool(ownership.classes)),
        # Classes say which claims are ours, taints keep kube-scheduler from them.
        allocates_alone=bool(ownership.classes and ownership.drivers),
    )

    async def note_changed(groups: Iterable[GroupKey]) -> None:
        await queue.add(groups)
        checks.look(map(str, groups))

    gangs = GangBus(cluster, bus, note_changed, observer.view.groups, traces)
    # Then who writes: state on the bus; patches, statuses and events for gangs;
    # slices, taint rules and conditions for devices.
    state = StatePublisher(cluster, bus, OpenedPods(gangs.find))
    statuses = StatusWriter(api, observer, identity, now)

    def exists(group: GroupKey) -> bool:
        return observer.view.has_group(group) or bool(gangs.of_group(group))

    reports = ReportPublisher(cluster, bus, exists=exists, now=now)
    controller = GangController(
        cluster,
        leads,
        queue=queue,
        observer=observer,
        gangs=gangs,
        state=state,
        patches=PatchWriter(
            api,
            observer,
            state,
            leads,
            has_allocation_times=kinds.has_allocation_times,
        ),
        budgets=Budgets(api),
        statuses=statuses,
        reports=reports,
        owns=owns,
        now=now,
        grace_s=config.refusal_grace_s,
        allocates_bound=config.allocate_bound,
    )
    devices = DevicePublisher(
        cluster,
        bus,
        api=api,
        served=kinds,
        claims=observer.view,
        ownership=ownership,
        now=now,
        limits=AnnouncementLimits.of(config),
        evictions_percent=config.evictions_percent,
        publish_slices=config.publish_slices,
    )

    def find_gang(key: str) -> tuple[Gang | None, Mapping[str, Any]]:
        # The decision is on the bus a second before the status is written.
        gang, status = observer.gang_of(key)
        namespace, _, name = key.partition("/")
        records = gangs.of_group(GroupKey(namespace, name))
        if gang is not None and any(record.holds_for(gang) for record in records):
            status = {**status, "phase": GangPhase.DECIDED}
        return gang, status

    checks = AdmissionChecks(
        api,
        find_gang,
        patience_s=config.kueue_patience_s,
        retry_s=config.kueue_retry_s,
        now=now,
    )
    # Last who reads the cluster: every kind once, for all who must know it.
    offered, drivers = StateFilter(ownership), BoundedLabels(MOST_DRIVERS)

    async def take_state(page: ChangePage) -> None:
        await state.take(offered.of(page))
        for driver, devices in offered.foreign_devices.items():
            if driver:
                FOREIGN_DEVICES.labels(*drivers.of(driver)).set(devices)

    follows = _follow_kinds(api, kinds, config)
    told = follows.keys() - _UNPUBLISHED
    if not config.kueue_checks:
        told |= {kind.name for kind in QUEUE_KINDS}
    informer = Informer(
        follows,
        (observer.kinds, observer.take),
        (told, take_state),
        (devices.kinds, devices.take),
        (checks.kinds, checks.take),
    )
    return _Parts(
        informer=informer,
        gangs=gangs,
        queue=queue,
        state=state,
        statuses=statuses,
        reports=reports,
        controller=controller,
        limit=limit,
        sweeper=Sweeper(api, observer, config.sweep_s),
        devices=devices,
        checks=checks,
        owns_nothing=ownership.is_nothing,
        say_leading=partial(say_leading, bus, cluster, identity, now),
    )


def _follow_kinds(
    api: KubernetesApi, kinds: ServedKinds, config: PublisherConfig
) -> dict[str, Follow]:
    """Return how each kind is followed: some may be absent, or not ours to read."""
    owners = list_owner_kinds(config.workloads)
    groups = (kinds.pod_group, kinds.composite_pod_group)
    known = [kind for kind in (*GANG_OWNERS, *groups) if kind is not None]
    optional = [kind for kind in known if kind.name in owners]
    # Beside Kueue its controllers count quota; nobody else may.
    optional += KUEUE_KINDS if config.kueue_checks else QUEUE_KINDS
    follows: dict[str, Follow] = {
        kind.name: partial(follow, api, kind)
        for kind in (*kinds.followed, *STORAGE_KINDS)
    }
    follows[GANG.name] = partial(follow, api, GANG, may_be_absent=True)
    follow_some = partial(follow, may_be_absent=True, may_be_denied=True)
    return follows | {kind.name: partial(follow_some, api, kind) for kind in optional}


def _list_tasks(
    parts: _Parts,
    config: PublisherConfig,
    *,
    api: KubernetesApi,
    lease: LeaderLease,
    kinds: ServedKinds,
) -> dict[str, Task]:
    """Name every task of the service; those of a leader are in `_lead_until`."""
    workers = range(config.workers)
    return {
        # What the API server holds, read by every publisher, so that one that begins
        # to lead knows it already: watch-Pod, watch-Node, ...
        **parts.informer.tasks(),
        # What the bus says of gangs, for the same reason.
        **parts.gangs.tasks(parts.informer.synced),
        # What node agents say of their devices and of their health.
        **parts.devices.tasks(),
        # So many groups of pods are worked on side by side, while we lead.
        **{f"gangs-{index}": parts.controller.work for index in workers},
        # Drops gangs that are over while another publisher leads, and tries again
        # what admission refused while we do.
        "gangs-forget": partial(_forget_gangs, parts),
        # Statuses of Gangs and events, behind the work and never in its way.
        "tell": parts.statuses.write,
        # Holds the Lease, or waits for it; writes only while it is ours.
        "lead": partial(_lead_terms, parts, lease),
        # Ends the process when the cluster serves other versions than at the start.
        "served": partial(watch_served, api, config.api_versions, kinds),
    }


async def _lead_terms(parts: _Parts, lease: LeaderLease, stop: asyncio.Event) -> None:
    """Write while we hold the Lease, once everything was read."""
    try:
        await _read_everything(parts, stop)
        # What was read stays for long and is in no cycles. Of a large cluster it
        # takes the collector 30 ms and more to see that, in which nothing is said.
        gc.collect()
        gc.freeze()
        async for lost in lease.terms(stop):
            await _lead_until(parts, lease, lost)
    finally:
        await parts.queue.close()


async def _say_what_is_owned(parts: _Parts, lease: LeaderLease) -> None:
    """Warn if nothing is owned: two allocators draw from the same devices then."""
    if not parts.owns_nothing:
        return
    log.warning("ownership.none", reason=UNOWNED)
    namespace, _, name = lease.key.partition("/")
    subject = Subject(
        api_version=LEASE.api_version,
        kind=LEASE.name,
        namespace=namespace,
        name=name,
        uid=lease.uid,
    )
    await parts.statuses.tell(note_unowned(subject))


async def _lead_until(parts: _Parts, lease: LeaderLease, lost: asyncio.Event) -> None:
    """Run what only the publisher that leads may do, until it leads no more."""
    writers: dict[str, _Writer] = {
        # Says on the bus what the cluster holds; first, because gates that open wait
        # for it.
        "state": parts.state.publish,
        # Says on the bus that we lead: nobody else can tell when nobody does.
        "leads": parts.say_leading,
        # Says on the bus what the pods wait for that were not submitted.
        "reports": parts.reports.publish,
        # Frees claims that hold devices for nobody.
        "sweep": parts.sweeper.sweep,
        # Slices of announced pools, taint rules of owned drivers, health in claims.
        "devices": parts.devices.write,
        # What becomes of Workloads that Kueue asks us about.
        "kueue": parts.checks.write,
        # Lets the workers write for gangs, and waits for them in the end.
        "gangs": parts.controller.lead,
        # Lets go what waits for the client limit: all has to end before others lead.
        "limit": partial(_lift_limit, parts.limit),
    }
    async with asyncio.TaskGroup() as term:
        term.create_task(_say_what_is_owned(parts, lease), name="ownership")
        for name, write in writers.items():
            term.create_task(write(lost), name=name)
    parts.limit.restore()


async def _lift_limit(limit: RequestLimit, lost: asyncio.Event) -> None:
    await lost.wait()
    limit.lift()


async def _forget_gangs(parts: _Parts, stop: asyncio.Event) -> None:
    await _read_everything(parts, stop)
    await parts.controller.forget(stop)


async def _read_everything(parts: _Parts, stop: asyncio.Event) -> None:
    for synced in (parts.informer.synced, parts.gangs.synced):
        await first_of(synced, stop)
