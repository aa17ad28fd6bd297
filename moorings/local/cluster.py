"""The cluster of a local stack: what must be so before it starts, and once it runs.

Asked with the rights that the publisher will have, so that what it lacks is one line at
once and not a log that somebody has to find.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from contracts.names import LEASE_NAME
from moorings.errors import InputError
from moorings.local.kubeconfig import ClusterAccess

if TYPE_CHECKING:  # kubernetes_asyncio comes with an extra
    from publisher.kube.api import KubernetesApi
    from publisher.kube.kinds import Kind

NAMESPACE = "moorings-system"
_LEASE = f"{NAMESPACE}/{LEASE_NAME}"
_LOOK_S = 0.5


async def reach(access: ClusterAccess) -> str:
    """See that the publisher can work; gives what tells this cluster from others.

    Raises:
        PublisherError: the API server does not answer, or serves no devices.
        InputError: the namespace of the Lease is not there, a right is missing, or a
            publisher leads already.
    """
    from publisher.errors import NotFoundError  # noqa: PLC0415
    from publisher.kube.kinds import GANG  # noqa: PLC0415
    from publisher.kube.kinds import NAMESPACE as NAMESPACES  # noqa: PLC0415

    async with _opened(access) as api:
        served = await api.fetch_served_kinds()
        try:
            found = await api.get(NAMESPACES, NAMESPACE)
        except NotFoundError as error:
            reason = f"has no namespace {NAMESPACE}: kubectl create namespace"
            raise InputError(access.server, f"{reason} {NAMESPACE}") from error
        if missing := await _unreadable(api, (*served.followed, GANG)):
            reason = f"missing permissions: {'; '.join(missing)}"
            raise InputError(access.server, reason)
        await _see_nobody_leads(access, api)
    return str(found["metadata"]["uid"])


async def await_leading(access: ClusterAccess, name: str) -> None:
    """Return once the publisher of a name leads, having read everything.

    Raises:
        PublisherError: the Lease may not be read.
    """
    async with _opened(access) as api:
        while True:
            holder, _, _ = await _lease_holder(api)
            if holder.startswith(f"{name}-"):
                return
            await asyncio.sleep(_LOOK_S)


async def _unreadable(api: KubernetesApi, kinds: Iterable[Kind]) -> list[str]:
    """Name the rules by which the publisher would read, and that are missing."""
    from publisher.errors import (  # noqa: PLC0415
        NotFoundError,
        PermissionDeniedError,
        ThrottledError,
    )

    missing = []
    for kind in kinds:
        try:
            await api.list_page(kind, field_selector="metadata.name=none")
        except PermissionDeniedError as error:
            missing.append(error.rule or str(error))
        except (NotFoundError, ThrottledError):
            continue  # Gangs: their CRD may be absent, or have come just now
    return missing


async def _see_nobody_leads(access: ClusterAccess, api: KubernetesApi) -> None:
    """Wait until a Lease that nobody gave back is over; who renews it, leads.

    Raises:
        InputError: a publisher leads. It has another bus, so ours cannot stand by.
    """
    holder, version, duration_s = await _lease_holder(api)
    over_s = asyncio.get_running_loop().time() + duration_s
    while holder and asyncio.get_running_loop().time() < over_s:
        await asyncio.sleep(_LOOK_S)
        now, changed, _ = await _lease_holder(api)
        if now and changed != version:
            reason = f"Lease {_LEASE}: held by {now}, which decides for this cluster"
            raise InputError(access.server, reason)
        holder = now


async def _lease_holder(api: KubernetesApi) -> tuple[str, str, float]:
    """Give who holds the Lease, its resourceVersion, and its duration in seconds."""
    from publisher.errors import NotFoundError  # noqa: PLC0415
    from publisher.kube.kinds import LEASE  # noqa: PLC0415
    from publisher.kube.leadership import lease_of  # noqa: PLC0415

    try:
        lease = lease_of(await api.get(LEASE, _LEASE))
    except NotFoundError:
        lease = lease_of(None)
    return lease.holder, lease.resource_version, lease.duration_s


@asynccontextmanager
async def _opened(access: ClusterAccess) -> AsyncIterator[KubernetesApi]:
    from publisher.kube.api import KubernetesApi  # noqa: PLC0415

    async with KubernetesApi.open(str(access.kubeconfig), access.context) as api:
        yield api
