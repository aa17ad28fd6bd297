"""Gangs that are decided before they have pods: over NATS, or with `hold`."""

from __future__ import annotations

import pytest

from contracts.gang import GangPhase
from contracts.names import API_VERSION
from moorings.bus_client import Client
from tests import builders
from tests.lab.cluster import create_pods, is_running, name_of, template
from tests.lab.controlplane.client import Json, Kube
from tests.lab.controlplane.fleet import Fleet
from tests.lab.waits import pods_of, until_over, until_phase, until_told


@pytest.fixture(scope="module")
def served(gangs: None) -> None:
    """See that the stack sees Gangs from the start."""
    assert gangs is None


async def devices(site: Fleet, pod: Json) -> list[tuple[str, str]]:
    """Give pool and name of each device that a pod has."""
    claim = await site.generated(pod)
    results = claim["status"]["allocation"]["devices"]["results"]
    return sorted((item["pool"], item["device"]) for item in results)


async def test_a_gang_over_nats_waits_for_its_pods(
    site: Fleet, kube: Kube, client: Client
) -> None:
    """They get what was decided before they were there, in the order of their names."""
    await template(site, count=2)
    wanted = builders.member(
        builders.member_claim(
            builders.request("r", device_class=site.device_class, count=2), name="d"
        ),
        name="pod",
        count=2,
    )
    asked = builders.gang(wanted, name="train", namespace=site.namespace)
    await client.submit(asked)
    record = await until_phase(client, site, "train", GangPhase.DECIDED)
    assert record.allocated is not None
    decided = [
        sorted((r.pool, r.device) for r in m.claims[0].allocation.devices.results)
        for m in record.allocated.members
    ]
    (first,) = await create_pods(site, "train", [0])
    await until_told(kube, first, "GangPodsMissing")
    await create_pods(site, "train", [1])
    pods = await pods_of(site, "train", 2, is_running)
    assert [await devices(site, pod) for pod in pods] == decided
    for pod in pods:
        site.kubelets.finish(pod)
    (record,) = await until_over(client, site, "train")
    assert record.phase is GangPhase.COMPLETED


async def test_a_gang_that_holds_keeps_its_devices_until_it_is_deleted(
    site: Fleet, kube: Kube, client: Client
) -> None:
    """Nobody else gets them, though they are of no pod and in no claim yet."""
    await template(site, "all", count=4)
    claims = [{"name": "d", "templateName": "all"}]
    held = await kube.create(
        {
            "apiVersion": API_VERSION,
            "kind": "Gang",
            "metadata": {"name": "later", "namespace": site.namespace},
            "spec": {
                "hold": True,
                "members": [{"name": "pod", "count": 2, "claims": claims}],
            },
        }
    )
    await until_phase(client, site, "later", GangPhase.DECIDED)
    (other,) = await create_pods(site, "other", [0], "all", size=1)
    await until_phase(client, site, "other", GangPhase.PENDING)
    assert "moorings.dev/allocation" in str(other["spec"]["schedulingGates"])
    await kube.delete(held)
    (pod,) = await pods_of(site, "other", 1, is_running)
    assert name_of(pod) == "other-0"
