"""Real writes where the API server looks closer than RBAC, by k8s/base's accounts."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import NamedTuple

import pytest
import yaml

from tests.integration.conftest import Installed
from tests.lab.controlplane import objects
from tests.lab.controlplane.client import STRATEGIC, Json, Kube, RefusedError, named
from tests.lab.manifests import K8S
from tests.lab.personas import BY_NAME, FOREIGN, OURS, SYSTEM, TEAM
from tests.lab.services import eventually

pytestmark = pytest.mark.usefixtures("bound")

COMPONENT = K8S / "components" / "extended-resources"
COUNTED = ("clusterrole", "clusterrolebinding")
NODE = "authentication.kubernetes.io/node-name"
SOMEBODY = {"apiGroup": "example.com", "resource": "x", "name": "x", "uid": "u"}


def _result(driver: str = OURS, device: str = "gpu-0") -> Json:
    return {"request": "r", "driver": driver, "pool": "pool", "device": device}


def _allocation(node: str, *drivers: str) -> Json:
    field = {"key": "metadata.name", "operator": "In", "values": [node]}
    return {
        "devices": {"results": [_result(driver) for driver in drivers or (OURS,)]},
        "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [field]}]},
        "allocationTimestamp": "2026-01-01T00:00:00Z",
    }


def _device_status(*drivers: str) -> Json:
    devices = []
    for driver in drivers or (OURS,):
        device = {k: v for k, v in _result(driver).items() if k != "request"}
        devices.append({**device, "data": {"seen": True}})
    return {"devices": devices}


async def _claim(admin: Kube, name: str, allocation: Json | None) -> Json:
    claim = objects.claim(TEAM, name, objects.requests("none"))
    await admin.create(claim)
    if allocation is not None:
        patch = {"status": {"allocation": allocation}}
        await admin.patch(claim, patch, "status")
    return claim


@pytest.mark.parametrize("name", ["author", "operator", "device-admin", "solver"])
async def test_nobody_else_allocates(admin: Kube, name: str) -> None:
    claim = await _claim(admin, f"not-by-{name}", None)
    async with admin.acting_as(BY_NAME[name].user) as somebody:
        status = {"allocation": _allocation("node-1")}
        with pytest.raises(RefusedError, match="resourceclaims/status") as refused:
            await somebody.patch(claim, {"status": status}, "status")
    assert refused.value.status == 403


RESTARTED = {"kubectl.kubernetes.io/restartedAt": "2026-01-01T00:00:00Z"}
SERVICES = (("Deployment", "publisher"), ("StatefulSet", "nats"))
SECRET = [{"name": "users", "secret": {"secretName": "nats-users"}}]
OTHER_PATCHES: dict[str, Json] = {
    "image": {
        "spec": {
            "template": {
                "spec": {"containers": [{"name": "publisher", "image": "evil"}]}
            }
        }
    },
    "secret": {"spec": {"template": {"spec": {"volumes": SECRET}}}},
    "account": {"spec": {"template": {"spec": {"serviceAccountName": "other"}}}},
    "annotation": {"spec": {"template": {"metadata": {"annotations": {"a": "b"}}}}},
    "label": {"spec": {"template": {"metadata": {"labels": {"a": "b"}}}}},
    "replicas": {"spec": {"replicas": 0}},
    "owner": {"metadata": {"labels": {"a": "b"}}},
}


@pytest.mark.parametrize(("kind", "name"), SERVICES)
async def test_operator_restarts_and_scales_services(
    admin: Kube, kind: str, name: str
) -> None:
    service = named("apps/v1", kind, name, SYSTEM)
    restart = {"spec": {"template": {"metadata": {"annotations": RESTARTED}}}}
    async with admin.acting_as(BY_NAME["operator"].user) as operator:
        restarted = await operator.patch(service, restart, media=STRATEGIC)
        if kind == "Deployment":
            await operator.patch(service, {"spec": {"replicas": 1}}, "scale")

    annotations = restarted["spec"]["template"]["metadata"]["annotations"]
    assert RESTARTED.items() <= annotations.items()


@pytest.mark.parametrize("tried", OTHER_PATCHES)
async def test_operator_changes_nothing_else_of_services(
    admin: Kube, tried: str
) -> None:
    """What runs there may read the Secrets of the bus and write as the publisher."""
    for kind, name in SERVICES:
        service = named("apps/v1", kind, name, SYSTEM)
        async with admin.acting_as(BY_NAME["operator"].user) as operator:
            with pytest.raises(RefusedError, match="restarts only"):
                await operator.patch(service, OTHER_PATCHES[tried], media=STRATEGIC)


async def test_admins_change_services_as_they_like(admin: Kube) -> None:
    service = named("apps/v1", "Deployment", "solver", SYSTEM)
    await admin.patch(service, {"metadata": {"labels": {"a": "b"}}})


async def test_publisher_leaves_devices_of_foreign_drivers_to_them(admin: Kube) -> None:
    claim = await _claim(admin, "foreign", _allocation("node-1", FOREIGN))
    async with admin.acting_as(BY_NAME["publisher"].user) as publisher:
        with pytest.raises(RefusedError, match="arbitrary-node:patch"):
            await publisher.patch(claim, {"status": _device_status(FOREIGN)}, "status")


async def _as_agent(admin: Kube, claim: Json, status: Json, node: str) -> Json:
    extra = {NODE: node} if node else {}
    user = BY_NAME["nodeagent"].user
    async with admin.acting_as(user, extra=extra) as agent:
        return await agent.patch(claim, {"status": status}, "status")


async def test_agent_writes_device_status_of_its_node(admin: Kube) -> None:
    claim = await _claim(admin, "agents", _allocation("node-1"))
    written = await _as_agent(admin, claim, _device_status(), "node-1")

    assert written["status"]["devices"][0]["data"] == {"seen": True}


async def test_agent_writes_beside_another_driver_s_status(admin: Kube) -> None:
    claim = await _claim(admin, "beside", _allocation("node-1", OURS, FOREIGN))
    await admin.patch(claim, {"status": _device_status(FOREIGN)}, "status")
    both = _device_status(OURS, FOREIGN)
    written = await _as_agent(admin, claim, both, "node-1")

    assert len(written["status"]["devices"]) == 2


class Attempt(NamedTuple):
    """What an agent with the token of a pod on `node` tries, and how it is refused."""

    allocation: Json
    status: Json
    words: str
    """Of the API server, from 1.36."""
    policy: str
    node: str = "node-1"
    before: Json = {}  # never changed
    """What the status has of another driver's making."""


