"""The publisher writes of pods and claims what Moorings needs, and nothing else.

RBAC lets it patch and delete pods everywhere, which alone would be worth as much as a
cluster admin's rights: policies bind its account. What it must be able to do is tried
by all end-to-end tests, whose publisher is bound by the same policies.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, NamedTuple

import pytest

from contracts.names import GANG_UID, GATE, MANAGED, VOID
from tests.integration.conftest import Installed
from tests.lab.controlplane import objects
from tests.lab.controlplane.client import (
    Json,
    Kube,
    RefusedError,
    named,
    path_of,
)
from tests.lab.personas import BY_NAME

PUBLISHER = BY_NAME["publisher"].user
OWNED, FOREIGN = "gpu.moorings.dev", "gpu.example.com"
OTHER_GATE = {"name": "example.com/quota"}
GATES = [OTHER_GATE, {"name": GATE}]
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


@pytest.fixture
async def space(admin: Kube) -> AsyncIterator[str]:
    """A namespace of the test's own."""
    async with admin.namespace() as name:
        yield name


def _affinity(*nodes: str) -> Json:
    terms = [
        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
        for node in nodes
    ]
    return {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": terms}}}


def _opened(**spec: Any) -> Json:
    return {
        "metadata": {"annotations": {GANG_UID: "g"}},
        "spec": {
            "schedulingGates": [OTHER_GATE],
            "affinity": _affinity("node-1"),
            **spec,
        },
    }


ANYWHERE = {
    "nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Exists"}]}]
}
SPEC = "changes nothing of the spec of pods but its gate"
METADATA = "writes no metadata of pods but annotations of its own"
PINNED = "opens its gate together with a required node affinity for one node"
ONLY_GATED = "changes only pods at the gate moorings.dev/allocation"
IMAGE = {"op": "replace", "path": "/spec/containers/0/image", "value": "evil"}
TOLERATION = {
    "op": "add",
    "path": "/spec/tolerations/-",
    "value": {"operator": "Exists"},
}
WAITING: dict[str, tuple[Json | list[Json], str]] = {
    "image": ([IMAGE], SPEC),
    "image-with-the-gate": (
        [
            IMAGE,
            {"op": "remove", "path": "/spec/schedulingGates/1"},
            {"op": "add", "path": "/spec/affinity", "value": _affinity("node-1")},
        ],
        SPEC,
    ),
    "toleration": ([TOLERATION], SPEC),
    "node-selector": ({"spec": {"nodeSelector": {"a": "b"}}}, SPEC),
    "deadline": ({"spec": {"activeDeadlineSeconds": 1}}, SPEC),
    "preferred-affinity": (
        {
            "spec": {
                "affinity": {
                    "nodeAffinity": {
                        PREFERRED: [
                            {
                                "weight": 1,
                                "preference": ANYWHERE["nodeSelectorTerms"][0],
                            }
                        ]
                    }
                }
            }
        },
        SPEC,
    ),
    "label": ({"metadata": {"labels": {"app": "other"}}}, METADATA),
    "finalizer": ({"metadata": {"finalizers": ["example.com/f"]}}, METADATA),
    "foreign-annotation": ({"metadata": {"annotations": {"a": "b"}}}, METADATA),
    "annotation-taken-away": ({"metadata": {"annotations": {"own": None}}}, METADATA),
    "author's-annotation": (
        {"metadata": {"annotations": {"moorings.dev/gang-size": "1"}}},
        METADATA,
    ),
    "foreign-gate": (
        {"spec": {"schedulingGates": [{"name": GATE}]}},
        "opens no gate but",
    ),
    "gate-without-a-pin": ({"spec": {"schedulingGates": [OTHER_GATE]}}, PINNED),
    "gate-with-another-affinity": (
        _opened(affinity={"nodeAffinity": {REQUIRED: ANYWHERE}}),
        PINNED,
    ),
    "gate-with-a-pin-to-two": (_opened(affinity=_affinity("a", "b")), PINNED),
    "pin-alone": ({"spec": {"affinity": _affinity("node-1")}}, PINNED),
}
"""What is tried on a pod at the gate, and how the refusal begins."""


async def _pod(admin: Kube, space: str, name: str, **fields: Any) -> Json:
    pod = objects.pod(space, name, annotations={"own": "kept"}, **fields)
    return await admin.create(pod)


