"""The cluster of a local stack: how to reach it, and that the publisher can work there.

Read and checked ahead of everything that starts, with the rights that the publisher
will have: so a wrong name or a missing right is one line at once, and not a service
that ends again and again.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from msgspec import Struct

from contracts.counts import counted, listed
from contracts.names import LEASE_NAME
from moorings.errors import BadInputError
from moorings.manifests import describe_yaml_error
from publisher.kube.holder import name_holder

if TYPE_CHECKING:  # kubernetes_asyncio comes with an extra
    from runtime.kube.api import KubernetesApi
    from runtime.kube.kinds import Kind

NAMESPACE = "moorings-system"
_LEASE = f"{NAMESPACE}/{LEASE_NAME}"
_INSTALLED = ("publisher", "solver")
"""Deployments of k8s/base that decide for the cluster or write to it."""
_LOOK_S = 0.5


class ClusterAccess(Struct, frozen=True, kw_only=True):
    """A cluster, and how to get there."""

    kubeconfig: Path
    context: str
    server: str
    """Address of its API server."""


def read_access(file: Path, context: str = "") -> ClusterAccess:
    """Read a kubeconfig; `context` is one of its contexts, or the current one.

    Raises:
        BadInputError: it cannot be read, is no kubeconfig, or lacks what is named.
    """
    try:
        config = yaml.safe_load(file.read_text())
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "is not text"
        raise BadInputError(str(file), str(reason)) from error
    except yaml.YAMLError as error:
        raise BadInputError(str(file), describe_yaml_error(error)) from error
    contexts = _read_named(config, "contexts", "context")
    if not contexts:
        raise BadInputError(str(file), "is not a kubeconfig: it has no contexts")
    names = ", ".join(sorted(contexts))
    chosen = context or str(config.get("current-context") or "")
    if not chosen:
        reason = f"has no current context; choose one with --context: {names}"
        raise BadInputError(str(file), reason)
    if chosen not in contexts:
        raise BadInputError(str(file), f"has no context {chosen!r}; it has {names}")
    clusters = _read_named(config, "clusters", "cluster")
    name = str(contexts[chosen].get("cluster"))
    server = str(clusters.get(name, {}).get("server") or "")
    if not server:
        reason = f"context {chosen!r} is of cluster {name!r}, which has no server"
        raise BadInputError(str(file), reason)
    return ClusterAccess(kubeconfig=file.resolve(), context=chosen, server=server)


def _read_named(config: Any, plural: str, singular: str) -> dict[str, dict[str, Any]]:
    """Read a list of names, each with what it stands for; anything else is left out."""
    entries = config.get(plural) if isinstance(config, dict) else None
    return {
        str(entry.get("name")): entry[singular]
        for entry in (entries if isinstance(entries, list) else ())
        if isinstance(entry, dict) and isinstance(entry.get(singular), dict)
    }


async def check_cluster(access: ClusterAccess) -> str:
    """Check that the publisher can work; returns what tells this cluster from others.

    Raises:
        KubernetesError: the API server does not answer, or serves no devices.
        BadInputError: the namespace of the Lease is not there, a right is missing, or
            another publisher leads or is installed.
    """
    from runtime.kube.errors import NotFoundError  # noqa: PLC0415
    from runtime.kube.kinds import GANG  # noqa: PLC0415
    from runtime.kube.kinds import NAMESPACE as NAMESPACES  # noqa: PLC0415

    async with open_api(access) as api:
        served = await api.fetch_served_kinds()
        try:
            namespace = await api.get(NAMESPACES, NAMESPACE)
        except NotFoundError as error:
            reason = f"has no namespace {NAMESPACE}: kubectl create namespace"
            raise BadInputError(access.server, f"{reason} {NAMESPACE}") from error
        if missing := await _find_missing_rights(api, (*served.followed, GANG)):
            reason = f"missing permissions: {'; '.join(missing)}"
            raise BadInputError(access.server, reason)
        await _check_nobody_leads(access, api)
    return str(namespace["metadata"]["uid"])


async def wait_leading(access: ClusterAccess, name: str) -> None:
    """Return once the publisher of a name leads, having read everything.

    Raises:
        KubernetesError: the Lease may not be read.
    """
    async with open_api(access) as api:
        while True:
            holder, _, _ = await _read_lease(api)
            if holder.startswith(f"{name}-"):
                return
            await asyncio.sleep(_LOOK_S)


async def _find_missing_rights(api: KubernetesApi, kinds: Iterable[Kind]) -> list[str]:
    """Name the rules that the publisher needs to read and does not have."""
    from runtime.kube.errors import (  # noqa: PLC0415
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


async def _check_nobody_leads(access: ClusterAccess, api: KubernetesApi) -> None:
    """Wait until an abandoned Lease expires; one that is renewed has a leader.

    Raises:
        BadInputError: a publisher leads, or one that is installed may lead at any
            moment. It has another bus, so ours cannot stand by.
    """
    from publisher.kube.former import describe_process, is_gone  # noqa: PLC0415

    await _check_nothing_installed(access, api)
    holder, version, duration_s = await _read_lease(api)
    ours = describe_process("")
    expires_s = asyncio.get_running_loop().time() + duration_s
    while (
        holder
        and not is_gone(holder, ours)
        and asyncio.get_running_loop().time() < expires_s
    ):
        await asyncio.sleep(_LOOK_S)
        holder, new_version, _ = await _read_lease(api)
        if holder and new_version != version:
            name = name_holder(holder)
            reason = f"Lease {_LEASE}: held by {name}, which serves this cluster"
            raise BadInputError(access.server, reason)


async def _check_nothing_installed(access: ClusterAccess, api: KubernetesApi) -> None:
    """Check that no installed service has replicas, as far as we may read that.

    Raises:
        BadInputError: one has.
    """
    from runtime.kube.errors import (  # noqa: PLC0415
        NotFoundError,
        PermissionDeniedError,
    )
    from runtime.kube.kinds import DEPLOYMENT  # noqa: PLC0415

    running = []
    for name in _INSTALLED:
        try:
            found = await api.get(DEPLOYMENT, f"{NAMESPACE}/{name}")
        except (NotFoundError, PermissionDeniedError):
            continue
        if replicas := (found.get("spec") or {}).get("replicas", 1):
            running.append(f"{name} ({counted(replicas, 'replica')})")
    if running:
        names = " ".join(name.partition(" ")[0] for name in running)
        reason = (
            f"Moorings is installed in namespace {NAMESPACE}: Deployment "
            f"{listed(running)} would serve this cluster from another bus; first "
            f"kubectl -n {NAMESPACE} scale deployment {names} --replicas=0"
        )
        raise BadInputError(access.server, reason)


async def _read_lease(api: KubernetesApi) -> tuple[str, str, float]:
    """Return the Lease's holder, resourceVersion, and duration in seconds."""
    from publisher.kube.leadership import lease_of  # noqa: PLC0415
    from runtime.kube.errors import NotFoundError  # noqa: PLC0415
    from runtime.kube.kinds import LEASE  # noqa: PLC0415

    try:
        lease = lease_of(await api.get(LEASE, _LEASE))
    except NotFoundError:
        lease = lease_of(None)
    return lease.holder, lease.resource_version, lease.duration_s


@asynccontextmanager
async def open_api(
    access: ClusterAccess, manager: str = "moorings"
) -> AsyncIterator[KubernetesApi]:
    """Prepare the way to a cluster's API server; nothing is sent before a call.

    What is written is the field manager's.

    Raises:
        KubernetesError: the kubeconfig cannot be used.
    """
    from runtime.kube.api import KubernetesApi  # noqa: PLC0415

    way = KubernetesApi.open(str(access.kubeconfig), access.context, manager=manager)
    async with way as api:
        yield api


async def list_all(
    api: KubernetesApi, kind: Kind, *, namespace: str = "", field_selector: str = ""
) -> list[dict[str, Any]]:
    """Read all objects of a kind, page by page.

    Raises:
        ApiError: as its tree says.
    """
    items: list[dict[str, Any]] = []
    token = ""
    while True:
        page = await api.list_page(
            kind, token, namespace=namespace, field_selector=field_selector
        )
        items += page.items or ()
        token = page.token
        if not token:
            return items
