"""What kube-scheduler does with claims that somebody else has allocated."""

from __future__ import annotations

import asyncio

import pytest

from tests.lab.bound import report_condition, told_by_scheduler
from tests.lab.controlplane import fleet, objects
from tests.lab.controlplane.client import Json, Kube, RefusedError, named
from tests.lab.controlplane.fleet import (
    allocated,
    pinned,
    reservation,
    runs,
    users,
    waits,
)

IMMUTABLE = "status.allocation: Invalid value: null: field cannot be modified once set"


async def test_allocation_without_timestamp_and_reservation_never_binds(
    kube: Kube, namespace: str
) -> None:
    """Trap 1: with the reservation it adds the timestamp; that is refused each time."""
    async with fleet.running(kube, namespace) as site:
        claim = await site.allocate(await site.claim("c"), site.a, stamped=False)
        pod = await site.create_pod("p", claim)
        told = 'running PreBind plugin "DynamicResources": add reservation to claim'
        await kube.until(pod, waits(told))
        await site.failed(pod, times=2)
        pod = await kube.get(pod)
        assert "nodeName" not in pod["spec"]
        assert waits(IMMUTABLE)(pod)
        assert (await kube.get(claim))["status"] == claim["status"]


async def test_allocation_without_timestamp_binds_if_reserved_before(
    kube: Kube, namespace: str
) -> None:
    """It writes nothing to a claim that is reserved for the pod already."""
    async with fleet.running(kube, namespace) as site:
        claim = await site.claim("c")
        pod = await site.create_pod("p", claim, gated=True)
        claim = await site.allocate(claim, site.a, pods=[pod], stamped=False)
        await site.open_gate(pod)
        pod = await kube.until(pod, runs)
        assert pod["spec"]["nodeName"] == site.a
        assert await kube.get(claim) == claim


async def test_allocation_with_timestamp_is_reserved_by_kube_scheduler(
    kube: Kube, namespace: str
) -> None:
    """An allocation as it would write it needs no reservation before."""
    async with fleet.running(kube, namespace) as site:
        claim = await site.allocate(await site.claim("c"), site.b)
        pod = await site.create_pod("p", claim)
        pod = await kube.until(pod, runs)
        assert pod["spec"]["nodeName"] == site.b
        after = await kube.get(claim)
        assert after["status"]["allocation"] == claim["status"]["allocation"]
        assert after["status"]["reservedFor"] == [reservation(pod)]


async def test_allocation_is_cleared_if_its_node_takes_no_pods(
    kube: Kube, namespace: str
) -> None:
    """Trap 2, PostFilter: an unpinned pod loses its claim's devices to another node."""
    async with fleet.running(kube, namespace, cordoned=["a"]) as site:
        claim = await site.allocate(await site.claim("c"), site.a)
        pod = await kube.until(await site.create_pod("p", claim), runs)
        assert pod["spec"]["nodeName"] == site.b
        result = (await kube.get(claim))["status"]["allocation"]["devices"]["results"]
        assert result[0]["pool"] == site.b


async def test_allocation_is_cleared_if_its_device_cannot_be_attached(
    kube: Kube, namespace: str
) -> None:
    """KEP-5007: also of a pinned pod, and what the driver said goes with it."""
    attached, failed = "example.com/attached", "example.com/failed"
    binds = {"bindingConditions": [attached], "bindingFailureConditions": [failed]}
    async with fleet.running(kube, namespace) as site:
        claim = await site.claim("c")
        pod = await site.create_pod("p", claim, affinity=pinned(site.a), gated=True)
        claim = await site.allocate(claim, site.a, pods=[pod], result=binds)
        await site.open_gate(pod)
        await told_by_scheduler(site, pod, "BindingConditionsPending")
        await report_condition(site, claim, failed)
        await kube.until(pod, waits("device binding failed: claim=c, reason=Tried"))
        await kube.until(claim, lambda claim: "devices" not in claim["status"])
        pod = await kube.until(pod, runs)
        assert pod["spec"]["nodeName"] == site.a


async def test_allocation_stays_if_the_pod_is_pinned(
    kube: Kube, namespace: str
) -> None:
    """Trap 2: nothing but the pin keeps PostFilter away while the node is cordoned."""
    async with fleet.running(kube, namespace, cordoned=["a"]) as site:
        claim = await site.claim("c")
        pod = await site.create_pod("p", claim, affinity=pinned(site.a), gated=True)
        claim = await site.allocate(claim, site.a, pods=[pod])
        await site.open_gate(pod)
        await kube.until(pod, waits("1 node(s) were unschedulable"))
        assert await kube.get(claim) == claim
        node = named("v1", "Node", site.a)
        await kube.patch(node, {"spec": {"unschedulable": False}})
        pod = await kube.until(pod, runs)
        assert pod["spec"]["nodeName"] == site.a
        assert await kube.get(claim) == claim


async def test_pod_too_large_for_its_pinned_node_waits_with_its_allocation(
    kube: Kube, namespace: str
) -> None:
    """However the pod is pinned: nobody decides again, and nobody frees the device."""
    async with fleet.running(kube, namespace) as site:
        for number, pin in enumerate(
            ({"affinity": pinned(site.a)}, {"nodeSelector": hostname(site.a)})
        ):
            claim = await site.claim(f"c{number}")
            claim = await site.allocate(claim, site.a, f"dev-{number}")
            pod = site.pod(f"p{number}", claim, requests={"cpu": "1000"})
            pod["spec"].update(pin)
            await kube.until(await kube.create(pod), waits("Insufficient cpu"))
            assert await kube.get(claim) == claim


