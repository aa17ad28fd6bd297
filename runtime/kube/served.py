"""The kinds that an API server serves, and its release."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct

from contracts.kubernetes.decode import RESOURCE_GROUP
from contracts.release import release_of
from runtime.kube.answers import decode_answer
from runtime.kube.errors import ClusterError, NotFoundError, PermissionDeniedError
from runtime.kube.kinds import SCHEDULING_GROUP, ServedKinds, choose_kinds
from runtime.kube.transport import Transport

_CONTEXTS = "podschedulingcontexts"
"""Served by Kubernetes 1.30 and 1.31, where controllers allocate claims."""


class _Resource(Struct):
    name: str


class _Resources(Struct):
    resources: list[_Resource] = []


class _Version(Struct):
    version: str


class _Group(Struct):
    versions: list[_Version] = []


_GROUP = msgspec.json.Decoder(_Group)
_RESOURCES = msgspec.json.Decoder(_Resources)
_VERSION_INFO: msgspec.json.Decoder[dict[str, Any]] = msgspec.json.Decoder(
    dict[str, Any]
)


async def fetch_served_kinds(
    transport: Transport, versions: tuple[str, ...]
) -> ServedKinds:
    """Ask which versions of our kinds the cluster serves; the first counts.

    Raises:
        ClusterError: none that we know.
        ApiError: the API server does not say.
    """
    plurals = await fetch_plurals(transport, RESOURCE_GROUP)
    scheduling = await fetch_plurals(transport, SCHEDULING_GROUP)
    release = await _fetch_release(transport)
    kinds = choose_kinds(plurals, versions, scheduling, release)
    if kinds is None:
        readable = ", ".join(versions)
        reason = f"serves {RESOURCE_GROUP} in none of the versions {readable}"
        older = [v for v in plurals if _CONTEXTS in plurals[v]]
        if older:
            reason += (
                f", but in {older[0]}: set PUBLISHER_CLASSIC_CONTROLLERS for a "
                "publisher that allocates claims of classic DRA (docs/classic.md)"
            )
        raise ClusterError(transport.server, reason)
    return kinds


async def fetch_plurals(transport: Transport, group: str) -> dict[str, frozenset[str]]:
    """Ask what a group serves, by version; nothing where there is no such group.

    Raises:
        ApiError: the API server does not say.
    """
    what, path = f"discover {group}", f"/apis/{group}"
    plurals: dict[str, frozenset[str]] = {}
    try:
        body = await transport.call(what, "GET", path)
        for served in decode_answer(what, _GROUP, body).versions:
            place = f"{path}/{served.version}"
            body = await transport.call(what, "GET", place)
            resources = decode_answer(what, _RESOURCES, body).resources
            names = frozenset(resource.name for resource in resources)
            plurals[served.version] = names
    except NotFoundError:
        return {}
    return plurals


async def _fetch_release(transport: Transport) -> str:
    """Ask which release it is; empty: it does not say."""
    try:
        body = await transport.call("read /version", "GET", "/version")
    except (NotFoundError, PermissionDeniedError):
        return ""
    return release_of(decode_answer("read /version", _VERSION_INFO, body))
