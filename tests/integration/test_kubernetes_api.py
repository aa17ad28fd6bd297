"""The publisher's way to a real API server: what it says, and what refusals mean."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import TypedDict

import pytest
from prometheus_client import generate_latest

from contracts.kubernetes.decode import V1
from runtime.kube.api import KubernetesApi
from runtime.kube.errors import (
    AlreadyExistsError,
    ApiError,
    ClusterError,
    ConflictError,
    InvalidError,
    NotFoundError,
    PermissionDeniedError,
    UnavailableError,
)
from runtime.kube.kinds import DEVICE_TAINT_RULE, NODE, POD, RESOURCE_CLAIM, Kind
from runtime.kube.request_limit import RequestLimit
from tests.conftest import release
from tests.lab.controlplane import objects
from tests.lab.controlplane.client import Json, Kube
from tests.lab.controlplane.server import ControlPlane

NOBODY = Kind(group="none.example", plural="nobodies", name="Nobody")


class Stale(TypedDict):
    """Preconditions that do not hold."""

    uid: str
    resource_version: str


@pytest.fixture
async def api(control_plane: ControlPlane) -> AsyncIterator[KubernetesApi]:
    async with KubernetesApi.open(str(control_plane.kubeconfig())) as api:
        yield api


@pytest.fixture
async def author(
    control_plane: ControlPlane, kube: Kube, namespace: str
) -> AsyncIterator[KubernetesApi]:
    """A service account that may patch claims and their status, and nothing else."""
    rules = [
        {
            "apiGroups": ["resource.k8s.io"],
            "resources": ["resourceclaims", "resourceclaims/status"],
            "verbs": ["get", "patch"],
        }
    ]
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "author"}
    subject = {"kind": "ServiceAccount", "name": "default", "namespace": namespace}
    rbac = "rbac.authorization.k8s.io/v1"
    meta = {"name": "author", "namespace": namespace}
    await kube.create(
        {"apiVersion": rbac, "kind": "Role", "metadata": meta, "rules": rules}
    )
    await kube.create(
        {
            "apiVersion": rbac,
            "kind": "RoleBinding",
            "metadata": meta,
            "roleRef": role,
            "subjects": [subject],
        }
    )
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/default/token"
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest"}
    answer = await kube.request("POST", path, request)
    kubeconfig = control_plane.folder / f"{namespace}.kubeconfig"
    control_plane.write_kubeconfig(kubeconfig, answer["status"]["token"])
    async with KubernetesApi.open(str(kubeconfig)) as api:
        yield api


def claim(namespace: str, name: str = "c") -> Json:
    return objects.claim(namespace, name, objects.requests("none"))


def allocation(namespace: str) -> Json:
    """A status that a claim without a pod may have."""
    result = {"request": "r", "driver": "d", "pool": namespace, "device": "dev-0"}
    return {"status": {"allocation": {"devices": {"results": [result]}}}}


async def test_objects_are_made_read_changed_and_deleted(
    api: KubernetesApi, namespace: str
) -> None:
    """Merge patches, JSON patches and deletion, each with what it expects."""
    made = await api.create(RESOURCE_CLAIM, claim(namespace))
    key, uid = f"{namespace}/c", made["metadata"]["uid"]
    version = made["metadata"]["resourceVersion"]
    merged = await api.patch(
        RESOURCE_CLAIM,
        key,
        {"metadata": {"finalizers": ["example.com/f"]}},
        uid=uid,
        resource_version=version,
    )
    assert merged["metadata"]["managedFields"][0]["manager"] == "moorings-publisher"
    changed = await api.patch(
        RESOURCE_CLAIM,
        key,
        [{"op": "remove", "path": "/metadata/finalizers"}],
        uid=uid,
        resource_version=merged["metadata"]["resourceVersion"],
    )
    assert "finalizers" not in changed["metadata"]
    written = await api.patch(
        RESOURCE_CLAIM, key, allocation(namespace), subresource="status"
    )
    assert await api.get(RESOURCE_CLAIM, key) == written
    await api.delete(RESOURCE_CLAIM, key, uid=uid)
    with pytest.raises(NotFoundError):
        await api.get(RESOURCE_CLAIM, key)


async def test_preconditions_that_fail_are_conflicts(
    api: KubernetesApi, namespace: str
) -> None:
    """A changed or recreated object, by either patch and by deletion."""
    made = await api.create(RESOURCE_CLAIM, claim(namespace))
    key = f"{namespace}/c"
    with pytest.raises(AlreadyExistsError):
        await api.create(RESOURCE_CLAIM, claim(namespace))
    label = {"metadata": {"labels": {"a": "b"}}}
    steps = [{"op": "add", "path": "/metadata/labels", "value": {"a": "b"}}]
    for uid, version in (("another", ""), ("", "1")):
        stale = Stale(uid=uid, resource_version=version)
        with pytest.raises(ConflictError):
            await api.patch(RESOURCE_CLAIM, key, label, **stale)
        with pytest.raises(ConflictError):
            await api.patch(RESOURCE_CLAIM, key, steps, **stale)
        with pytest.raises(ConflictError):
            await api.delete(RESOURCE_CLAIM, key, **stale)
    assert await api.get(RESOURCE_CLAIM, key) == made


async def test_invalid_objects_are_refused_by_field(
    api: KubernetesApi, namespace: str
) -> None:
    """Unknown fields are, too: a misspelt selector would taint every device."""
    key = f"{namespace}/c"
    await api.create(RESOURCE_CLAIM, claim(namespace))
    reserved = [{"resource": "pods", "name": "x", "uid": "y"}]
    with pytest.raises(InvalidError) as refused:
        await api.patch(
            RESOURCE_CLAIM,
            key,
            {"status": {"reservedFor": reserved}},
            subresource="status",
        )
    assert refused.value.field == "status.reservedFor"
    taint = {"key": "example.com/t", "effect": "NoSchedule"}
    rule = {
        "apiVersion": V1,
        "kind": "DeviceTaintRule",
        "metadata": {"name": namespace},
        "spec": {"deviceSelector": {"drivre": "d"}, "taint": taint},
    }
    with pytest.raises(InvalidError, match=r'unknown field "spec\.deviceSelector\.dri'):
        await api.create(DEVICE_TAINT_RULE, rule)
    with pytest.raises(InvalidError, match="unknown field"):
        await api.patch(RESOURCE_CLAIM, key, {"specs": {}})


async def test_missing_permissions_name_their_rule(
    api: KubernetesApi, author: KubernetesApi, namespace: str
) -> None:
    """Also the two that the API server calls invalid objects."""
    key = f"{namespace}/c"
    await api.create(RESOURCE_CLAIM, claim(namespace))
    inside, everywhere = f'in the namespace "{namespace}"', "at the cluster scope"

    async def denied(kind: Kind, body: Json, subresource: str = "") -> str:
        with pytest.raises(PermissionDeniedError) as error:
            await author.patch(kind, key, body, subresource=subresource)
        assert error.value.rule in str(error.value)
        return error.value.rule

    label: Json = {"metadata": {"labels": {"a": "b"}}}
    await author.patch(RESOURCE_CLAIM, key, label)
    assert await denied(POD, label) == f'verb patch on pods of group "" {inside}'
    with pytest.raises(PermissionDeniedError) as error:
        await author.list_page(NODE)
    assert error.value.rule == f'verb list on nodes of group "" {everywhere}'

    group = "of group resource.k8s.io"
    assert await denied(RESOURCE_CLAIM, allocation(namespace), "status") == (
        f"verb patch on resourceclaims/binding {group} {everywhere}"
    )
    await api.patch(RESOURCE_CLAIM, key, allocation(namespace), subresource="status")
    device = {"driver": "d", "pool": namespace, "device": "dev-0", "data": {"a": 1}}
    assert await denied(
        RESOURCE_CLAIM, {"status": {"devices": [device]}}, "status"
    ) == (f"verb arbitrary-node:patch on resourceclaims/driver {group} {inside}")


async def test_lists_come_in_pages(api: KubernetesApi, namespace: str) -> None:
    """All objects of a namespace, each with what names it, over several pages."""
    made = [f"c-{number:03}" for number in range(501)]
    for name in made:
        await api.create(RESOURCE_CLAIM, claim(namespace, name))
    first = await api.list_page(RESOURCE_CLAIM, namespace=namespace)
    assert first.token
    last = await api.list_page(RESOURCE_CLAIM, first.token, namespace=namespace)
    assert not last.token
    listed = [*(first.items or ()), *(last.items or ())]
    assert [item["metadata"]["name"] for item in listed] == made
    assert {(item["apiVersion"], item["kind"]) for item in listed} == {
        (V1, "ResourceClaim")
    }
    with pytest.raises(ApiError):
        await api.list_page(RESOURCE_CLAIM, "no token")


async def test_requests_wait_for_a_limit_and_so_does_the_start_of_a_watch(
    control_plane: ControlPlane,
) -> None:
    """Two go at once, the others twenty a second; what waited is counted."""
    waited = 'rest_client_rate_limiter_duration_seconds_count{verb="%s"}'
    before = {verb: count_series(waited % verb) for verb in ("GET", "WATCH")}
    limit = RequestLimit(qps=20, burst=2)
    kubeconfig = str(control_plane.kubeconfig())
    async with KubernetesApi.open(kubeconfig, limit=limit) as api:
        began_s = time.monotonic()
        await asyncio.gather(*(api.list_page(NODE) for _ in range(5)))
        async with aclosing(api.watch(NODE, "0")) as watch:
            await anext(watch)
        assert time.monotonic() - began_s >= 4 / 20 - 0.01
    after = {verb: count_series(waited % verb) for verb in before}
    assert {verb: after[verb] - before[verb] for verb in after} == {
        "GET": 3,
        "WATCH": 1,
    }


def count_series(name: str) -> float:
    """Read a series of this process; 0 if it is not there yet."""
    text = generate_latest().decode()
    lines = (line.rpartition(" ") for line in text.splitlines())
    return next((float(value) for found, _, value in lines if found == name), 0.0)


async def test_a_cluster_says_what_it_serves(
    api: KubernetesApi, control_plane: ControlPlane
) -> None:
    """A kind that it does not serve is not found; nobody there is an error, too."""
    kinds = await api.fetch_served_kinds()
    assert kinds.resource_claim.version == "v1"
    assert kinds.device_taint_rule is not None
    assert kinds.release == release()
    with pytest.raises(NotFoundError):
        await api.list_page(NOBODY)
    nowhere = control_plane.folder / "nowhere.kubeconfig"
    text = control_plane.kubeconfig().read_text()
    nowhere.write_text(text.replace(control_plane.url, "https://127.0.0.1:1"))
    async with KubernetesApi.open(str(nowhere)) as lost:
        with pytest.raises(UnavailableError, match="list Node: "):
            await lost.list_page(NODE)
    for bad in (str(control_plane.folder / "none"), ""):
        with pytest.raises(ClusterError):
            await KubernetesApi.open(bad).__aenter__()
