"""On a control plane: a gang of lower priority goes for one that has waited."""

from __future__ import annotations

import asyncio

import pytest

from contracts.gang import GangPhase
from moorings.bus_client import Client
from tests.builders.queues import cluster_queue, flavor, local_queue
from tests.lab.cluster import GATES, is_running, job, template, uid_of
from tests.lab.controlplane.client import Json, Kube
from tests.lab.controlplane.fleet import Fleet
from tests.lab.services import eventually
from tests.lab.waits import pods_of, priority_class, until_phase, until_told

DELAY = "moorings.dev/preemption-delay"


@pytest.fixture(scope="module")
def served(gangs: None, queues: None) -> None:
    """See that the stack sees Gangs and queues from the start."""
    assert gangs is queues is None


@pytest.fixture
async def queue(site: Fleet, kube: Kube) -> None:
    """Let gangs of lower priority go in the one queue of the site."""
    made = cluster_queue(
        f"q-{site.namespace}",
        {
            f"any-{site.namespace}": {
                site.device_class: 99,
                "cpu": 999,
                "memory": 10**13,
            }
        },
        preemption={"withinClusterQueue": "LowerPriority"},
    )
    made["metadata"]["annotations"] = {DELAY: "3s"}
    local = local_queue(site.namespace, f"q-{site.namespace}")
    for each in (flavor(f"any-{site.namespace}"), made, local):
        await kube.create(each)


async def create_high(site: Fleet) -> Json:
    """Let a gang of a higher priority ask for all devices."""
    high = job(site, "high", 2, "four")
    high["spec"]["template"]["spec"]["priorityClassName"] = await priority_class(site)
    return await site.kube.create(high)


def budget(site: Fleet, gang: Json) -> Json:
    """Describe a budget that lets no pod of a Job go."""
    labels = gang["spec"]["template"]["metadata"]["labels"]
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "stays", "namespace": site.namespace},
        "spec": {"minAvailable": 2, "selector": {"matchLabels": labels}},
    }


def is_held(pod: Json) -> bool:
    return bool(pod["spec"].get("schedulingGates") == GATES)


@pytest.mark.usefixtures("queue")
async def test_a_gang_goes_whole_for_a_higher_one_when_its_budget_lets_it(
    site: Fleet, kube: Kube, client: Client
) -> None:
    """The site has two nodes with four devices each; both gangs need all of them."""
    await template(site, "four", count=4)
    low = job(site, "low", 2, "four")
    stays = await kube.create(budget(site, low))
    low = await kube.create(low)
    before = await pods_of(site, "low", 2, is_running)
    await create_high(site)
    told = await until_told(kube, before[0], "GangPreemptionRefused")
    assert "PodDisruptionBudget" in told
    assert "lets 0 pods go, and 2 must" in told
    assert len(await pods_of(site, "low", 2, is_running)) == 2

    await kube.delete(stays)
    told = await until_told(kube, low, "GangPreempted")
    assert f"for {site.namespace}/high, of higher priority" in told
    await pods_of(site, "high", 2, is_running)
    again = await pods_of(site, "low", 2, is_held)
    assert not {*map(uid_of, again)} & {*map(uid_of, before)}

    async def waits_for_a_reason() -> bool:
        record = await until_phase(client, site, "low", GangPhase.PENDING)
        return bool(record.reasons)

    await eventually(waits_for_a_reason, "the victim is told why it waits")


@pytest.mark.usefixtures("queue")
async def test_of_two_that_must_go_none_goes_if_one_may_not(
    site: Fleet, kube: Kube
) -> None:
    await template(site, "four", count=4)
    free, kept = job(site, "free", 1, "four"), job(site, "kept", 1, "four")
    stays = await kube.create(budget(site, kept))
    for low in (free, kept):
        await kube.create(low)
    (runs,) = await pods_of(site, "free", 1, is_running)
    (other,) = await pods_of(site, "kept", 1, is_running)
    await create_high(site)
    for pod in (runs, other):
        told = await until_told(kube, pod, "GangPreemptionRefused")
        assert "stays lets 0 pods go, and 1 must" in told
    assert is_running(await kube.get(runs))
    await kube.delete(stays)
    await pods_of(site, "high", 2, is_running)
    for name in ("free", "kept"):
        await pods_of(site, name, 1, is_held)


@pytest.mark.usefixtures("queue")
async def test_nobody_goes_for_a_gang_that_is_gone(site: Fleet, kube: Kube) -> None:
    """Its end is known before the budget lets the others go."""
    await template(site, "four", count=4)
    low = job(site, "low", 2, "four")
    stays = await kube.create(budget(site, low))
    await kube.create(low)
    before = await pods_of(site, "low", 2, is_running)
    high = await create_high(site)
    await until_told(kube, before[0], "GangPreemptionRefused")
    waiting = await pods_of(site, "high", 2, is_held)
    for gone in (high, *waiting):
        await kube.delete(gone)
    await asyncio.sleep(2)
    await kube.delete(stays)
    await asyncio.sleep(8)
    after = await pods_of(site, "low", 2, is_running)
    assert {*map(uid_of, after)} == {*map(uid_of, before)}
