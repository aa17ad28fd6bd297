"""Notices when the API server no longer serves what was chosen at the start.

An upgrade brings newer versions of resource.k8s.io, and kinds that were not there. A
start chooses anew and is safe at any line, so nothing is exchanged while we run: the
process ends, and whoever supervises it starts it again.
"""

from __future__ import annotations

import asyncio

from runtime.errors import RestartError
from runtime.kube.api import KubernetesApi
from runtime.kube.errors import ApiError, ClusterError
from runtime.kube.kinds import ServedKinds
from runtime.waits import first_of

LOOK_S = 120.0


async def watch_served(
    api: KubernetesApi,
    versions: tuple[str, ...],
    chosen: ServedKinds,
    stop: asyncio.Event,
    *,
    every_s: float = LOOK_S,
) -> None:
    """Ask now and then whether the same is served, until `stop`.

    API servers that are upgraded one after the other answer differently for a while:
    what two answers in a row say counts.

    Raises:
        RestartError: something else would be chosen now.
    """
    last_answer = chosen
    while not stop.is_set():
        answer = await _fetch_kinds(api, versions)
        if answer is not None:
            if answer == last_answer != chosen:
                served = _list_names(answer)
                raise RestartError(f"the API server serves {served} by now")
            last_answer = answer
        await first_of(stop, within_s=every_s)


async def _fetch_kinds(
    api: KubernetesApi, versions: tuple[str, ...]
) -> ServedKinds | None:
    """Ask what is served; None: no answer now."""
    try:
        return await api.fetch_served_kinds(versions)
    except (ApiError, ClusterError):
        return None


def _list_names(kinds: ServedKinds) -> str:
    """Name the kinds whose versions are chosen."""
    groups = (kinds.pod_group, kinds.composite_pod_group)
    chosen = [kinds.resource_claim, kinds.device_taint_rule, *groups]
    names = [f"{k.name} {k.api_version}" for k in chosen if k is not None]
    return " and ".join([*names, f"is of release {kinds.release or 'unknown'}"])