def hostname(node: str) -> Json:
    return {"kubernetes.io/hostname": node}


async def test_pin_to_another_node_than_the_claims_frees_the_claim(
    kube: Kube, namespace: str
) -> None:
    """The pin names the claim's own node, or kube-scheduler takes its own devices."""
    async with fleet.running(kube, namespace) as site:
        claim = await site.allocate(await site.claim("c"), site.a)
        pod = await site.create_pod("p", claim, affinity=pinned(site.b))
        await kube.until(pod, runs)
        result = (await kube.get(claim))["status"]["allocation"]["devices"]["results"]
        assert result[0]["pool"] == site.b


async def test_unallocated_claim_is_allocated_by_kube_scheduler(
    kube: Kube, namespace: str
) -> None:
    """Trap 9: a pod without a gate gets whatever kube-scheduler finds."""
    async with fleet.running(kube, namespace) as site:
        ours = await site.allocate(await site.claim("ours"), site.a)
        open_ = await site.claim("open")
        pod = await site.create_pod("p", ours, open_, affinity=pinned(site.a))
        await kube.until(pod, runs)
        open_ = await kube.get(open_)
        assert users(open_) == ["p"]
        result = open_["status"]["allocation"]["devices"]["results"][0]
        assert result["device"] != "dev-0", "what we allocated counts as taken"


async def test_failed_cycle_strips_reservations_and_leaves_allocations(
    kube: Kube, namespace: str
) -> None:
    """Unreserve: a named claim then stays allocated for nobody, also without its pod.

    A timestamp that is missing cannot be added later.
    """
    async with fleet.running(kube, namespace) as site:
        whole, bare = await site.claim("whole"), await site.claim("bare")
        pod = await site.create_pod("p", whole, bare, gated=True)
        whole = await site.allocate(whole, site.a, "dev-0", pods=[pod])
        bare = await site.allocate(bare, site.a, "dev-1", stamped=False)
        await site.open_gate(pod)
        left = await kube.until(whole, lambda c: "reservedFor" not in c["status"])
        assert left["status"]["allocation"] == whole["status"]["allocation"]
        bare["status"]["allocation"]["allocationTimestamp"] = fleet.now()
        with pytest.raises(RefusedError, match="field cannot be modified") as no:
            await kube.update(bare, "status")
        assert no.value.status == 422
        await kube.delete(pod)
        await kube.until_gone(pod)
        await site.controller_manager_caught_up()
        assert allocated(await kube.get(whole))


async def test_reservation_by_a_stranger_keeps_postfilter_away(
    kube: Kube, namespace: str
) -> None:
    """An entry of an unknown kind is kept, and the claim is not deallocated.

    No way to hold a claim all the same: see the hot loop.
    """
    marker = {
        "apiGroup": "example.com",
        "resource": "markers",
        "name": "m",
        "uid": "00000000-0000-0000-0000-000000000001",
    }
    async with fleet.running(kube, namespace, cordoned=["a"]) as site:
        claim = await site.claim("c")
        pod = await site.create_pod("p", claim, gated=True)
        claim = await site.allocate(claim, site.a, pods=[pod])
        claim["status"]["reservedFor"].append(marker)
        claim = await kube.update(claim, "status")
        await site.open_gate(pod)
        await site.failed(pod, times=1)
        assert await kube.get(claim) == claim


async def test_claim_of_an_extended_resource_is_made_while_binding(
    kube: Kube, namespace: str
) -> None:
    """Trap 10: before that there is nothing to allocate ahead."""
    async with fleet.running(kube, namespace) as site:
        name = f"{namespace}.example.com/gpu"
        extended = objects.device_class(f"{namespace}-extended", site.driver)
        extended["spec"]["extendedResourceName"] = name
        await kube.create(extended)
        pod = site.pod("p", gated=True)
        has = {"requests": {name: "1"}, "limits": {name: "1"}}
        pod["spec"]["containers"][0]["resources"] = has
        pod = await kube.create(pod)
        await site.controller_manager_caught_up()
        assert not await kube.list(objects.RESOURCE, "ResourceClaim", namespace)
        await site.open_gate(pod)
        pod = await kube.until(pod, runs)
        made = pod["status"]["extendedResourceClaimStatus"]["resourceClaimName"]
        claim = named(objects.RESOURCE, "ResourceClaim", made, namespace)
        assert users(await kube.get(claim)) == ["p"]
        await kube.delete(extended)


async def test_many_gates_opened_at_once_keep_their_allocations(
    kube: Kube, namespace: str
) -> None:
    """Pods that are pinned to their claims' nodes bind there, a hundred at a time."""
    names = [f"n{number}" for number in range(10)]
    async with fleet.running(kube, namespace, names, objects.devices(10)) as site:
        wanted = [(node, f"dev-{d}") for node in site.nodes for d in range(10)]

        async def gated(number: int, node: str, device: str) -> tuple[Json, Json]:
            claim = await site.claim(f"c{number}")
            pod = await site.create_pod(
                f"p{number}", claim, gated=True, affinity=pinned(node)
            )
            return pod, await site.allocate(claim, node, device, pods=[pod])

        made = await asyncio.gather(*(gated(i, *w) for i, w in enumerate(wanted)))
        await asyncio.gather(*(site.open_gate(pod) for pod, _ in made))
        await asyncio.gather(*(kube.until(pod, runs) for pod, _ in made))
        after = await asyncio.gather(*(kube.get(claim) for _, claim in made))
        assert after == [claim for _, claim in made]
