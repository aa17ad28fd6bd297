"""`moorings release-gates`: opens the way for what waits when Moorings goes."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from contracts.counts import counted
from contracts.names import LEASE_NAME
from moorings.cli.exit_codes import ExitCode
from moorings.cli.options import (
    Context,
    Kubeconfig,
    Namespace,
    Output,
    find_kubeconfig,
)
from moorings.cli.output import Format, notify, say, show
from moorings.errors import UsageError
from moorings.gates import (
    Obstacle,
    WaitingPod,
    find_leader,
    list_obstacles,
    list_waiting,
    read_waiting,
)
from moorings.local.cluster import (
    NAMESPACE,
    ClusterAccess,
    list_all,
    open_api,
    read_access,
)
from runtime.kube.errors import (
    ApiError,
    ConflictError,
    NotFoundError,
    PermissionDeniedError,
)
from runtime.kube.kinds import LEASE, POD, Kind

if TYPE_CHECKING:  # kubernetes_asyncio comes with an extra
    from runtime.kube.api import KubernetesApi

COLUMNS = ("namespace", "pod", "gang", "other gates", "gate")
WOULD, OPENED = "would be opened", "opened"
_ADMISSION = "admissionregistration.k8s.io"
_POLICIES = tuple(
    Kind(group=_ADMISSION, plural=f"{name.lower()[:-1]}ies", name=name)
    for name in ("MutatingAdmissionPolicy", "ValidatingAdmissionPolicy")
)
_ATTEMPTS = 5
_AT_ONCE = 32


def register(app: typer.Typer) -> None:
    """Add this command to the app."""
    app.command("release-gates")(release_gates)


def release_gates(
    gangs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="GANG",
            help="Pods of these gangs, controllers or pods; NAME or NAMESPACE/NAME.",
            show_default=False,
        ),
    ] = None,
    all_: Annotated[
        bool, typer.Option("--all", "-A", help="All pods at the gate.")
    ] = False,
    namespace: Namespace = None,
    yes: Annotated[
        bool, typer.Option("--yes", help="Open the gates; without it, only show them.")
    ] = False,
    kubeconfig: Kubeconfig = None,
    context: Context = "",
    output: Output = Format.TABLE,
) -> None:
    """Open the scheduling gates of pods without deciding for them, to remove Moorings.

    kube-scheduler then binds each pod by itself: gangs may run in parts. Only gates are
    changed; what else is in the way is named, with a remedy.
    """
    if not (gangs or all_ or namespace):
        raise UsageError("release-gates: give --all, --namespace or names of gangs")
    access = read_access(find_kubeconfig(kubeconfig, os.environ), context)
    code = asyncio.run(
        _release_pods(access, namespace or "", frozenset(gangs or ()), output, yes=yes)
    )
    raise typer.Exit(code)


async def _release_pods(
    access: ClusterAccess,
    namespace: str,
    names: frozenset[str],
    output: Format,
    *,
    yes: bool,
) -> int:
    async with open_api(access) as api:
        raw = await list_all(api, POD, namespace=namespace)
        pods = list_waiting(raw, namespace, names)
        states = [WOULD] * len(pods)
        if yes:
            limit = asyncio.Semaphore(_AT_ONCE)
            states = list(
                await asyncio.gather(*(_open_gate(api, pod, limit) for pod in pods))
            )
        obstacles, unread = await _find_obstacles(api)
        leader, since = await _find_leader(api)
    rows = [
        (pod.namespace, pod.name, pod.gang, ",".join(pod.other_gates), state)
        for pod, state in zip(pods, states, strict=True)
    ]
    keys = [column.replace(" g", "G") for column in COLUMNS]
    value = {
        "pods": [dict(zip(keys, row, strict=True)) for row in rows],
        "obstacles": obstacles,
        "unread": unread,
        "publisher": leader,
        "noPublisherSince": since,
    }
    if output is not Format.TABLE or rows:
        show(value, output, COLUMNS, rows)
    if output is Format.TABLE:
        _print_obstacles(obstacles, unread, leader, since)
        failed = sum(state not in (WOULD, OPENED) for state in states)
        word = f"{len(pods) - failed} {OPENED}" if yes else "nothing changed; use --yes"
        say(f"{counted(len(pods), 'pod waits', 'pods wait')} at the gate; {word}")
    done = all(state in (WOULD, OPENED) for state in states)
    return ExitCode.YES if done else ExitCode.NO


def _print_obstacles(
    obstacles: Sequence[Obstacle], unread: Sequence[str], leader: str, since: str
) -> None:
    """Print leader, obstacles and unread objects beside the table."""
    if leader:
        notify(
            f"publisher {leader} leads and handles pods at the gate; stop it "
            f"first (kubectl -n {NAMESPACE} scale deployment/publisher "
            "--replicas=0)"
        )
    else:
        notify(f"no publisher leads (Lease last renewed: {since or 'never'})")
    for item in obstacles:
        notify(f"in the way: {item.kind} {item.name}: {item.reason}")
        notify(f"  {item.remedy}")
    for text in unread:
        notify(f"could not be read: {text}")


async def _open_gate(
    api: KubernetesApi, pod: WaitingPod, limit: asyncio.Semaphore
) -> str:
    """Open a gate, whatever else changes in the pod; returns what became of it."""
    waiting: WaitingPod | None = pod
    for _ in range(_ATTEMPTS):
        if waiting is None or waiting.uid != pod.uid:
            return OPENED
        try:
            async with limit:
                await api.patch(
                    POD,
                    pod.key,
                    waiting.opening,
                    uid=waiting.uid,
                    resource_version=waiting.version,
                )
        except ConflictError:
            try:
                waiting = read_waiting(await api.get(POD, pod.key))
            except NotFoundError:
                return "gone"
        except NotFoundError:
            return "gone"
        except ApiError as error:
            return f"failed: {error}"
        else:
            return OPENED
    return "failed: it keeps changing"


async def _find_obstacles(api: KubernetesApi) -> tuple[list[Obstacle], list[str]]:
    """Find what else is in the way, and name what could not be read."""
    unread: list[str] = []

    async def read(kind: Kind | None) -> list[dict[str, Any]]:
        try:
            return [] if kind is None else await list_all(api, kind)
        except NotFoundError:
            return []
        except PermissionDeniedError as error:
            unread.append(str(error))
            return []

    kinds = await api.fetch_served_kinds()
    policies = [item for kind in _POLICIES for item in await read(kind)]
    obstacles = list_obstacles(
        rules=await read(kinds.device_taint_rule),
        slices=await read(kinds.resource_slice),
        policies=policies,
    )
    return list(obstacles), unread


async def _find_leader(api: KubernetesApi) -> tuple[str, str]:
    """Find the leading publisher, in whatever namespace its Lease is."""
    page = await api.list_page(LEASE, field_selector=f"metadata.name={LEASE_NAME}")
    return find_leader(page.items or (), datetime.now(UTC))
