"""Claims that are allocated without a pod, and kept until they are deleted."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from contracts.gang import GangPhase
from contracts.names import ALLOCATE, IMMEDIATE, OF_CLAIM, WORKLOAD
from moorings.bus_client import Client
from tests.conftest import release
from tests.lab.cluster import Stack, create_pods, gang_pod, is_running, template
from tests.lab.controlplane import objects
from tests.lab.controlplane.client import Json, Kube
from tests.lab.controlplane.fleet import Fleet, allocated, users
from tests.lab.controlplane.options import LOOPS_UNTIL
from tests.lab.waits import pods_of, until_over, until_phase, until_told

LOOPS = release() < LOOPS_UNTIL
LABEL = {ALLOCATE: IMMEDIATE}


async def immediate(site: Fleet, name: str, count: int = 1, **request: Any) -> Json:
    """Create a claim with the label."""
    spec = objects.requests(site.device_class, count, **request)
    claim = objects.claim(site.namespace, name, spec)
    claim["metadata"]["labels"] = LABEL
    return await site.kube.create(claim)


def devices(claim: Json) -> list[tuple[str, str]]:
    """Give pool and name of each device that a claim has."""
    results = claim["status"]["allocation"]["devices"]["results"]
    return sorted((item["pool"], item["device"]) for item in results)


def is_idle(claim: Json) -> bool:
    """Whether a claim has devices and nobody uses them."""
    return allocated(claim) and not users(claim)


async def share(site: Fleet, claim: Json, number: int = 0) -> list[Json]:
    """Let a pod at our gate and one without it use a claim; gives them as they run."""
    name = claim["metadata"]["name"]
    gated = gang_pod(site.namespace, f"gated-{number}", claims={"d": name})
    plain = site.pod(f"plain-{number}", claim)
    made = await asyncio.gather(*map(site.kube.create, (gated, plain)))
    return [await site.kube.until(pod, is_running) for pod in made]


async def test_a_claim_is_allocated_without_a_pod_and_shared_by_those_that_come(
    site: Fleet, kube: Kube, client: Client
) -> None:
    """At our gate or not, they go where it is; it stays once they are gone."""
    claim = await immediate(site, "data", 2)
    held = devices(await kube.until(claim, is_idle))
    assert len(held) == 2
    note = await until_told(kube, claim, "Allocated")
    named = [f"{site.driver}/{pool}/{device}" for pool, device in held]
    assert note.startswith(f"it is kept until it is deleted: {', '.join(named)} on")
    for number in range(2):
        pods = await share(site, claim, number)
        assert {pod["spec"]["nodeName"] for pod in pods} == {held[0][0]}
        assert len(users(await kube.get(claim))) == 2
        for pod in pods:
            await kube.delete(pod)
        assert devices(await kube.until(claim, is_idle)) == held
    record = await until_phase(client, site, "data", GangPhase.ALLOCATED)
    assert record.submission is not None
    notes = record.submission.gang.metadata.annotations
    assert notes == {WORKLOAD: f"{OF_CLAIM}/data"}


async def is_quiet(site: Fleet, claim: Json) -> Json:
    """Wait until nobody writes a claim any more; gives it as it is then."""
    quiet: Json = {}
    while quiet != (last := await site.kube.get(claim)):
        quiet = last
        await site.controller_manager_caught_up()
    return quiet


@pytest.mark.skipif(not LOOPS, reason="nothing is in the way any more")
async def test_pods_that_ended_are_in_the_way_until_they_are_deleted(
    site: Fleet, kube: Kube, client: Client
) -> None:
    """kube-controller-manager would free the claim as often as it is written."""
    claim = await immediate(site, "data", 4)
    held = devices(await kube.until(claim, is_idle))
    pods = await share(site, claim)
    for pod in pods:
        site.kubelets.finish(pod)
    note = await until_told(kube, claim, "FinishedPodInTheWay")
    assert note.startswith("its devices are held; the pod has ended and")
    assert not allocated(await is_quiet(site, claim))
    await until_phase(client, site, "data", GangPhase.ALLOCATED)
    # Nobody else gets them meanwhile, though they are in no claim.
    await template(site, "all", count=4)
    await create_pods(site, "first", [0], "all", size=1)
    (running,) = await pods_of(site, "first", 1, is_running)
    assert running["spec"]["nodeName"] != held[0][0]
    await create_pods(site, "second", [0], "all", size=1)
    await until_phase(client, site, "second", GangPhase.PENDING)
    for pod in pods:
        await kube.delete(pod)
    assert devices(await kube.until(claim, is_idle)) == held


@pytest.mark.skipif(LOOPS, reason="they are in the way")
async def test_pods_that_ended_are_in_nobodys_way(site: Fleet, kube: Kube) -> None:
    claim = await immediate(site, "data", 4)
    held = devices(await kube.until(claim, is_idle))
    for pod in await share(site, claim):
        site.kubelets.finish(pod)
    await kube.until(claim, lambda item: not users(item))
    assert devices(await kube.until(claim, is_idle)) == held
    assert is_idle(await is_quiet(site, claim))


async def test_a_claim_without_room_says_why_and_is_allocated_once_there_is(
    site: Fleet, kube: Kube, client: Client
) -> None:
    """A claim that is deleted gives its devices to others: claims and gangs."""
    first, second = [await immediate(site, name, 4) for name in ("first", "second")]
    for claim in (first, second):
        await kube.until(claim, is_idle)
    third = await immediate(site, "third", 4)
    note = await until_told(kube, third, "DevicesTaken")
    assert "8 devices match, none is free" in note
    await kube.delete(first)
    await kube.until_gone(first)
    await kube.until(third, is_idle)
    (record,) = await until_over(client, site, "first")
    assert record.phase is GangPhase.COMPLETED
    await template(site, "all", count=4)
    await create_pods(site, "train", [0], "all", size=1)
    await until_phase(client, site, "train", GangPhase.PENDING)
    await kube.delete(second)
    await pods_of(site, "train", 1, is_running)


async def test_a_publisher_that_was_away_loses_nothing(
    site: Fleet, kube: Kube, stack: Stack
) -> None:
    """What came, went and was freed meanwhile is as it should be afterwards."""
    kept, gone = [await immediate(site, name, 2) for name in ("kept", "gone")]
    held = devices(await kube.until(kept, is_idle))
    await kube.until(gone, is_idle)
    pods = await share(site, kept)
    publisher = stack["publisher"]
    await asyncio.to_thread(publisher.kill)
    for pod in pods:
        await kube.delete(pod)
    await kube.until(kept, lambda item: not allocated(item))
    await kube.delete(gone)
    await kube.until_gone(gone)
    later = [
        await immediate(site, f"later-{number}", count)
        for number, count in enumerate((2, 4))
    ]
    publisher.start()
    assert devices(await kube.until(kept, is_idle)) == held
    for claim in later:
        await kube.until(claim, is_idle)


async def test_a_label_that_comes_later_does_the_same_and_one_that_goes_ends_it(
    site: Fleet, kube: Kube, client: Client
) -> None:
    """Also while pods of an incomplete gang wait for the claim."""
    claim = await site.claim("data", 2)
    pods = [
        gang_pod(
            site.namespace, f"train-{n}", gang="train", size=2, claims={"d": "data"}
        )
        for n in range(2)
    ]
    first = await kube.create(pods[0])
    await until_told(kube, first, "GangPodsMissing")
    assert not (await kube.get(claim)).get("status")
    await kube.patch(claim, {"metadata": {"labels": LABEL}})
    held = devices(await kube.until(claim, is_idle))
    await kube.create(pods[1])
    running = await pods_of(site, "train", 2, is_running)
    assert {pod["spec"]["nodeName"] for pod in running} == {held[0][0]}
    for pod in running:
        await kube.delete(pod)
    await kube.until(claim, is_idle)
    await kube.patch(claim, {"metadata": {"labels": {ALLOCATE: None}}})
    (record,) = await until_over(client, site, "data")
    assert record.phase is GangPhase.CANCELLED
    await kube.until(claim, lambda item: not allocated(item))


async def test_what_somebody_else_allocated_is_left_alone(
    site: Fleet, kube: Kube
) -> None:
    """It is allocated by us once that is gone."""
    claim = await site.allocate(await site.claim("data"), site.b, "dev-3")
    claim = await kube.patch(claim, {"metadata": {"labels": LABEL}})
    note = await until_told(kube, claim, "ClaimsTaken")
    assert note.startswith("it was allocated by somebody else")
    assert devices(await kube.get(claim)) == [(site.b, "dev-3")]
    await kube.patch(claim, {"status": {"allocation": None}}, "status")
    await until_told(kube, claim, "Allocated")
