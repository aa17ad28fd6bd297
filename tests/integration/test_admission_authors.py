"""What authors cannot write, so that nobody is given owned devices past the queue."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import pytest

from contracts.names import ATTEMPT, GANG_UID, INDEX, MANAGED, OWNED, SOLVE, VOID
from tests.lab.controlplane import objects
from tests.lab.controlplane.client import Json, Kube, RefusedError, path_of
from tests.lab.personas import BY_NAME

CLASS, FOREIGN = "gpu.moorings.dev", "gpu.example.com"
GENERATED = {"resource.kubernetes.io/pod-claim-name": "x"}
PUBLISHER = BY_NAME["publisher"].user
CONTROLLERS = (
    "system:kube-controller-manager",
    "system:serviceaccount:kube-system:resource-claim-controller",
)
"""Who generates claims: the second where kube-controller-manager runs with
`--use-service-account-credentials`, as kubeadm has it; the tests' own is the first."""
MASTERS = ("system:masters",)


@pytest.fixture
async def space(admin: Kube) -> AsyncIterator[str]:
    """A namespace of the test's own."""
    async with admin.namespace() as name:
        yield name


# --- annotations of the publisher -------------------------------------------------


@pytest.mark.parametrize("name", [VOID, GANG_UID, ATTEMPT, INDEX, SOLVE])
async def test_publishers_annotations_of_pods_are_its_own(
    admin: Kube, space: str, name: str
) -> None:
    """Not even an admin writes, changes or takes away one."""
    words = f"annotation {name}: only Moorings' publisher writes it"
    noted = {"metadata": {"annotations": {name: "x"}}}
    with pytest.raises(RefusedError, match=words):
        await admin.create(objects.pod(space, "noted", annotations={name: "x"}))
    gates = [{"name": "moorings.dev/allocation"}]
    pod = await admin.create(objects.pod(space, "p", schedulingGates=gates))
    with pytest.raises(RefusedError, match=words):
        await admin.patch(pod, noted)
    async with admin.acting_as(PUBLISHER) as publisher:
        await publisher.patch(pod, noted)
    for text in ("y", None):
        with pytest.raises(RefusedError, match=words):
            await admin.patch(pod, {"metadata": {"annotations": {name: text}}})
    await admin.patch(pod, {"metadata": {"annotations": {"own": "x"}}})


@pytest.mark.parametrize("subresource", ["status", "resize", "ephemeralcontainers"])
async def test_no_subresource_of_a_pod_writes_an_annotation_of_the_publisher(
    admin: Kube, space: str, subresource: str
) -> None:
    """The status would; by others 1.37 leaves all annotations as they are."""
    pod = await admin.create(objects.pod(space, "p"))
    with suppress(RefusedError):
        await admin.patch(pod, noted(GANG_UID), subresource)
    await admin.patch(pod, noted("own"), subresource)
    assert GANG_UID not in (await admin.get(pod))["metadata"].get("annotations", {})


async def test_no_binding_writes_an_annotation_of_the_publisher(
    admin: Kube, space: str
) -> None:
    """A Binding's annotations become its pod's."""

    async def bind(annotation: str) -> None:
        binding = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {
                "name": "p",
                "namespace": space,
                **noted(annotation)["metadata"],
            },
            "target": {"apiVersion": "v1", "kind": "Node", "name": "n"},
        }
        await admin.request("POST", path_of(pod, "binding"), binding)

    pod = await admin.create(objects.pod(space, "p"))
    with pytest.raises(RefusedError, match=f"annotation {GANG_UID}: only Moorings'"):
        await bind(GANG_UID)
    await bind("own")


def noted(name: str) -> dict[str, Any]:
    return {"metadata": {"annotations": {name: "x"}}}


