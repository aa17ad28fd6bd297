"""The way to a cluster, and the Lease by which its publishers agree who writes."""

from __future__ import annotations

import os
import secrets
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from msgspec import Struct

from contracts.names import LEASE_NAME
from publisher.config import PublisherConfig
from publisher.kube.former import describe_process
from publisher.kube.lease import LeaderLease
from runtime.errors import ConfigError
from runtime.kube.api import KubernetesApi
from runtime.kube.errors import ClusterError
from runtime.kube.request_limit import RequestLimit


class ClusterWay(Struct, frozen=True, kw_only=True):
    """How a publisher reaches its cluster, and by what name it leads."""

    api: KubernetesApi
    lease: LeaderLease
    identity: str


@asynccontextmanager
async def open_way(
    config: PublisherConfig, limit: RequestLimit | None = None
) -> AsyncIterator[ClusterWay]:
    """Open the way to the cluster; `limit` says how many requests go a second.

    Raises:
        ConfigError: there is none.
    """
    way = (config.kubeconfig, config.context)
    async with AsyncExitStack() as stack:
        try:
            opening = KubernetesApi.open(*way, limit=limit)
            api = await stack.enter_async_context(opening)
            # One way for the Lease alone: neither a burst of writes nor the limit must
            # keep a renewal waiting.
            leasing = KubernetesApi.open(*way)
            lease_api = await stack.enter_async_context(leasing)
        except ClusterError as error:
            hint = "" if config.kubeconfig else " (and PUBLISHER_FOLDER is not set)"
            raise ConfigError("PUBLISHER_KUBECONFIG", f"{error}{hint}") from error
        identity = config.name or f"{socket.gethostname()}-{os.getpid()}"
        identity = f"{identity}-{secrets.token_hex(3)}"
        key = f"{config.namespace}/{LEASE_NAME}"
        process = describe_process(config.pod_uid)
        lease = LeaderLease(lease_api, key, identity, config.lease_s, process)
        yield ClusterWay(api=api, lease=lease, identity=identity)
