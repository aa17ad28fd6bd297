"""Queues of Kueue in a cluster where none of its controllers runs."""

from __future__ import annotations

import asyncio

import pytest

from contracts.allocation import Rule
from contracts.gang import GangPhase
from contracts.kueue import QUEUE_NAME
from contracts.names import API_VERSION
from moorings.bus_client import Client
from moorings.cli.get_queues import fetch_places, list_queues
from moorings.views.times import to_text
from tests.builders.queues import cluster_queue, flavor, local_queue
from tests.lab.cluster import create_pods, is_running, template
from tests.lab.controlplane.client import Json, Kube
from tests.lab.controlplane.fleet import Fleet
from tests.lab.waits import pods_of, until_phase


@pytest.fixture(scope="module")
def served(gangs: None, queues: None) -> None:
    """See that the stack sees Gangs and queues from the start."""
    assert gangs is queues is None


def holding(site: Fleet, name: str, pods: int, queue: str = "") -> Json:
    """Describe a Gang that holds devices before its pods exist."""
    labels = {QUEUE_NAME: queue} if queue else {}
    claims = [{"name": "d", "templateName": "claims"}]
    members = [{"name": "pod", "count": pods, "claims": claims}]
    return {
        "apiVersion": API_VERSION,
        "kind": "Gang",
        "metadata": {"name": name, "namespace": site.namespace, "labels": labels},
        "spec": {"hold": True, "members": members},
    }


async def until_over_quota(client: Client, site: Fleet, name: str) -> str:
    """Wait until a gang is told that its quota is too small; gives the words."""
    while True:
        record = await until_phase(client, site, name, GangPhase.PENDING)
        for reason in record.reasons:
            if reason.rule is Rule.QUOTA:
                return reason.message
        await asyncio.sleep(0.2)


async def check_shown(client: Client, site: Fleet, queue: str) -> None:
    """Look at a queue whose first gang has two devices of three; others wait."""
    (view,) = (await list_queues(client, queue, wide=True)).views
    (quota,) = view["quotas"]
    assert (quota["used"], quota["nominal"], quota["left"]) == ("2", "3", "1")
    assert (view["running"], view["waiting"]) == (1, 2)
    gangs = await client.fetch_gangs()
    waits = [g.waits_since_s for g in gangs if g.name in {"large", "second"}]
    assert view["oldestSince"] == to_text(min(waits))
    lines = await fetch_places(client, gangs, [])
    places = {g.name: lines.view(g.key) for g in gangs if g.namespace == site.namespace}
    assert [places["large"], places["second"], places["first"]] == [
        {
            "place": place,
            "waiting": 2,
            "queue": queue,
            "higherPriority": 0,
            "olderInQueue": place - 1,
            "olderInNamespace": 0,
            "namespacesInTurn": 0,
            "byAge": 0,
        }
        for place in (1, 2)
    ] + [None]


async def test_a_queue_s_quota_is_kept_and_given_back(
    site: Fleet, kube: Kube, client: Client
) -> None:
    """By a LocalQueue that a Gang names, or `default` for pods that name none."""
    queue = f"q-{site.namespace}"
    await template(site, "claims", count=1)
    for made in (
        flavor("any"),
        cluster_queue(queue, {"any": {site.device_class: 3}}),
        local_queue(site.namespace, queue),
        local_queue(site.namespace, queue, "mine"),
    ):
        await kube.create(made)
    # No cluster of ours has so many devices: it is told of its queue once that is
    # known.
    await kube.create(holding(site, "large", 9, "mine"))
    await until_over_quota(client, site, "large")
    first = await kube.create(holding(site, "first", 2, "mine"))
    await until_phase(client, site, "first", GangPhase.DECIDED)
    await create_pods(site, "second", [0, 1], "claims", size=2)
    message = await until_over_quota(client, site, "second")
    assert f"{queue} holds 2 of its 3 of flavor any" in message
    await check_shown(client, site, queue)
    await kube.delete(first)
    await pods_of(site, "second", 2, is_running)
