"""A write loop of kube-controller-manager (kubernetes/kubernetes#141274).

Until 1.37, where a pod that was scheduled is terminal and its claim stays allocated,
one half of the controller removes its reservation and the other adds it again,
endlessly: hundreds of writes a second with raised client limits, 20 with its own. Only
the end of the pod ends it, or of the allocation.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing

import pytest

from tests.conftest import release
from tests.lab.controlplane import fleet
from tests.lab.controlplane.client import Json, Kube
from tests.lab.controlplane.fleet import Fleet, runs, users
from tests.lab.controlplane.options import LOOPS_UNTIL

LOOPS = release() < LOOPS_UNTIL
looping = pytest.mark.skipif(not LOOPS, reason="it does not loop any more")
ENOUGH = 20
"""Changes of one reservation that nobody asked for."""


async def turns(kube: Kube, claim: Json, pod: Json) -> None:
    """Return when a claim has lost and found its reservation for a pod so often."""
    name, last, count = pod["metadata"]["name"], None, 0
    async with asyncio.timeout(30), aclosing(kube.states(claim)) as states:
        async for state in states:
            assert state is not None
            has = name in users(state)
            count += has is not last
            last = has
            if count > ENOUGH:
                return


async def finished_pod(site: Fleet, name: str, claim: Json) -> Json:
    pod = await site.create_pod(name, claim)
    pod = await site.kube.until(pod, runs)
    site.kubelets.finish(pod)
    return pod


@looping
async def test_shared_claim_with_a_finished_pod(kube: Kube, namespace: str) -> None:
    """The other pod keeps the claim allocated: it loops until the first is gone."""
    async with fleet.running(kube, namespace) as site:
        claim = await site.claim("c")
        keeper = await site.create_pod("keeper", claim)
        await kube.until(keeper, runs)
        pod = await finished_pod(site, "p", claim)
        await turns(kube, claim, pod)
        await kube.delete(pod)
        await kube.until_gone(pod)
        await kube.until(claim, lambda c: users(c) == ["keeper"])
        await site.controller_manager_caught_up()
        assert users(await kube.get(claim)) == ["keeper"]


@looping
async def test_claim_without_finalizer_and_a_finished_pod(
    kube: Kube, namespace: str
) -> None:
    """Trap 4: without the finalizer nobody deallocates, so the loop runs."""
    async with fleet.running(kube, namespace) as site:
        claim = await site.claim("c")
        claim = await site.allocate(claim, site.a, protected=False)
        pod = await finished_pod(site, "p", claim)
        await turns(kube, claim, pod)
        await kube.delete(pod)
        await kube.until(claim, lambda c: "reservedFor" not in c["status"])


@looping
async def test_claim_with_a_reservation_of_a_strangers(
    kube: Kube, namespace: str
) -> None:
    """A marker in reservedFor, never removed by Kubernetes, makes it loop too."""
    marker = {
        "apiGroup": "example.com",
        "resource": "markers",
        "name": "m",
        "uid": "00000000-0000-0000-0000-000000000001",
    }
    async with fleet.running(kube, namespace) as site:
        claim = await site.allocate(await site.claim("c"), site.a)
        claim["status"]["reservedFor"] = [marker]
        claim = await kube.update(claim, "status")
        pod = await finished_pod(site, "p", claim)
        await turns(kube, claim, pod)
        await kube.delete(pod)
        await kube.until(claim, lambda c: users(c) == ["m"])
        await kube.patch(claim, {"status": None}, "status")


@pytest.mark.skipif(LOOPS, reason="it loops")
async def test_a_finished_pod_is_taken_out_of_a_shared_claim_once(
    kube: Kube, namespace: str
) -> None:
    """From 1.38 on."""
    async with fleet.running(kube, namespace) as site:
        claim = await site.claim("c")
        keeper = await site.create_pod("keeper", claim)
        await kube.until(keeper, runs)
        await finished_pod(site, "p", claim)
        await kube.until(claim, lambda c: users(c) == ["keeper"])
        await site.controller_manager_caught_up()
        assert users(await kube.get(claim)) == ["keeper"]


async def test_only_claim_of_its_pod_ends_quietly(kube: Kube, namespace: str) -> None:
    """With finalizer and no other user the same steps end in a free claim."""
    async with fleet.running(kube, namespace) as site:
        claim = await site.allocate(await site.claim("c"), site.a)
        await finished_pod(site, "p", claim)
        await kube.until(claim, lambda c: not c.get("status"))
        await site.controller_manager_caught_up()
        assert not (await kube.get(claim)).get("status")
