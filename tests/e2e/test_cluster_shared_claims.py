"""Claims that several pods use: one node, reserved for all of them, 256 at most."""

from __future__ import annotations

import asyncio

import pytest

from contracts.gang import GangPhase
from moorings.bus_client import Client
from tests.conftest import release
from tests.lab.cluster import gang_pod, is_running, job, name_of, template
from tests.lab.controlplane.client import Json, Kube
from tests.lab.controlplane.fleet import Fleet, allocated, users
from tests.lab.controlplane.options import LOOPS_UNTIL
from tests.lab.waits import pods_of, until_phase, until_told

LOOPS = release() < LOOPS_UNTIL
looping = pytest.mark.skipif(not LOOPS, reason="nothing is in the way any more")


async def sharing_pods(
    site: Fleet, gang: str, count: int, claim: str, *, size: int = 0
) -> list[Json]:
    pods = (
        gang_pod(
            site.namespace,
            f"{gang}-{number}",
            gang=gang,
            size=size or count,
            claims={"d": claim},
        )
        for number in range(count)
    )
    return list(await asyncio.gather(*map(site.kube.create, pods)))


async def test_pods_that_share_a_claim_run_on_one_node(site: Fleet, kube: Kube) -> None:
    claim = await site.claim("shared", 2)
    await sharing_pods(site, "train", 3, "shared")
    pods = await pods_of(site, "train", 3, is_running)
    assert len({pod["spec"]["nodeName"] for pod in pods}) == 1
    held = await kube.get(claim)
    assert sorted(users(held)) == [name_of(pod) for pod in pods]
    for pod in pods:
        site.kubelets.finish(pod)
    await kube.until(claim, lambda c: not allocated(c))


async def test_a_second_gang_joins_an_allocated_claim(
    site: Fleet, kube: Kube, client: Client
) -> None:
    """It goes where the claim is, with devices of its own beside it."""
    claim = await site.claim("shared", 2)
    await template(site, "single", count=1)
    await sharing_pods(site, "first", 2, "shared")
    first = await pods_of(site, "first", 2, is_running)
    pods = (
        gang_pod(
            site.namespace,
            f"second-{n}",
            gang="second",
            size=2,
            claims={"d": "shared"},
            templates={"own": "single"},
        )
        for n in range(2)
    )
    await asyncio.gather(*map(kube.create, pods))
    second = await pods_of(site, "second", 2, is_running)
    assert {p["spec"]["nodeName"] for p in second} == {first[0]["spec"]["nodeName"]}
    held = await kube.get(claim)
    assert len(users(held)) == 4
    for pod in first:
        await kube.delete(pod)
    await kube.until(claim, lambda c: sorted(users(c)) == ["second-0", "second-1"])
    for pod in second:
        await kube.delete(pod)
    await kube.until(claim, lambda c: not allocated(c))
    await until_phase(client, site, "second", GangPhase.COMPLETED)


async def test_more_users_than_a_claim_may_have_are_refused(
    site: Fleet, kube: Kube
) -> None:
    """Before anything is decided or written."""
    claim = await site.claim("shared", 1)
    pods = await sharing_pods(site, "crowd", 257, "shared")
    note = await until_told(kube, pods[0], "GangTooManyUsers")
    assert note.startswith(
        f"257 pods would use ResourceClaim {site.namespace}/shared; a claim allows 256"
    )
    assert not (await kube.get(claim)).get("status")


# --- the write loop of kube-controller-manager (kubernetes/kubernetes#141274) ---------


async def is_quiet(site: Fleet, claim: Json, *pods: Json) -> None:
    """Wait until a claim is reserved for these pods alone, and see that it stays so."""
    names = set(map(name_of, pods))
    await site.kube.until(claim, lambda c: set(users(c)) == names)
    await site.controller_manager_caught_up()
    quiet = await site.kube.get(claim)
    await site.controller_manager_caught_up()
    assert await site.kube.get(claim) == quiet
    assert set(users(quiet)) == names


@looping
async def test_a_finished_pod_of_a_job_does_not_keep_the_claim_busy(
    site: Fleet, kube: Kube
) -> None:
    """Once the Job has counted it, it is deleted; one that fails later is replaced."""
    claim = await site.claim("shared", 2)
    item = job(site, "train", 3, "")
    spec = item["spec"]["template"]["spec"]
    spec["resourceClaims"] = [{"name": "d", "resourceClaimName": "shared"}]
    created = await kube.create(item)
    first, second, third = await pods_of(site, "train", 3, is_running)
    site.kubelets.finish(first)
    await kube.until_gone(first)
    await is_quiet(site, claim, second, third)
    note = await until_told(kube, first, "GangFinishedPodInTheWay")
    # Who looks before the Job has counted it tells its author first.
    assert note.endswith(("it is deleted, its owner has counted it", "delete it"))
    await kube.delete(second)
    await kube.until_gone(second)
    for pod in await pods_of(site, "train", 2, is_running):
        site.kubelets.finish(pod)
    await kube.until(created, lambda job: job["status"].get("succeeded") == 3)


@looping
async def test_the_author_of_a_finished_pod_is_told_to_delete_it(
    site: Fleet, kube: Kube
) -> None:
    """Nobody else may miss it, but that is not ours to say."""
    claim = await site.claim("shared", 2)
    await sharing_pods(site, "train", 2, "shared")
    first, second = await pods_of(site, "train", 2, is_running)
    site.kubelets.finish(first)
    note = await until_told(kube, first, "GangFinishedPodInTheWay")
    assert note.endswith("delete it")
    await kube.delete(first)
    await is_quiet(site, claim, second)


@pytest.mark.skipif(LOOPS, reason="it is in the way")
async def test_a_finished_pod_is_in_nobodys_way(site: Fleet, kube: Kube) -> None:
    """From 1.38 on Kubernetes takes it out of the claim once; it stays."""
    claim = await site.claim("shared", 2)
    await sharing_pods(site, "train", 2, "shared")
    first, second = await pods_of(site, "train", 2, is_running)
    site.kubelets.finish(first)
    await kube.until(first, lambda pod: pod["status"]["phase"] == "Succeeded")
    await is_quiet(site, claim, second)
    assert (await kube.get(first))["status"]["phase"] == "Succeeded"
