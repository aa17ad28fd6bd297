"""Kubernetes' own PodGroups: decided once, and kube-scheduler's gang logic agrees."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from contracts.gang import GangPhase
from moorings.bus_client import Client
from tests.lab.cluster import GATES, is_running, pods_until, template
from tests.lab.controlplane import objects, server
from tests.lab.controlplane.client import Json, Kube
from tests.lab.controlplane.fleet import Fleet
from tests.lab.controlplane.options import CONTROLLERS, Options
from tests.lab.controlplane.server import ControlPlane
from tests.lab.waits import priority_class, until_over, until_told

NATIVE = Options(
    feature_gates=(
        "GenericWorkload=true",
        "DRAWorkloadResourceClaims=true",
        "TopologyAwareWorkloadScheduling=true",
    ),
    runtime_config=("scheduling.k8s.io/v1beta1=true",),
    controllers=(*CONTROLLERS, "podgroup-protection-controller"),
)


@pytest.fixture(scope="module")
def control_plane(
    control_plane_programs: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ControlPlane]:
    """A control plane with PodGroups and claims of theirs."""
    folder = tmp_path_factory.mktemp("native")
    with server.running(control_plane_programs, folder, NATIVE) as control_plane:
        yield control_plane


@pytest.fixture
async def site(site: Fleet) -> Fleet:
    """Two nodes, and a template of one device."""
    await template(site, "one", count=1)
    return site


async def pod_group(site: Fleet, name: str, policy: Json, **spec: Any) -> Json:
    return await site.kube.create(
        {
            "apiVersion": "scheduling.k8s.io/v1beta1",
            "kind": "PodGroup",
            "metadata": {"namespace": site.namespace, "name": name},
            "spec": {"schedulingPolicy": policy, **spec},
        }
    )


async def add_pods(site: Fleet, group: str, numbers: range, **fields: Any) -> list[str]:
    """Create pods of a PodGroup at our gate, each with the claim `d`; gives names."""
    names = [f"{group}-{number}" for number in numbers]
    for name in names:
        pod = objects.pod(
            site.namespace,
            name,
            templates={"d": "one"},
            schedulingGates=GATES,
            schedulingGroup={"podGroupName": group},
            **fields,
        )
        await site.kube.create(pod)
    return names


def gang(count: int) -> Json:
    return {"gang": {"minCount": count}}


async def test_a_pod_group_is_decided_once_and_bound(
    site: Fleet, kube: Kube, client: Client
) -> None:
    """Not before its least number of pods is there; kube-scheduler says it is in."""
    group = await pod_group(site, "train", gang(3))
    first = await add_pods(site, "train", range(2))
    (pod, _) = await pods_until(kube, site.namespace, first, lambda _: True)
    assert "2 of 3 pods are there" in await until_told(
        kube, pod, "GangPodsMissing", 90.0
    )
    names = [*first, *await add_pods(site, "train", range(2, 3))]
    await pods_until(kube, site.namespace, names, is_running, 60.0)
    records = [r for r in await client.fetch_gangs() if r.namespace == site.namespace]
    assert [record.name for record in records] == ["train"]
    assert await kube.until(group, _is_scheduled)


def _is_scheduled(group: Json) -> bool:
    conditions = (group.get("status") or {}).get("conditions") or ()
    return any(
        one["type"] == "PodGroupInitiallyScheduled" and one["status"] == "True"
        for one in conditions
    )


async def test_a_claim_of_the_group_is_one_claim(site: Fleet, kube: Kube) -> None:
    """All of its pods use it, on the node that it is on."""
    own = [{"name": "d", "resourceClaimTemplateName": "one"}]
    group = await pod_group(site, "shared", gang(2), resourceClaims=own)
    names = await add_pods(site, "shared", range(2))
    pods = await pods_until(kube, site.namespace, names, is_running, 60.0)
    assert len({pod["spec"]["nodeName"] for pod in pods}) == 1
    statuses = [pod["status"]["resourceClaimStatuses"][0] for pod in pods]
    (claim,) = {status["resourceClaimName"] for status in statuses}
    of_group = (await kube.get(group))["status"]["resourceClaimStatuses"]
    assert [status["resourceClaimName"] for status in of_group] == [claim]
    claims = await kube.list("resource.k8s.io/v1", "ResourceClaim", site.namespace)
    assert len(claims) == 1
    assert await kube.until(group, _is_scheduled)


async def test_the_topology_of_a_group_is_kept(site: Fleet, kube: Kube) -> None:
    """All of its pods in one domain, or none; those of no gang one by one."""
    topology = {"topology": [{"key": "kubernetes.io/hostname"}]}
    await pod_group(site, "wide", gang(5), schedulingConstraints=topology)
    await pod_group(site, "fits", gang(4), schedulingConstraints=topology)
    await pod_group(site, "loose", {"basic": {}})
    wide = await add_pods(site, "wide", range(5))
    (pod, *_) = await pods_until(kube, site.namespace, wide, lambda _: True)
    told = await until_told(kube, pod, "GangTopology", 90.0)
    assert "5 pods must be in one domain of kubernetes.io/hostname" in told
    fits = await add_pods(site, "fits", range(4))
    pods = await pods_until(kube, site.namespace, fits, is_running, 60.0)
    assert len({pod["spec"]["nodeName"] for pod in pods}) == 1
    loose = await add_pods(site, "loose", range(2))
    await pods_until(kube, site.namespace, loose, is_running, 60.0)


async def test_what_is_not_modelled_is_named(site: Fleet, kube: Kube) -> None:
    """A domain for pods that nobody decides together: they wait."""
    topology = {"topology": [{"key": "kubernetes.io/hostname"}]}
    await pod_group(site, "racks", {"basic": {}}, schedulingConstraints=topology)
    names = await add_pods(site, "racks", range(1))
    (pod,) = await pods_until(kube, site.namespace, names, lambda _: True)
    told = await until_told(kube, pod, "GangNotModelled", 90.0)
    assert "PodGroup racks: spec.schedulingConstraints.topology" in told


async def test_pods_that_differ_from_their_group_in_priority_hold_nothing(
    site: Fleet, kube: Kube
) -> None:
    """kube-scheduler would never bind them; neither value can be changed."""
    urgent_class = await priority_class(site)
    await pod_group(site, "odd", gang(2), priorityClassName=urgent_class)
    names = await add_pods(site, "odd", range(2))
    (pod, _) = await pods_until(kube, site.namespace, names, lambda _: True)
    note = await until_told(kube, pod, "GangPriorityDiffers", 90.0)
    assert "pod odd-0 has priority 0, PodGroup odd has 1000" in note
    claims = await kube.list("resource.k8s.io/v1", "ResourceClaim", site.namespace)
    assert not any((claim.get("status") or {}).get("allocation") for claim in claims)


async def test_a_group_that_is_preempted_as_a_whole_has_not_completed(
    site: Fleet, kube: Kube, client: Client
) -> None:
    """By its `disruptionMode`; else kube-scheduler takes one pod."""
    urgent_class = await priority_class(site)
    await pod_group(site, "whole", gang(2), disruptionMode={"all": {}})
    cpu: Json = {"requests": {"cpu": "60"}}
    names = await add_pods(site, "whole", range(2), **cpu)
    await pods_until(kube, site.namespace, names, is_running, 90.0)
    urgent = objects.pod(
        site.namespace,
        "urgent",
        node_selector=site.labels,
        priorityClassName=urgent_class,
        **cpu,
    )
    await kube.create(urgent)
    (record,) = await until_over(client, site, "whole")
    assert record.phase is GangPhase.CANCELLED
    assert "whole-0, whole-1 were preempted by kube-scheduler" in str(record.command)
