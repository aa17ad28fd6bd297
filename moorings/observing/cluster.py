"""Reads of a cluster what the doctor judges; changes nothing there."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Awaitable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import yaml

from contracts.kubernetes.decode import RESOURCE_GROUP
from contracts.names import API_VERSION, LEASE_NAME
from contracts.release import release_of
from moorings.doctor.facts import (
    Clock,
    ClusterFacts,
    Json,
    Reading,
    Review,
    Right,
    Unread,
)
from moorings.doctor.rights import ACCOUNTS, FORBIDDEN, PEOPLE, SERVICES
from moorings.errors import BadInputError
from moorings.local.cluster import ClusterAccess, list_all, open_api
from moorings.manifests import describe_yaml_error
from runtime.kube.errors import ApiError, ClusterError, NotFoundError
from runtime.kube.kinds import LEASE, NODE, POD, Kind, choose_kinds

if TYPE_CHECKING:  # kubernetes_asyncio comes with an extra
    from runtime.kube.api import KubernetesApi

T = TypeVar("T")
KUBE_SYSTEM, NODE_LEASES = "kube-system", "kube-node-lease"
_GATE = re.compile(
    r'^kubernetes_feature_enabled{name="(\w+)"[^}]*} ([01])$', re.MULTILINE
)
_DATE_S = 0.5
"""A header Date is cut to whole seconds: it is so much late, on average, at most."""
_WORKLOADS = tuple(
    Kind(group="apps", plural=f"{name.lower()}s", name=name, namespaced=True)
    for name in ("DaemonSet", "Deployment", "StatefulSet")
)
_ADMISSION = "admissionregistration.k8s.io"
_ADMITTING = (
    Kind(
        group=_ADMISSION,
        plural="mutatingadmissionpolicies",
        name="MutatingAdmissionPolicy",
    ),
    Kind(
        group=_ADMISSION,
        plural="mutatingwebhookconfigurations",
        name="MutatingWebhookConfiguration",
    ),
    Kind(
        group=_ADMISSION,
        plural="validatingadmissionpolicies",
        name="ValidatingAdmissionPolicy",
    ),
    Kind(
        group=_ADMISSION,
        plural="validatingwebhookconfigurations",
        name="ValidatingWebhookConfiguration",
    ),
)
_REVIEWS = "authorization.k8s.io"
_OF_OTHERS = Kind(
    group=_REVIEWS, plural="subjectaccessreviews", name="SubjectAccessReview"
)
_OF_SELF = Kind(
    group=_REVIEWS, plural="selfsubjectaccessreviews", name="SelfSubjectAccessReview"
)


async def observe_cluster(
    access: ClusterAccess,
    *,
    system: str,
    namespace: str,
    scheduler_config: Json | None,
) -> ClusterFacts | Unread:
    """Read a cluster in which Moorings is, or shall be, in the namespace `system`.

    The rights of people are asked for `namespace`. `Unread`: nobody can be asked.
    """
    try:
        async with open_api(access) as api:
            version = json.loads(await api.read_text("/version"))
            return ClusterFacts(
                server=access.server,
                version=str(version.get("gitVersion") or ""),
                release=release_of(version),
                clock=await _read_clock(api),
                gang_served=await _read_or_unread(_serves_gangs(api)),
                gates=await _read_or_unread(read_gates(api)),
                reviews=await _read_or_unread(_review_services(api, system)),
                own_reviews=await _read_or_unread(_review_self(api, system, namespace)),
                admission=await _read_or_unread(_list_admission(api)),
                nodes=await _list_objects(api, NODE),
                control_plane=await _list_objects(api, POD, KUBE_SYSTEM),
                scheduler_config=scheduler_config,
                workloads=await _list_all(api, _WORKLOADS, system),
                publisher_lease=await _read_or_unread(_get_lease(api, system)),
                node_leases=await _list_objects(api, LEASE, NODE_LEASES),
                **await _read_devices(api),
            )
    except (ApiError, ClusterError, ValueError) as error:
        return Unread(f"{access.server}: {error}")


async def _read_devices(api: KubernetesApi) -> dict[str, Any]:
    """Read slices and claims in the version that is served."""
    served = await _read_or_unread(api.fetch_served(RESOURCE_GROUP))
    kinds = None if isinstance(served, Unread) else choose_kinds(served)
    if kinds is None:
        unserved = Unread(f"{RESOURCE_GROUP} is not served", "see kubernetes.served")
        return {"served": served, "slices": unserved, "claims": unserved}
    return {
        "served": served,
        "slices": await _list_objects(api, kinds.resource_slice),
        "claims": await _list_objects(api, kinds.resource_claim),
    }


def read_scheduler_config(file: Path) -> Json:
    """Read a KubeSchedulerConfiguration.

    Raises:
        BadInputError: the file cannot be read, or is something else.
    """
    try:
        config = yaml.safe_load(file.read_text())
    except yaml.YAMLError as error:
        raise BadInputError(str(file), describe_yaml_error(error)) from error
    except (OSError, UnicodeDecodeError) as error:
        raise BadInputError(str(file), " ".join(str(error).split())) from error
    kind = config.get("kind") if isinstance(config, dict) else None
    if kind != "KubeSchedulerConfiguration":
        raise BadInputError(str(file), "is not a KubeSchedulerConfiguration")
    return dict(config)


async def _read_or_unread(reading: Awaitable[T]) -> Reading[T]:
    try:
        return await reading
    except ApiError as error:
        return Unread(str(error))


async def _list_objects(
    api: KubernetesApi, kind: Kind, namespace: str = ""
) -> Reading[tuple[Json, ...]]:
    return await _list_all(api, (kind,), namespace)


async def _list_all(
    api: KubernetesApi, kinds: Iterable[Kind], namespace: str
) -> Reading[tuple[Json, ...]]:
    found: list[Json] = []
    try:
        for kind in kinds:
            found += await list_all(api, kind, namespace=namespace)
    except ApiError as error:
        return Unread(str(error))
    return tuple(found)


async def _list_admission(api: KubernetesApi) -> tuple[Json, ...]:
    """List policies and webhooks, each kind in the newest version that is served."""
    served = await api.fetch_served(_ADMISSION)
    found: list[Json] = []
    for kind in _ADMITTING:
        versions = [name for name in sorted(served) if kind.plural in served[name]]
        if versions:  # v1, then v1alpha1 and v1beta1: their rules are the same
            found += await list_all(api, kind.at(versions[0]))
    return tuple(found)


async def _read_clock(api: KubernetesApi) -> Clock:
    """Compare our clock to the API server's, as exactly as a header Date is."""
    asked_s = time.time()
    server_s = await api.read_date() + _DATE_S
    return Clock.compare(asked_s, server_s, time.time(), _DATE_S)


