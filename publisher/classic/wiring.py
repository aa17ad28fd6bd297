"""The controller of classic DRA as a process: what is read, and what a leader does.

In place of the publisher beside a cluster: an API server of Kubernetes 1.30 or 1.31
serves nothing of what that one writes.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any

import msgspec
from msgspec import Struct

from contracts.release import RELEASE, make_release, release_of
from publisher.classic.controller import ClassicController
from publisher.classic.known import ClassicView
from publisher.classic.objects import CONTEXT, GROUP, V1ALPHA2, V1ALPHA3, kinds_of
from publisher.cluster.event_writer import EventWriter
from publisher.cluster.gang_bus import GangBus
from publisher.cluster.group_queue import GroupQueue
from publisher.cluster.liveness import say_leading
from publisher.cluster.state_publisher import StatePublisher
from publisher.cluster.way import open_way
from publisher.config import PublisherConfig
from publisher.kube.changes import Change, ChangePage
from publisher.kube.discovery import LOOK_S
from publisher.kube.informer import Informer, follow
from publisher.kube.lease import LeaderLease
from runtime.bus.bus import Bus
from runtime.errors import ConfigError, RestartError
from runtime.kube.api import KubernetesApi
from runtime.kube.errors import (
    ApiError,
    NotFoundError,
    PermissionDeniedError,
    UnavailableError,
)
from runtime.kube.kinds import RESOURCE_CLAIM, VERSIONS
from runtime.log import get_logger
from runtime.retry import retry
from runtime.run import ServiceTasks, Task
from runtime.waits import first_of
from runtime.wire import BusSettings

_SETTING = "PUBLISHER_CLASSIC_CONTROLLERS"
_GATE = "DRAControlPlaneController"
_IS_OFF = re.compile(
    rf'^kubernetes_feature_enabled{{name="{_GATE}"[^}}]*}} 0$', re.MULTILINE
)

log = get_logger(__name__)


@asynccontextmanager
async def open_classic(
    config: PublisherConfig, settings: BusSettings, now: Callable[[], str]
) -> AsyncIterator[dict[str, Task]]:
    """Open the way to the cluster, then the bus; yields what runs from then on.

    Raises:
        ConfigError: there is no way to a cluster, or it is not one for this role.
        ApiError: the API server does not answer.
        BusError: the streams are not as they should be.
    """
    async with open_way(config) as way:
        api = way.api
        version = await retry(
            "discover", partial(find_version, api), on=UnavailableError
        )
        release = await _read_release(api)
        async with Bus.open(settings) as bus:
            await bus.wait_connected()
            await bus.ensure_streams()
            parts = _build_parts(
                config,
                api=api,
                bus=bus,
                version=version,
                identity=way.identity,
                now=now,
            )
            if release:
                said = Change(RELEASE, RELEASE, make_release(release))
                await parts.state.take(ChangePage((said,), synced=False))
            log.info("classic.begins", version=version, release=release)
            tasks: dict[str, Task] = {
                # What the API server holds, and what the bus says of gangs.
                **parts.informer.tasks(),
                **parts.gangs.tasks(parts.informer.synced),
                # So many gangs are worked on side by side, while we lead.
                **{f"gangs-{n}": parts.controller.work for n in range(config.workers)},
                # Holds the Lease, or waits for it; writes only while it is ours.
                "lead": partial(_lead_terms, parts, way.lease),
                # Ends the process when the cluster was upgraded.
                "served": partial(watch_version, api, version),
            }
            synced = parts.synced
            yield ServiceTasks(tasks, lambda: all(event.is_set() for event in synced))


class _ClassicParts(Struct, frozen=True, kw_only=True):
    """The parts of the service that have tasks of their own."""

    informer: Informer
    gangs: GangBus
    queue: GroupQueue
    state: StatePublisher
    controller: ClassicController
    say_leading: Callable[[asyncio.Event], Coroutine[Any, Any, None]]

    @property
    def synced(self) -> tuple[asyncio.Event, ...]:
        """Set once everything was read that was there at the start."""
        return self.informer.synced, self.gangs.synced


def _build_parts(
    config: PublisherConfig,
    *,
    api: KubernetesApi,
    bus: Bus,
    version: str,
    identity: str,
    now: Callable[[], str],
) -> _ClassicParts:
    """Make the parts, each from those before it."""
    cluster = config.cluster
    leads = asyncio.Event()
    queue = GroupQueue(leads)
    view = ClassicView(version, config.classic_controllers, config.workloads)
    gangs = GangBus(cluster, bus, queue.add, view.groups)
    state = StatePublisher(cluster, bus)
    kinds = kinds_of(version)
    controller = ClassicController(
        cluster,
        leads,
        api=api,
        kinds=kinds,
        view=view,
        queue=queue,
        gangs=gangs,
        state=state,
        events=EventWriter(api, identity),
        now=now,
    )
    follows = {name: partial(follow, api, kind) for name, kind in kinds.items()}
    return _ClassicParts(
        informer=Informer(follows, (kinds.keys(), controller.take)),
        gangs=gangs,
        queue=queue,
        state=state,
        controller=controller,
        say_leading=partial(say_leading, bus, cluster, identity, now),
    )


async def _lead_terms(
    parts: _ClassicParts, lease: LeaderLease, stop: asyncio.Event
) -> None:
    """Write while we hold the Lease, once everything was read."""
    writers = (parts.state.publish, parts.say_leading, parts.controller.lead)
    try:
        for event in parts.synced:
            await first_of(event, stop)
        async for lost in lease.terms(stop):
            async with asyncio.TaskGroup() as term:
                for write in writers:
                    term.create_task(write(lost))
    finally:
        await parts.queue.close()


async def find_version(api: KubernetesApi) -> str:
    """Return which old version of resource.k8s.io a cluster serves.

    Raises:
        ConfigError: it serves a newer one too, or none with classic DRA.
        ApiError: the API server does not say.
    """
    served = await api.fetch_served(GROUP)
    newer = [v for v in VERSIONS if RESOURCE_CLAIM.plural in served.get(v, ())]
    if newer:
        message = (
            f"the API server serves {GROUP}/{newer[0]}, where nobody asks a "
            "control-plane controller; leave it empty"
        )
        raise ConfigError(_SETTING, message)
    for version in (V1ALPHA3, V1ALPHA2):
        if CONTEXT.plural in served.get(version, ()):
            await _refuse_gate_off(api, version)
            return version
    message = (
        f"the API server serves no {CONTEXT.plural} of {GROUP}: it needs "
        f"--runtime-config={GROUP}/v1alpha3=true (1.31) or v1alpha2=true (1.30)"
    )
    raise ConfigError(_SETTING, message)


async def watch_version(
    api: KubernetesApi, chosen: str, stop: asyncio.Event, every_s: float = LOOK_S
) -> None:
    """Ask now and then whether the same is served, until `stop`.

    Raises:
        RestartError: something else would be chosen now.
    """
    while not stop.is_set():
        with suppress(ApiError):
            try:
                version = await find_version(api)
            except ConfigError as error:
                raise RestartError(str(error)) from error
            if version != chosen:
                raise RestartError(f"the API server serves {version} by now")
        await first_of(stop, within_s=every_s)


async def _refuse_gate_off(api: KubernetesApi, version: str) -> None:
    """Refuse a cluster that clears `spec.controller`, where it can be known."""
    if version != V1ALPHA3:
        return
    try:
        metrics = await api.read_text("/metrics")
    except (NotFoundError, PermissionDeniedError):
        log.warning("classic.gate_unknown", gate=_GATE, reason="/metrics is not ours")
        return
    if _IS_OFF.search(metrics):
        message = (
            f"the feature gate {_GATE} is off: the API server clears spec.controller "
            "of every claim, and kube-scheduler allocates them itself"
        )
        raise ConfigError(_SETTING, message)


async def _read_release(api: KubernetesApi) -> str:
    try:
        return release_of(msgspec.json.decode(await api.read_text("/version")))
    except (NotFoundError, PermissionDeniedError):
        return ""