NO_OTHER_NODE = "arbitrary-node:patch"
ATTEMPTS = {
    "of-another-node": Attempt(
        _allocation("node-2"),
        _device_status(),
        NO_OTHER_NODE,
        "the claim is not allocated on node node-1 alone",
    ),
    "of-no-node": Attempt(
        {"devices": {"results": [_result()]}},
        _device_status(),
        NO_OTHER_NODE,
        "the claim is not allocated on node node-1 alone",
    ),
    "without-a-node": Attempt(
        _allocation("node-1"),
        _device_status(),
        NO_OTHER_NODE,
        "a node agent writes with the token of its pod, which names its node",
        node="",
    ),
    "of-a-foreign-driver": Attempt(
        _allocation("node-1", FOREIGN),
        _device_status(FOREIGN),
        "associated-node:patch",
        "a node agent writes only for the drivers of node agents",
    ),
    "of-a-foreign-driver-too": Attempt(
        _allocation("node-1", OURS, FOREIGN),
        _device_status(OURS, FOREIGN),
        "associated-node:patch",
        "a node agent writes only for the drivers of node agents",
    ),
    "without-what-a-foreign-driver-wrote": Attempt(
        _allocation("node-1", OURS, FOREIGN),
        _device_status(OURS),
        "associated-node:patch",
        "a node agent writes only for the drivers of node agents",
        before=_device_status(FOREIGN),
    ),
    "without-the-allocation": Attempt(
        _allocation("node-1"),
        {"allocation": None},
        "resourceclaims/binding",
        "a node agent changes neither the allocation of a claim nor its reservations",
    ),
    "with-a-reservation": Attempt(
        _allocation("node-1"),
        {"reservedFor": [SOMEBODY]},
        "resourceclaims/binding",
        "a node agent changes neither the allocation of a claim nor its reservations",
    ),
}


async def _attempted(admin: Kube, name: str) -> Json:
    claim = await _claim(admin, name, ATTEMPTS[name].allocation)
    if ATTEMPTS[name].before:
        await admin.patch(claim, {"status": ATTEMPTS[name].before}, "status")
    return claim


