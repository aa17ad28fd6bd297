"""Which permissions Kubernetes asks for what an allocator writes."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager

import pytest

from tests.conftest import release
from tests.lab.controlplane import fleet
from tests.lab.controlplane.client import Json, Kube, RefusedError
from tests.lab.controlplane.fleet import Fleet, allocated, pinned

RBAC = "rbac.authorization.k8s.io"
GROUP = "resource.k8s.io"
NODE_NAME = "authentication.kubernetes.io/node-name"


@pytest.fixture
def site(kube: Kube, namespace: str) -> Fleet:
    """Names of a fleet without the fleet: nobody checks that it exists."""
    return Fleet(kube, namespace, ["a", "b"])


def may(verbs: str, resources: str, group: str = GROUP, *names: str) -> Json:
    """Make a rule of a role."""
    return {
        "apiGroups": [group],
        "resources": resources.split(),
        "verbs": verbs.split(),
        **({"resourceNames": [*names]} if names else {}),
    }


STATUS = may("update patch", "resourceclaims/status")
BINDING = may("update", "resourceclaims/binding")


@asynccontextmanager
async def somebody(
    site: Fleet,
    *rules: Json,
    everywhere: bool = True,
    name: str = "",
    extra: Mapping[str, str] = {},
) -> AsyncIterator[Kube]:
    """Act as a user with these permissions, in all namespaces or only in its own."""
    fresh = f"{site.namespace}-{secrets.token_hex(4)}"
    name = name or fresh
    kind = "ClusterRole" if everywhere else "Role"
    meta = {"name": fresh}
    if not everywhere:
        meta["namespace"] = site.namespace
    role = {"apiVersion": f"{RBAC}/v1", "kind": kind, "metadata": meta, "rules": rules}
    binding = {
        "apiVersion": f"{RBAC}/v1",
        "kind": f"{kind}Binding",
        "metadata": meta,
        "subjects": [{"kind": "User", "name": name, "apiGroup": RBAC}],
        "roleRef": {"apiGroup": RBAC, "kind": kind, "name": fresh},
    }
    for thing in (role, binding):
        await site.kube.create(thing)
    try:
        async with site.kube.acting_as(name, extra=extra) as user:
            namespace = "" if everywhere else site.namespace
            await until_known(user, namespace, rules)
            yield user
    finally:
        for thing in (binding, role):
            await site.kube.delete(thing)


async def until_known(user: Kube, namespace: str, rules: Sequence[Json]) -> None:
    """Wait until the authorizer knows all rules: it learns of roles by watching."""
    async with asyncio.timeout(30):
        for rule in rules:
            while not await knows(user, namespace, rule):  # noqa: ASYNC110 # no event
                await asyncio.sleep(0.01)


async def knows(user: Kube, namespace: str, rule: Json) -> bool:
    """Ask whether a rule's first permission is known by now; a wildcard's is none."""
    resource, _, subresource = rule["resources"][0].partition("/")
    if subresource == "*":
        return True
    asked = {
        "namespace": namespace,
        "verb": rule["verbs"][0],
        "group": rule["apiGroups"][0],
        "resource": resource,
        "subresource": subresource,
        "name": rule.get("resourceNames", [""])[0],
    }
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "metadata": {},
        "spec": {"resourceAttributes": asked},
    }
    return bool((await user.create(review))["status"]["allowed"])


async def refused(user: Kube, claim: Json, status: Json) -> RefusedError:
    with pytest.raises(RefusedError) as no:
        await user.update({**claim, "status": status}, "status")
    return no.value


async def test_allocating_asks_for_binding_in_the_whole_cluster(site: Fleet) -> None:
    """Trap 8: without it 422 with Forbidden inside, not 403; a Role does not do."""
    claim = await site.claim("c")
    status = {"allocation": site.allocation(site.a)}
    for rules, everywhere in (([STATUS], True), ([STATUS, BINDING], False)):
        async with somebody(site, *rules, everywhere=everywhere) as user:
            no = await refused(user, claim, status)
            assert (no.status, no.reason) == (422, "Invalid")
            told = (
                "status.allocation: Forbidden: changing status.allocation or"
                ' status.reservedFor requires resource="resourceclaims/binding",'
                ' verb="update" permission'
            )
            assert told in no.message
            assert "at the cluster scope" in no.message
    async with somebody(site, STATUS, BINDING) as user:
        claim = await user.update({**claim, "status": status}, "status")
        assert allocated(claim)
        assert not allocated(await user.update({**claim, "status": {}}, "status"))


@pytest.mark.every_release
async def test_binding_is_not_asked_for_before_1_36(site: Fleet) -> None:
    """Before, whoever may write a claim's status may allocate it."""
    claim = await site.claim("c")
    status = {"allocation": site.allocation(site.a)}
    async with somebody(site, STATUS) as user:
        if release() >= "1.36":
            assert (await refused(user, claim, status)).status == 422
        else:
            assert allocated(await user.update({**claim, "status": status}, "status"))


