"""What kube-controller-manager does with claims: makes, frees, forgets them."""

from __future__ import annotations

import asyncio

from tests.lab.controlplane import fleet, objects
from tests.lab.controlplane.client import Json, Kube, named
from tests.lab.controlplane.fleet import (
    FINALIZER,
    Fleet,
    allocated,
    pinned,
    reservation,
    runs,
)
from tests.lab.controlplane.objects import RESOURCE

POD_CLAIM = "resource.kubernetes.io/pod-claim-name"
STRANGER = {
    "resource": "pods",
    "name": "nobody",
    "uid": "00000000-0000-0000-0000-000000000001",
}


def job(site: Fleet, name: str, **spec: object) -> Json:
    pod = site.pod("unused", templates={"d": "t"}, gated=True)
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"namespace": site.namespace, "name": name},
        "spec": {"template": {"spec": pod["spec"]}, **spec},
    }


def free(claim: Json) -> bool:
    return not allocated(claim) and FINALIZER not in claim["metadata"].get(
        "finalizers", ()
    )


async def test_template_claims_of_gated_pods_are_made_at_once(
    kube: Kube, namespace: str
) -> None:
    """Trap 13: the pod's status names the claim; it belongs to the pod."""
    site = Fleet(kube, namespace, ["a"])
    await site.template("t")
    pod = await kube.create(site.pod("p", templates={"d": "t"}, gated=True))
    claim = await site.generated(pod)
    meta = claim["metadata"]
    assert meta["generateName"] == "p-d-"
    assert meta["annotations"] == {POD_CLAIM: "d"}
    owner = meta["ownerReferences"][0]
    assert (owner["uid"], owner["controller"]) == (pod["metadata"]["uid"], True)


async def test_suspended_job_has_no_pods_and_no_claims(
    kube: Kube, namespace: str
) -> None:
    """Trap 13: until it goes on; then its gated pods have claims each."""
    site = Fleet(kube, namespace, ["a"])
    await site.template("t")
    shape = {"parallelism": 2, "completions": 2}
    waiting = await kube.create(job(site, "waiting", suspend=True, **shape))
    waiting = await kube.until(waiting, lambda j: "conditions" in j["status"])
    assert waiting["status"]["conditions"][0]["type"] == "Suspended"
    await site.controller_manager_caught_up()
    assert not await kube.list("v1", "Pod", namespace)
    assert not await kube.list(RESOURCE, "ResourceClaim", namespace)
    await kube.patch(waiting, {"spec": {"suspend": False}})
    await kube.until(waiting, lambda j: j["status"].get("active") == 2)
    pods = await kube.list("v1", "Pod", namespace)
    claims = [await site.generated(pod) for pod in pods]
    assert len({claim["metadata"]["uid"] for claim in claims}) == 2


async def test_template_claim_made_ahead_is_adopted(kube: Kube, namespace: str) -> None:
    """One with the pod as its owner and the annotation is as good as its own."""
    site = Fleet(kube, namespace, ["a"])
    pod = await kube.create(site.pod("p", templates={"d": "t"}, gated=True))
    ahead = objects.claim(namespace, "ahead", objects.requests(site.device_class))
    ahead["metadata"]["annotations"] = {POD_CLAIM: "d"}
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "controller": True}
    owner["uid"] = pod["metadata"]["uid"]
    ahead["metadata"]["ownerReferences"] = [owner]
    ahead = await kube.create(ahead)
    await site.template("t")
    assert (await site.generated(pod))["metadata"]["uid"] == ahead["metadata"]["uid"]
    assert len(await kube.list(RESOURCE, "ResourceClaim", namespace)) == 1


async def test_claim_of_a_finished_pod_is_deallocated(
    kube: Kube, namespace: str
) -> None:
    """Reservation, allocation and finalizer go, and a template claim with them."""
    async with fleet.running(kube, namespace) as site:
        await site.template("t")
        claim = await site.claim("named")
        pod = site.pod("p", claim, templates={"d": "t"}, affinity=pinned(site.a))
        pod = await kube.until(await kube.create(pod), runs)
        generated = await site.generated(pod)
        assert allocated(generated)
        site.kubelets.finish(pod)
        await kube.until(claim, free)
        await kube.until_gone(generated)


async def test_claim_of_a_deleted_gated_pod_is_deallocated(
    kube: Kube, namespace: str
) -> None:
    """What was allocated ahead for a pod that never started is given back."""
    site = Fleet(kube, namespace, ["a"])
    claim = await site.claim("c")
    pod = await site.create_pod("p", claim, gated=True)
    claim = await site.allocate(claim, site.a, pods=[pod])
    await kube.delete(pod)
    await kube.until(claim, free)


async def test_claim_that_was_never_reserved_stays_allocated(
    kube: Kube, namespace: str
) -> None:
    """Trap 5: only a reservation that ends makes Kubernetes free a claim."""
    site = Fleet(kube, namespace, ["a"])
    claim = await site.allocate(await site.claim("c"), site.a)
    await site.controller_manager_caught_up()
    assert await kube.get(claim) == claim
    await kube.delete(claim)
    await kube.until_gone(claim)