@pytest.mark.parametrize("name", ATTEMPTS)
async def test_agent_is_refused(admin: Kube, name: str) -> None:
    """By the API server's own words, which look at claims before policies do."""
    claim = await _attempted(admin, name)
    with pytest.raises(RefusedError) as refused:
        await _as_agent(admin, claim, ATTEMPTS[name].status, ATTEMPTS[name].node)
    assert ATTEMPTS[name].words in refused.value.message


async def test_policy_refuses_the_agent_where_nothing_else_does(
    installed_on_1_35: Installed,
) -> None:
    """A release without `resourceclaims/driver` and `resourceclaims/binding`."""
    async with installed_on_1_35.control_plane.client() as admin:
        await admin.create(named("v1", "Namespace", TEAM))
        for name, attempt in ATTEMPTS.items():
            claim = await _attempted(admin, name)
            with pytest.raises(RefusedError) as refused:
                await _as_agent(admin, claim, attempt.status, attempt.node)
            assert f"denied request: {attempt.policy}" in refused.value.message
        claim = await _claim(admin, "agents", _allocation("node-1"))
        await _as_agent(admin, claim, _device_status(), "node-1")


NODE_PATCHES: dict[str, tuple[Json, str]] = {
    "a-condition": (
        {"status": {"conditions": [{"type": "Ready", "status": "False"}]}},
        "nothing of a Node's status but capacity",
    ),
    "of-kubernetes": (
        {"status": {"capacity": {"cpu": "640"}}},
        "extended resources only",
    ),
    "without-a-domain": (
        {"status": {"allocatable": {"dongles": "4"}}},
        "extended resources only",
    ),
    "less-memory": (
        {"status": {"allocatable": {"memory": None}}},
        "extended resources only",
    ),
    "a-label": ({"metadata": {"labels": {"a": "b"}}}, "no metadata of a Node"),
}


@pytest.fixture
async def nodes(admin: Kube) -> AsyncIterator[tuple[Json, Json]]:
    """Two Nodes, where agents may offer extended resources."""
    names = (f"moorings-nodeagent-extended-{kind}.yaml" for kind in COUNTED)
    rights = [yaml.safe_load((COMPONENT / name).read_text()) for name in names]
    made = [await admin.create(objects.node(f"agents-{name}")) for name in "ab"]
    for right in rights:
        await admin.create(right)

    async def may() -> bool:
        try:
            await _on_node(admin, made[0], {"status": {}}, "agents-a")
        except RefusedError:
            return False
        return True

    await eventually(may, "the role counts")
    yield made[0], made[1]
    for right in rights:
        await admin.delete(right)
    for node in made:
        await admin.delete(named("v1", "Node", node["metadata"]["name"]))


async def test_agent_touches_no_node_without_the_component(admin: Kube) -> None:
    node = await admin.create(objects.node("agents-c"))
    with pytest.raises(RefusedError, match="cannot patch resource"):
        await _on_node(admin, node, {"status": {}}, "agents-c")
    await admin.delete(named("v1", "Node", "agents-c"))


async def _on_node(admin: Kube, node: Json, patch: Json, own: str) -> Json:
    extra = {NODE: own} if own else {}
    user = BY_NAME["nodeagent"].user
    async with admin.acting_as(user, extra=extra) as agent:
        return await agent.patch(node, patch, "status")


async def test_agent_offers_extended_resources_on_its_node_and_writes_no_more(
    admin: Kube, nodes: tuple[Json, Json]
) -> None:
    own, other = nodes
    name = str(own["metadata"]["name"])
    offered: Json = {"example.com/dongle": "4"}
    patch: Json = {"status": {"capacity": offered, "allocatable": offered}}
    written = await _on_node(admin, own, patch, name)
    assert written["status"]["allocatable"]["example.com/dongle"] == "4"
    gone: Json = {"example.com/dongle": None}
    patch = {"status": {"capacity": gone, "allocatable": gone}}
    written = await _on_node(admin, own, patch, name)
    assert "example.com/dongle" not in written["status"]["capacity"]
    for node, token in ((other, name), (own, "")):
        with pytest.raises(RefusedError, match="its own Node only"):
            await _on_node(admin, node, {"status": {"capacity": offered}}, token)
    for refused, words in NODE_PATCHES.values():
        with pytest.raises(RefusedError, match=words):
            await _on_node(admin, own, refused, name)
