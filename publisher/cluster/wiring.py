"""The publisher beside a cluster: what all of them read, what only the leader does.

Every publisher follows the API server and the bus and keeps its View warm; only the
one that holds the Lease writes. Nothing is written before everything was read once.
"""

from __future__ import annotations

import asyncio
import gc
import os
import secrets
import socket
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial

from contracts.claim import ResourceClaim
from contracts.names import LEASE_NAME
from publisher.cluster.agent_objects import AgentObjects
from publisher.cluster.gang_bus import GangBus
from publisher.cluster.gang_controller import GangController
from publisher.cluster.observer import Observer
from publisher.cluster.state_publisher import StatePublisher
from publisher.cluster.status_writer import StatusWriter
from publisher.cluster.sweeper import Sweeper
from publisher.config import PublisherConfig
from publisher.errors import ClusterError, UnavailableError
from publisher.gangs.view import GroupKey
from publisher.kube.api import KubernetesApi
from publisher.kube.changes import ChangePage
from publisher.kube.discovery import watch_served
from publisher.kube.informer import Follow, Informer, follow
from publisher.kube.kinds import GANG, ServedKinds
from publisher.kube.lease import LeaderLease
from publisher.ownership.ownership import Ownership
from publisher.ownership.state_filter import StateFilter
from runtime.bus.bus import Bus
from runtime.errors import ConfigError
from runtime.log import get_logger
from runtime.retry import retry
from runtime.run import Task
from runtime.waits import first_of
from runtime.wire import BusSettings

log = get_logger(__name__)


@asynccontextmanager
async def open_cluster(
    config: PublisherConfig, settings: BusSettings, now: Callable[[], str]
) -> AsyncIterator[dict[str, Task]]:
    """Open the way to the cluster, then the bus; gives what runs from then on.

    Raises:
        ConfigError: there is no way to a cluster, and no folder either.
        ClusterError: nothing of resource.k8s.io is served that we know.
        ApiError: the API server does not answer.
        BusError: the streams are not as they should be.
    """
    way = (config.kubeconfig, config.context)
    async with AsyncExitStack() as stack:
        try:
            api = await stack.enter_async_context(KubernetesApi.open(*way))
            # A burst of writes must not keep a renewal waiting.
            leasing = KubernetesApi.open(*way)
            lease_api = await stack.enter_async_context(leasing)
        except ClusterError as error:
            hint = "" if config.kubeconfig else " (and PUBLISHER_FOLDER is not set)"
            raise ConfigError("PUBLISHER_KUBECONFIG", f"{error}{hint}") from error
        identity = config.name or f"{socket.gethostname()}-{os.getpid()}"
        identity = f"{identity}-{secrets.token_hex(3)}"
        key = f"{config.namespace}/{LEASE_NAME}"
        lease = LeaderLease(lease_api, key, identity, config.lease_s)
        kinds = await retry(
            "discover",
            partial(api.fetch_served_kinds, config.api_versions),
            on=UnavailableError,
        )
        async with Bus.open(settings) as bus:
            await bus.wait_connected()
            await bus.ensure_streams()
            cluster = _Cluster(
                config, api=api, kinds=kinds, bus=bus, identity=identity, now=now
            )
            yield cluster.tasks() | {
                "lead": partial(cluster.lead, lease),
                "served": partial(watch_served, api, config.api_versions, kinds),
            }


class _Cluster:
    """The parts of the sink, put together."""

    def __init__(
        self,
        config: PublisherConfig,
        *,
        api: KubernetesApi,
        kinds: ServedKinds,
        bus: Bus,
        identity: str,
        now: Callable[[], str],
    ) -> None:
        ownership = Ownership.of(
            config.owned_drivers, config.owned_classes, config.owned_nodes
        )

        def owns(claim: ResourceClaim) -> bool:
            return ownership.owns_claim(claim.spec)

        cluster = config.cluster
        self._workers = config.workers
        self._observed = Observer(kinds.resource_claim)
        self._state = StatePublisher(cluster, bus)
        self._teller = StatusWriter(api, self._observed, identity, now)
        self._gangs = GangBus(cluster, bus, self._changed)
        self._writer = GangController(
            cluster,
            api=api,
            observed=self._observed,
            gangs=self._gangs,
            state=self._state,
            teller=self._teller,
            owns=owns,
            now=now,
        )
        self._sweeper = Sweeper(api, self._observed, config.sweep_s)
        self._offered = StateFilter(ownership)
        self._agents = AgentObjects(
            (cluster, bus),
            api,
            kinds,
            claims=self._observed.view,
            ownership=ownership,
            now=now,
            publish_slices=config.publish_slices,
        )
        self._observed.listener = self._changed
        follows = _follows(api, kinds)
        self._following = Informer(
            follows,
            (self._observed.kinds, self._observed.take),
            (follows, self._tell),
            (self._agents.kinds, self._agents.take),
        )

    def tasks(self) -> dict[str, Task]:
        """Name what runs whether we lead or not."""
        return {
            **self._following.tasks(),
            **self._gangs.tasks(),
            **self._writer.tasks(self._workers),
            **self._teller.tasks(),
            **self._agents.tasks(),
            "gangs-forget": self._forget,
        }

    async def lead(self, lease: LeaderLease, stop: asyncio.Event) -> None:
        """Write while we hold the Lease, once everything was read."""
        try:
            await self._read_everything(stop)
            # What was read stays for long and is in no cycles. Of a large cluster it
            # takes the collector 30 ms and more to see that, in which nothing is said.
            gc.collect()
            gc.freeze()
            async for lost in lease.terms(stop):
                await self._lead_until(lost)
        finally:
            await self._writer.close()

    async def _read_everything(self, stop: asyncio.Event) -> None:
        for synced in (self._following.synced, self._gangs.synced):
            await first_of(synced, stop)

    async def _forget(self, stop: asyncio.Event) -> None:
        await self._read_everything(stop)
        await self._writer.forget(stop)

    async def _lead_until(self, lost: asyncio.Event) -> None:
        async with asyncio.TaskGroup() as term:
            term.create_task(self._state.publish(lost))
            term.create_task(self._sweeper.sweep(lost))
            term.create_task(self._agents.write(lost))
            await self._writer.lead(leads=True)
            await lost.wait()
            await self._writer.lead(leads=False)

    async def _tell(self, page: ChangePage) -> None:
        """Tell the solver of everything that is its to decide about."""
        await self._state.take(self._offered.of(page))

    async def _changed(self, groups: Iterable[GroupKey]) -> None:
        await self._writer.changed(groups)


def _follows(api: KubernetesApi, kinds: ServedKinds) -> dict[str, Follow]:
    """Say how each kind is followed."""
    follows: dict[str, Follow] = {
        kind.name: partial(follow, api, kind) for kind in kinds.followed
    }
    follows[GANG.name] = partial(follow, api, GANG, may_be_absent=True)
    return follows