async def test_publishers_mark_of_claims_is_its_own(admin: Kube, space: str) -> None:
    """Whoever writes it could have the publisher free what others allocated."""
    words = f"annotation {MANAGED}: only Moorings' publisher writes it"
    claim = objects.claim(space, "c", objects.requests(FOREIGN))
    template = objects.template(space, "t", objects.requests(FOREIGN))
    template["spec"]["metadata"] = {"annotations": {MANAGED: "true"}}
    created = await admin.create(claim)
    with pytest.raises(RefusedError, match=words):
        await admin.create(template)
    with pytest.raises(RefusedError, match=words):
        await admin.patch(created, {"metadata": {"annotations": {MANAGED: "true"}}})
    await admin.patch(created, noted(MANAGED), "status")  # leaves annotations alone
    assert MANAGED not in (await admin.get(created))["metadata"].get("annotations", {})
    claim["metadata"] |= {"name": "d", "annotations": {MANAGED: "true"}}
    with pytest.raises(RefusedError, match=words):
        await admin.create(claim)


# --- claims that look generated ---------------------------------------------------


async def test_claim_that_only_looks_generated_is_marked(
    admin: Kube, space: str
) -> None:
    """And not prepared: the annotation is anybody's to write."""
    claim = objects.claim(space, "c", objects.requests(CLASS))
    claim["metadata"]["annotations"] = GENERATED
    created = await admin.create(claim)

    assert created["metadata"]["labels"] == {OWNED: "true"}
    assert created["metadata"]["annotations"] == GENERATED
    with pytest.raises(RefusedError, match=r"has the label moorings\.dev/owned"):
        await admin.patch(created, {"metadata": {"labels": None}})


@pytest.mark.parametrize("user", CONTROLLERS)
async def test_generated_claim_is_prepared_for_either_user_of_the_controller(
    admin: Kube, space: str, user: str
) -> None:
    claim = objects.claim(space, "c", objects.requests(CLASS))
    claim["metadata"]["annotations"] = GENERATED
    async with admin.acting_as(user, MASTERS) as controller:
        created = await controller.create(claim)

    assert "labels" not in created["metadata"]
    assert created["metadata"]["annotations"] == {**GENERATED, MANAGED: "true"}


# --- tolerations of the owned taint -----------------------------------------------

TAINT_REFUSED = "request r tolerates the taint moorings.dev/owned"
KEY = {"key": OWNED, "operator": "Exists"}
REFUSED = {
    "by-key": KEY,
    "by-value": {
        "key": OWNED,
        "operator": "Equal",
        "value": "",
        "effect": "NoSchedule",
    },
    "all": {"operator": "Exists"},
    "all-of-an-effect": {"operator": "Exists", "effect": "NoSchedule"},
}
TAKEN = {
    "other-key": {"key": "moorings.dev/unhealthy", "operator": "Exists"},
    "evictions": {"operator": "Exists", "effect": "NoExecute"},
}


def _asking(toleration: Json, device_class: str = FOREIGN, **more: Any) -> Json:
    """Ask for a class that is not owned: its devices may be all the same."""
    return objects.requests(device_class, tolerations=[toleration], **more)


@pytest.mark.parametrize("name", REFUSED)
async def test_toleration_of_the_owned_taint_is_refused(
    admin: Kube, space: str, name: str
) -> None:
    """Of claims and templates, in requests and in their alternatives."""
    exactly = _asking(REFUSED[name])
    choice = {
        "name": "c",
        "deviceClassName": FOREIGN,
        "count": 1,
        "tolerations": [REFUSED[name]],
    }
    either = {"devices": {"requests": [{"name": "r", "firstAvailable": [choice]}]}}
    for spec in (exactly, either):
        for make in (objects.claim, objects.template):
            with pytest.raises(RefusedError, match=TAINT_REFUSED):
                await admin.create(make(space, "x", spec))


@pytest.mark.parametrize("name", TAKEN)
async def test_other_tolerations_are_the_authors(
    admin: Kube, space: str, name: str
) -> None:
    await admin.create(objects.claim(space, "c", _asking(TAKEN[name])))


async def test_monitors_tolerate_everything(admin: Kube) -> None:
    """They take nothing, and an admin has labelled their namespace."""
    labels = {"resource.kubernetes.io/admin-access": "true"}
    async with admin.namespace(**labels) as space:
        monitor = _asking(REFUSED["all"], CLASS, adminAccess=True)
        await admin.create(objects.claim(space, "c", monitor))
