"""Who may do what on a cluster where k8s/base is installed: every yes and every no.

The tables are the whole of it: what a persona may do beyond them, anywhere, is a
failure. Where the API server looks closer than RBAC, real writes are tried.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import NamedTuple

import pytest

from tests.integration.conftest import Installed
from tests.lab.controlplane import objects
from tests.lab.controlplane.client import (
    STRATEGIC,
    Json,
    Kube,
    RefusedError,
    named,
)
from tests.lab.personas import (
    ANYWHERE,
    BY_NAME,
    FOREIGN,
    OTHERS,
    OURS,
    PERSONAS,
    SYSTEM,
    TEAM,
    Persona,
    Table,
)

RBAC = "rbac.authorization.k8s.io"
NODE = "authentication.kubernetes.io/node-name"
SENSITIVE = (
    "create clusterrolebindings.rbac.authorization.k8s.io",
    "create pods",
    "create pods/exec",
    "create serviceaccounts/token",
    "get secrets",
    "impersonate users",
    "update nodes",
)
"""Asked by name too: what would be the end of all other limits."""


@pytest.fixture(scope="session", autouse=True)
def bound(installed: Installed) -> None:
    """Bind the roles that k8s/base leaves to the cluster's admin."""
    spaces = [named("v1", "Namespace", name) for name in (TEAM, OTHERS)]
    bindings = [_binding(p.user, p.role, p.where) for p in PERSONAS if p.role]
    bindings.append(_binding("operator", "cluster-operator", SYSTEM, "Role"))
    installed.kubectl("apply", "-f", "-", given=[*spaces, *bindings])


def _binding(user: str, role: str, where: str, kind: str = "ClusterRole") -> Json:
    cluster = where == ANYWHERE
    binding = named(
        f"{RBAC}/v1",
        "ClusterRoleBinding" if cluster else "RoleBinding",
        f"{user}-{role}",
        "" if cluster else where,
    )
    binding["roleRef"] = {"apiGroup": RBAC, "kind": kind, "name": role}
    binding["subjects"] = [{"apiGroup": RBAC, "kind": "User", "name": user}]
    return binding


def _cells(table: Table) -> Iterator[tuple[str, str, str]]:
    """Go through (verb, resource, name) of a table; the name is mostly empty."""
    for resource, text in table.items():
        for rule in text.split(";"):
            verbs, _, names = rule.partition(" = ")
            for verb in verbs.split():
                for name in names.split() or [""]:
                    yield verb, resource, name


def _expected(persona: Persona, namespace: str) -> set[tuple[str, str, str]]:
    tables = (persona.may.get(where, {}) for where in (ANYWHERE, namespace))
    return {cell for table in tables for cell in _cells(table)}


async def _rules(admin: Kube, user: str, namespace: str) -> set[tuple[str, str, str]]:
    """Ask the API server for all that a user may do in a namespace."""
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectRulesReview",
        "metadata": {},
        "spec": {"namespace": namespace},
    }
    async with admin.acting_as(user) as somebody:
        answer = await somebody.create(review)
    return {
        (verb, f"{resource}.{group}".rstrip("."), name)
        for rule in answer["status"]["resourceRules"]
        for verb in rule["verbs"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for name in rule.get("resourceNames") or [""]
    }


async def _allowed(
    admin: Kube, user: str, namespace: str, cell: tuple[str, str, str]
) -> bool:
    verb, what, name = cell
    resource, _, group = what.partition(".")
    resource, _, subresource = resource.partition("/")
    attributes = {
        "verb": verb,
        "group": group,
        "resource": resource,
        "subresource": subresource,
        "namespace": namespace,
        "name": name,
    }
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "metadata": {},
        "spec": {"user": user, "resourceAttributes": attributes},
    }
    answer = await admin.create(review)
    allowed: bool = answer["status"]["allowed"]
    return allowed


@pytest.mark.parametrize("name", BY_NAME)
async def test_persona_may_do_what_its_table_says_and_nothing_else(
    admin: Kube, name: str
) -> None:
    """In the namespace where it is bound, in Moorings' own and in any other."""
    persona = BY_NAME[name]
    anybody = await _rules(admin, "system:serviceaccount:team-b:stranger", OTHERS)
    for namespace in (SYSTEM, TEAM, OTHERS):
        found = await _rules(admin, persona.user, namespace) - anybody
        assert found == _expected(persona, namespace), namespace


@pytest.mark.parametrize("name", BY_NAME)
async def test_authorizer_says_yes_and_no_as_the_table(admin: Kube, name: str) -> None:
    """What holds everywhere is asked at cluster scope, where binding is checked."""
    persona = BY_NAME[name]
    asked = {
        ("" if where == ANYWHERE else where, cell)
        for where, table in persona.may.items()
        for cell in _cells(table)
    }
    denied = [(verb, what, "") for verb, what in map(str.split, SENSITIVE)]
    answers = await asyncio.gather(
        *(_allowed(admin, persona.user, *question) for question in sorted(asked))
    )
    refusals = await asyncio.gather(
        *(
            _allowed(admin, persona.user, where, cell)
            for cell in denied
            for where in ("", SYSTEM, TEAM)
        )
    )

    assert all(answers)
    assert not any(refusals)


# --- where the API server looks closer than RBAC ----------------------------------


SOMEBODY = {"apiGroup": "example.com", "resource": "x", "name": "x", "uid": "u"}


def _result(driver: str = OURS, device: str = "gpu-0") -> Json:
    return {"request": "r", "driver": driver, "pool": "pool", "device": device}


def _allocation(node: str, driver: str = OURS) -> Json:
    field = {"key": "metadata.name", "operator": "In", "values": [node]}
    return {
        "devices": {"results": [_result(driver)]},
        "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [field]}]},
        "allocationTimestamp": "2026-01-01T00:00:00Z",
    }


def _device_status(driver: str = OURS) -> Json:
    named_device = {k: v for k, v in _result(driver).items() if k != "request"}
    return {"devices": [{**named_device, "data": {"seen": True}}]}


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


class Attempt(NamedTuple):
    """What an agent with the token of a pod on `node` tries, and how it is refused."""

    allocation: Json
    status: Json
    words: str
    """Of the API server, from 1.36."""
    policy: str
    node: str = "node-1"


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
    "with-a-reservation": Attempt(
        _allocation("node-1"),
        {"reservedFor": [SOMEBODY]},
        "resourceclaims/binding",
        "a node agent changes neither the allocation of a claim nor its reservations",
    ),
}


@pytest.mark.parametrize("name", ATTEMPTS)
async def test_agent_is_refused(admin: Kube, name: str) -> None:
    """By the API server's own words, which look at claims before policies do."""
    claim = await _claim(admin, name, ATTEMPTS[name].allocation)
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
            claim = await _claim(admin, name, attempt.allocation)
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
    """Two Nodes."""
    made = [await admin.create(objects.node(f"agents-{name}")) for name in "ab"]
    yield made[0], made[1]
    for node in made:
        await admin.delete(named("v1", "Node", node["metadata"]["name"]))


async def _on_node(admin: Kube, node: Json, patch: Json, own: str) -> Json:
    extra = {NODE: own} if own else {}
    user = BY_NAME["nodeagent"].user
    async with admin.acting_as(user, extra=extra) as agent:
        return await agent.patch(node, patch, "status")


async def test_agent_offers_counted_resources_on_its_node_and_writes_no_more(
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