async def test_wildcard_of_subresources_is_none(site: Fleet) -> None:
    """`resourceclaims/*` in a role is accepted and permits nothing."""
    claim = await site.claim("c")
    rules = may("get", "resourceclaims"), may("update", "resourceclaims/*")
    async with somebody(site, *rules) as user:
        no = await refused(user, claim, {"allocation": site.allocation(site.a)})
        assert (no.status, no.reason) == (403, "Forbidden")


async def test_device_status_asks_for_its_driver(site: Fleet) -> None:
    """`resourceclaims/driver` by the driver's name, with a verb of its own."""
    claim = await site.allocate(await site.claim("c"), site.a)
    ready = {"type": "Ready", "status": "True", "reason": "R", "message": ""}
    ready["lastTransitionTime"] = fleet.now()
    entry = {"driver": site.driver, "pool": site.a, "device": "dev-0"}
    status = {**claim["status"], "devices": [{**entry, "conditions": [ready]}]}
    verb = "arbitrary-node:update"
    other = may(verb, "resourceclaims/driver", GROUP, "other.example.com")
    async with somebody(site, STATUS, BINDING, other) as user:
        no = await refused(user, claim, status)
        assert no.status == 422
        assert f'"resourceclaims/driver", verb="[{verb}]" permission' in no.message
    ours = may(verb, "resourceclaims/driver", GROUP, site.driver)
    async with somebody(site, STATUS, ours) as user:
        claim = await user.update({**claim, "status": status}, "status")
    async with somebody(site, STATUS, BINDING) as user:
        # What the API server drops with the allocation is nobody's change.
        claim = await user.update(
            {**claim, "status": {"devices": claim["status"]["devices"]}}, "status"
        )
        assert not claim.get("status")


async def test_driver_on_the_node_itself_is_a_service_account(site: Fleet) -> None:
    """`associated-node` permits those whose token names the allocation's node."""
    claim = await site.allocate(await site.claim("c"), site.a)
    entry = {"driver": site.driver, "pool": site.a, "device": "dev-0"}
    status = {**claim["status"], "devices": [{**entry, "data": {"x": 1}}]}
    rule = may("associated-node:update", "resourceclaims/driver", GROUP, site.driver)
    account = f"system:serviceaccount:{site.namespace}:default"
    for name, node, accepted in (
        (account, site.b, False),
        ("just-a-user", site.a, False),
        (account, site.a, True),
    ):
        extra = {NODE_NAME: node}
        async with somebody(site, STATUS, rule, name=name, extra=extra) as user:
            if accepted:
                await user.update({**claim, "status": status}, "status")
            else:
                assert (await refused(user, claim, status)).status == 422


async def test_gate_and_pin_ask_for_patching_pods_only(site: Fleet) -> None:
    """No more than `pods`, `patch`: neither binding nor update."""
    pod = await site.create_pod("p", gated=True)
    async with somebody(site, may("patch", "pods", "")) as user:
        pin = {"op": "add", "path": "/spec/affinity", "value": pinned(site.a)}
        gate = {"op": "remove", "path": "/spec/schedulingGates"}
        assert "schedulingGates" not in (await user.patch(pod, [pin, gate]))["spec"]