@pytest.mark.parametrize("name", WAITING)
async def test_publisher_changes_nothing_else_of_a_pod_at_the_gate(
    admin: Kube, space: str, name: str
) -> None:
    patch, words = WAITING[name]
    pod = await _pod(admin, space, "p", schedulingGates=GATES)
    async with admin.acting_as(PUBLISHER) as publisher:
        with pytest.raises(RefusedError, match=words):
            await publisher.patch(pod, patch)


async def test_publisher_marks_and_opens_what_waits(admin: Kube, space: str) -> None:
    """With every write that it makes of pods, as it makes them."""
    pod = await _pod(admin, space, "p", schedulingGates=GATES)
    async with admin.acting_as(PUBLISHER) as publisher:
        await publisher.patch(pod, {"metadata": {"annotations": {VOID: "g/1"}}})
        opened = await publisher.patch(pod, _opened())
        await publisher.delete(opened, grace_s=0)

    assert opened["spec"]["schedulingGates"] == [OTHER_GATE]


@pytest.mark.parametrize(
    "patch",
    [
        {"spec": {"activeDeadlineSeconds": 60}},
        {"metadata": {"annotations": {GANG_UID: "g"}}},
        {"metadata": {"labels": {"app": "other"}}},
    ],
)
async def test_publisher_leaves_pods_that_never_waited_alone(
    admin: Kube, space: str, patch: Json
) -> None:
    """So no pod can be marked first, to be deleted then."""
    pod = await _pod(admin, space, "p")
    async with admin.acting_as(PUBLISHER) as publisher:
        for attempt in (publisher.patch(pod, patch), publisher.delete(pod)):
            with pytest.raises(RefusedError, match=ONLY_GATED):
                await attempt


async def test_publisher_leaves_images_of_running_pods_alone(
    admin: Kube, space: str
) -> None:
    """Those that it let through as well: their gate is open."""
    pod = await _pod(admin, space, "p", schedulingGates=[{"name": GATE}])
    opened = {**_opened()["spec"], "schedulingGates": []}
    async with admin.acting_as(PUBLISHER) as publisher:
        pod = await publisher.patch(
            pod, {"metadata": {"annotations": {GANG_UID: "g"}}, "spec": opened}
        )
        with pytest.raises(RefusedError, match=ONLY_GATED):
            await publisher.patch(pod, [IMAGE])


def _eviction(pod: Json) -> tuple[str, str, Json]:
    meta = {name: pod["metadata"][name] for name in ("name", "namespace")}
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": meta}
    return "POST", path_of(pod, "eviction"), body


async def test_publisher_evicts_pods_of_tenants(admin: Kube, space: str) -> None:
    pod = await _pod(admin, space, "p")
    async with admin.acting_as(PUBLISHER) as publisher:
        await publisher.request(*_eviction(pod))
    await admin.until_gone(pod)


async def test_publisher_leaves_the_cluster_itself_alone(admin: Kube) -> None:
    pod = await _pod(admin, "kube-system", "waiting", schedulingGates=GATES)
    claim = await admin.create(
        objects.claim("kube-system", "c", objects.requests(OWNED))
    )
    async with admin.acting_as(PUBLISHER) as publisher:
        for attempt in (
            publisher.patch(pod, _opened()),
            publisher.delete(pod),
            publisher.request(*_eviction(pod)),
            publisher.patch(claim, TAKEN),
        ):
            with pytest.raises(RefusedError, match="leaves those of kube-system alone"):
                await attempt
    await admin.delete(pod, grace_s=0)
    await admin.delete(claim)


# --- claims -----------------------------------------------------------------------

FINALIZER = "resource.kubernetes.io/delete-protection"
TAKEN = {"metadata": {"finalizers": [FINALIZER], "annotations": {MANAGED: "true"}}}
SOMEBODY = {"apiGroup": "example.com", "resource": "x", "name": "x", "uid": "u"}
ANOTHER = {**SOMEBODY, "name": "y", "uid": "v"}
TAKES = "takes only claims that ask for an owned class and are not allocated"
FREES = "allocates and frees only claims with its annotation"


def _allocated(driver: str = OWNED) -> Json:
    result = {"request": "r", "driver": driver, "pool": "p", "device": "d"}
    allocation = {
        "devices": {"results": [result]},
        "allocationTimestamp": "2026-01-01T00:00:00Z",
    }
    return {"allocation": allocation, "reservedFor": [SOMEBODY]}