async def test_claim_without_finalizer_vanishes_under_a_running_pod(
    kube: Kube, namespace: str
) -> None:
    """Trap 4: its device looks free and goes to the next. With it the claim stays."""
    one = objects.devices(1)
    async with fleet.running(kube, namespace, ["a", "b"], one) as site:
        for node, protected in ((site.a, False), (site.b, True)):
            claim = await site.claim("c")
            pod = await site.create_pod(node, claim, gated=True, affinity=pinned(node))
            await site.allocate(claim, node, pods=[pod], protected=protected)
            await site.open_gate(pod)
            await kube.until(pod, runs)
            await kube.delete(claim)
            await site.controller_manager_caught_up()
            left = await kube.list(RESOURCE, "ResourceClaim", namespace)
            assert bool(left) == protected
            assert runs(await kube.get(pod))
        thief = await site.create_pod("thief", await site.claim("d"))
        thief = await kube.until(thief, lambda p: "nodeName" in p["spec"])
        assert thief["spec"]["nodeName"] == site.a
        async with asyncio.timeout(30):
            while not site.kubelets.drivers.conflicts:  # noqa: ASYNC110 # no event
                await asyncio.sleep(0.01)
        site.kubelets.drivers.conflicts.clear()


async def test_reservation_for_an_unknown_pod_clears_the_allocation(
    kube: Kube, namespace: str
) -> None:
    """A uid that is no pod's is a pod that is gone."""
    site = Fleet(kube, namespace, ["a"])
    claim = await site.claim("c")
    pod = await site.create_pod("p", claim, gated=True)
    entry = reservation(pod) | {"uid": STRANGER["uid"]}
    claim = await site.protect(claim)
    status = {"allocation": site.allocation(site.a), "reservedFor": [entry]}
    await kube.update({**claim, "status": status}, "status")
    await kube.until(claim, free)


async def test_reservation_is_added_for_a_pod_that_was_bound_by_others(
    kube: Kube, namespace: str
) -> None:
    """Whoever sets spec.nodeName at creation needs no kube-scheduler for it."""
    async with fleet.running(kube, namespace) as site:
        claim = await site.allocate(await site.claim("c"), site.a)
        pod = await site.create_pod("p", claim, nodeName=site.a)
        claim = await kube.until(claim, lambda c: "reservedFor" in c["status"])
        assert claim["status"]["reservedFor"] == [reservation(pod)]
        await kube.until(pod, runs)


async def test_next_pod_of_a_job_is_gated_again(kube: Kube, namespace: str) -> None:
    """Gates come from the pod template: each pod has its own claim, to be decided."""
    async with fleet.running(kube, namespace) as site:
        await site.template("t")
        made = await kube.create(job(site, "j", parallelism=1, completions=2))
        await kube.until(made, lambda j: j["status"].get("active") == 1)
        (first,) = await kube.list("v1", "Pod", namespace)
        claim = await site.generated(first)
        await site.allocate(claim, site.a, pods=[first])
        await site.open_gate(first)
        site.kubelets.finish(await kube.until(first, runs))
        await kube.until_gone(claim)
        await kube.until(
            made,
            lambda j: (
                (j["status"].get("succeeded"), j["status"].get("active")) == (1, 1)
            ),
        )
        pods = await kube.list("v1", "Pod", namespace)
        (second,) = [pod for pod in pods if pod["status"]["phase"] == "Pending"]
        assert second["spec"]["schedulingGates"]
        again = await site.generated(second)
        assert again["metadata"]["uid"] != claim["metadata"]["uid"]
        assert not allocated(again)


async def test_replaced_pod_of_a_stateful_set_keeps_its_name_not_its_claim(
    kube: Kube, namespace: str
) -> None:
    """The uid tells two pods of one name apart, and their claims."""
    site = Fleet(kube, namespace, ["a"])
    await site.template("t")
    pod = site.pod("unused", templates={"d": "t"}, gated=True)["spec"]
    labels = {"app": "s"}
    await kube.create(
        {
            "apiVersion": "apps/v1",
            "kind": "StatefulSet",
            "metadata": {"namespace": namespace, "name": "s"},
            "spec": {
                "selector": {"matchLabels": labels},
                "template": {
                    "metadata": {"labels": labels},
                    "spec": {**pod, "restartPolicy": "Always"},
                },
            },
        }
    )
    name = named("v1", "Pod", "s-0", namespace)
    first = await kube.until(name, lambda _: True)
    claim = await site.generated(first)
    await kube.delete(first)
    second = await kube.until(
        name, lambda p: bool(p["metadata"]["uid"] != first["metadata"]["uid"])
    )
    assert second["spec"]["schedulingGates"]
    assert (await site.generated(second))["metadata"]["uid"] != claim["metadata"]["uid"]
    await kube.until_gone(claim)