async def read_gates(api: KubernetesApi) -> dict[str, bool]:
    """Read which feature gates the API server has on, by its metrics.

    Raises:
        ApiError: it does not say.
    """
    text = await api.read_text("/metrics")
    return {name: value == "1" for name, value in _GATE.findall(text)}


async def _serves_gangs(api: KubernetesApi) -> bool:
    group, _, version = API_VERSION.partition("/")
    return "gangs" in (await api.fetch_served(group)).get(version, ())


async def _get_lease(api: KubernetesApi, system: str) -> Json | None:
    try:
        return await api.get(LEASE, f"{system}/{LEASE_NAME}")
    except NotFoundError:
        return None


async def _review_services(api: KubernetesApi, system: str) -> tuple[Review, ...]:
    """Ask for each service account what it must and must not be allowed."""
    asked = [
        (persona.name, right)
        for persona in SERVICES
        for right in persona.list_rights(system, system)
    ]
    asked += [(account, right) for account in ACCOUNTS for right in FORBIDDEN]
    bodies = [
        {"user": f"system:serviceaccount:{system}:{account}"} for account, _ in asked
    ]
    return await _review_rights(api, _OF_OTHERS, asked, bodies)


async def _review_self(
    api: KubernetesApi, system: str, namespace: str
) -> tuple[Review, ...]:
    asked = [
        (persona.name, right)
        for persona in PEOPLE
        for right in persona.list_rights(system, namespace)
    ]
    return await _review_rights(api, _OF_SELF, asked, [{} for _ in asked])


async def _review_rights(
    api: KubernetesApi,
    kind: Kind,
    asked: Sequence[tuple[str, Right]],
    specs: Sequence[dict[str, Any]],
) -> tuple[Review, ...]:
    answers = await asyncio.gather(
        *(
            api.create(kind, _make_review(kind, right, spec))
            for (_, right), spec in zip(asked, specs, strict=True)
        )
    )
    return tuple(
        Review(persona=name, right=right, allowed=bool(answer["status"]["allowed"]))
        for (name, right), answer in zip(asked, answers, strict=True)
    )


def _make_review(kind: Kind, right: Right, spec: dict[str, Any]) -> dict[str, Any]:
    resource, _, subresource = right.resource.partition("/")
    attributes = {
        "verb": right.verb,
        "group": right.group,
        "resource": resource,
        "subresource": subresource,
        "namespace": right.namespace,
        "name": right.name,
    }
    return {
        "apiVersion": kind.api_version,
        "kind": kind.name,
        "metadata": {},
        "spec": {**spec, "resourceAttributes": attributes},
    }