class ClaimAttempt(NamedTuple):
    """What the publisher tries on a claim, and how it is refused."""

    patch: Json
    words: str
    subresource: str = ""
    device_class: str = OWNED
    is_allocated: bool = False
    """By somebody else."""


CLAIMS = {
    "foreign-class": ClaimAttempt(TAKEN, TAKES, device_class=FOREIGN),
    "allocated-by-others": ClaimAttempt(TAKEN, TAKES, is_allocated=True),
    "label": ClaimAttempt(
        {"metadata": {"labels": {"a": "b"}}}, "no metadata of claims"
    ),
    "owner": ClaimAttempt(
        {
            "metadata": {
                "ownerReferences": [
                    {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"}
                ]
            }
        },
        "no metadata of claims",
    ),
    "allocates-unmarked": ClaimAttempt({"status": _allocated()}, FREES, "status"),
    "frees-unmarked": ClaimAttempt(
        {"status": {"allocation": None, "reservedFor": None}},
        FREES,
        "status",
        is_allocated=True,
    ),
    "strips-a-reservation": ClaimAttempt(
        {"status": {"reservedFor": None}}, FREES, "status", is_allocated=True
    ),
    "reserves-a-foreign-one": ClaimAttempt(
        {"status": {"reservedFor": [SOMEBODY, ANOTHER]}},
        FREES,
        "status",
        device_class=FOREIGN,
        is_allocated=True,
    ),
}


@pytest.mark.parametrize("name", CLAIMS)
async def test_publisher_writes_nothing_else_of_claims(
    admin: Kube, space: str, name: str
) -> None:
    attempt = CLAIMS[name]
    spec = objects.requests(attempt.device_class)
    claim = await admin.create(objects.claim(space, "c", spec))
    if attempt.is_allocated:
        claim = await admin.patch(claim, {"status": _allocated()}, "status")
    async with admin.acting_as(PUBLISHER) as publisher:
        with pytest.raises(RefusedError, match=attempt.words):
            await publisher.patch(claim, attempt.patch, attempt.subresource)


async def test_publisher_takes_allocates_and_frees_claims(
    admin: Kube, space: str
) -> None:
    """And reserves, for one more, what others allocated."""
    mine, theirs = [
        await admin.create(objects.claim(space, name, objects.requests(OWNED)))
        for name in ("mine", "theirs")
    ]
    await admin.patch(theirs, {"status": _allocated()}, "status")
    both = {"status": {"reservedFor": [SOMEBODY, ANOTHER]}}
    nothing = {"allocation": None, "reservedFor": None, "devices": None}
    device = {"driver": OWNED, "pool": "p", "device": "d", "data": {"seen": True}}
    async with admin.acting_as(PUBLISHER) as publisher:
        await publisher.patch(mine, TAKEN)
        await publisher.patch(mine, {"status": _allocated()}, "status")
        await publisher.patch(mine, both, "status")
        await publisher.patch(mine, {"status": {"devices": [device]}}, "status")
        freed = await publisher.patch(mine, {"status": nothing}, "status")
        shared = await publisher.patch(theirs, both, "status")

    assert "allocation" not in freed["status"]
    assert len(shared["status"]["reservedFor"]) == 2


async def test_policies_bind_it_where_nothing_else_does(
    installed_on_1_35: Installed,
) -> None:
    """The API server of 1.35 asks nobody whose device it is that is written about."""
    async with installed_on_1_35.control_plane.client() as admin:
        await admin.create(named("v1", "Namespace", "bound"))
        marked = objects.claim("bound", "c", objects.requests(OWNED))
        marked["metadata"]["labels"] = {"moorings.dev/owned": "true"}
        claim = await admin.create(marked)
        await admin.patch(claim, {"status": _allocated(FOREIGN)}, "status")
        device = {"driver": FOREIGN, "pool": "p", "device": "d", "data": {}}
        async with admin.acting_as(PUBLISHER) as publisher:
            with pytest.raises(RefusedError, match="node agents' drivers only"):
                await publisher.patch(
                    claim, {"status": {"devices": [device]}}, "status"
                )
            with pytest.raises(RefusedError, match="no metadata of claims"):
                await publisher.patch(claim, {"metadata": {"labels": {"a": "b"}}})
