"""Kubernetes' groups of PodGroups, and PodGroups of Jobs: kube-scheduler agrees."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from moorings.bus_client import Client
from tests.lab.cluster import GATES, is_running, pods_until, template
from tests.lab.controlplane import objects, server
from tests.lab.controlplane.client import Json, Kube
from tests.lab.controlplane.fleet import Fleet
from tests.lab.controlplane.options import CONTROLLERS, Options
from tests.lab.controlplane.server import ControlPlane
from tests.lab.services import eventually
from tests.lab.waits import until_told

TREES = Options(
    feature_gates=(
        "GenericWorkload=true",
        "TopologyAwareWorkloadScheduling=true",
        "CompositePodGroup=true",
        "WorkloadWithJob=true",
    ),
    runtime_config=(
        "scheduling.k8s.io/v1beta1=true",
        "scheduling.k8s.io/v1alpha3=true",
    ),
    controllers=(*CONTROLLERS, "podgroup-protection-controller"),
)
VERSIONS = {"PodGroup": "v1beta1", "CompositePodGroup": "v1alpha3"}
POD_GROUP: Json = {
    "apiVersion": f"scheduling.k8s.io/{VERSIONS['PodGroup']}",
    "kind": "PodGroup",
}
HOST = "kubernetes.io/hostname"


@pytest.fixture(scope="module")
def control_plane(
    control_plane_programs: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ControlPlane]:
    """A control plane with groups of PodGroups, and PodGroups for Jobs."""
    folder = tmp_path_factory.mktemp("trees")
    with server.running(control_plane_programs, folder, TREES) as control_plane:
        yield control_plane


@pytest.fixture
async def site(site: Fleet) -> Fleet:
    """Two nodes, and a template of one device."""
    await template(site, "one", count=1)
    return site


async def group(site: Fleet, kind: str, name: str, least: int, **spec: Any) -> Json:
    """Create a group that needs so many pods, or groups."""
    field = "minCount" if kind == "PodGroup" else "minGroupCount"
    return await site.kube.create(
        {
            "apiVersion": f"scheduling.k8s.io/{VERSIONS[kind]}",
            "kind": kind,
            "metadata": {"namespace": site.namespace, "name": name},
            "spec": {
                "workloadRef": {"workloadName": "w", "templateName": "t"},
                "schedulingPolicy": {"gang": {field: least}},
                **spec,
            },
        }
    )


async def leaf(
    site: Fleet, name: str, parent: str, count: int, **spec: Any
) -> list[str]:
    """Create a PodGroup and its pods at our gate; gives their names."""
    above = {"parentCompositePodGroupName": parent}
    await group(site, "PodGroup", name, count, **above, **spec)
    return await add_pods(site, name, range(count))


async def add_pods(site: Fleet, name: str, numbers: range) -> list[str]:
    names = [f"{name}-{number}" for number in numbers]
    for each in names:
        pod = objects.pod(
            site.namespace,
            each,
            templates={"d": "one"},
            schedulingGates=GATES,
            schedulingGroup={"podGroupName": name},
        )
        await site.kube.create(pod)
    return names


async def gangs_of(client: Client, site: Fleet) -> dict[str, int]:
    """Count the decided pods of each gang, by name."""
    found: dict[str, int] = {}
    for record in await client.fetch_gangs():
        if record.namespace == site.namespace:
            placed = 0 if record.placed is None else len(record.placed.members)
            found[record.name] = found.get(record.name, 0) + placed
    return found


def on(topology: str) -> Json:
    return {"schedulingConstraints": {"topology": [{"key": topology}]}}


def is_scheduled(found: Json) -> bool:
    conditions = (found.get("status") or {}).get("conditions") or ()
    return any(
        one["type"] == "PodGroupInitiallyScheduled" and one["status"] == "True"
        for one in conditions
    )


async def test_a_tree_is_decided_once_with_topology_by_level(
    site: Fleet, kube: Kube, client: Client
) -> None:
    """Not before all groups that it needs are whole; kube-scheduler binds them."""
    await group(site, "CompositePodGroup", "x", 2)
    wide = await leaf(site, "wide", "x", 3, **on(HOST))
    (pod, *_) = await pods_until(kube, site.namespace, wide, lambda _: True)
    told = await until_told(kube, pod, "GangPodsMissing", 90.0)
    assert "1 of 2 groups of x are whole" in told
    names = [*wide, *await leaf(site, "loose", "x", 2)]
    pods = await pods_until(kube, site.namespace, names, is_running, 90.0)
    hosts = {pod["metadata"]["name"]: pod["spec"]["nodeName"] for pod in pods}
    assert len({hosts[name] for name in wide}) == 1
    assert await gangs_of(client, site) == {"x": 5}
    for each in ("wide", "loose"):
        about = {"metadata": {"namespace": site.namespace, "name": each}}
        assert await kube.until(POD_GROUP | about, is_scheduled)


async def test_groups_that_it_does_not_need_come_after(
    site: Fleet, kube: Kube, client: Client
) -> None:
    """Each of them as a whole, in the domain of those that run."""
    await group(site, "CompositePodGroup", "x", 1, **on(HOST))
    first = await leaf(site, "r-0", "x", 2)
    await pods_until(kube, site.namespace, first, is_running, 90.0)
    await group(site, "PodGroup", "r-1", 2, parentCompositePodGroupName="x")
    one = await add_pods(site, "r-1", range(1))
    (pod,) = await pods_until(kube, site.namespace, one, lambda _: True)
    told = await until_told(kube, pod, "GangPodsMissing", 90.0)
    assert "1 of 2 pods r-1 are there" in told
    rest = [*one, *await add_pods(site, "r-1", range(1, 2))]
    pods = await pods_until(kube, site.namespace, [*first, *rest], is_running, 90.0)
    assert len({pod["spec"]["nodeName"] for pod in pods}) == 1
    assert await gangs_of(client, site) == {"x": 4}


async def test_a_tree_that_kube_scheduler_refuses_holds_nothing(
    site: Fleet, kube: Kube
) -> None:
    await group(site, "CompositePodGroup", "x", 1)
    other = {"workloadRef": {"workloadName": "v", "templateName": "t"}}
    names = await leaf(site, "a", "x", 1, **other)
    (pod,) = await pods_until(kube, site.namespace, names, lambda _: True)
    told = await until_told(kube, pod, "GangGroupsInvalid", 90.0)
    assert "PodGroup a is of Workload v, CompositePodGroup x of w" in told
    claims = await kube.list("resource.k8s.io/v1", "ResourceClaim", site.namespace)
    assert not any((claim.get("status") or {}).get("allocation") for claim in claims)


@pytest.mark.parametrize(
    "scheduling", [{"schedulingPolicy": {"gang": {"minCount": 2}}}, {}]
)
async def test_the_gang_of_a_job_has_its_name(
    site: Fleet, kube: Kube, client: Client, scheduling: Json
) -> None:
    """Whatever its PodGroup is called; that of a Job that says nothing is no gang."""
    pod = objects.pod(
        site.namespace, "x", templates={"d": "one"}, schedulingGates=GATES
    )
    said = {"scheduling": scheduling} if scheduling else {}
    await kube.create(
        {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"namespace": site.namespace, "name": "train"},
            "spec": {
                "parallelism": 2,
                "completions": 2,
                "template": {"spec": pod["spec"] | {"restartPolicy": "Never"}},
                **said,
            },
        }
    )

    async def both_run() -> bool:
        pods = await kube.list("v1", "Pod", site.namespace)
        return len(pods) == 2 and all(map(is_running, pods))

    await eventually(both_run, lambda: "the Job's pods run", 90.0)
    pods = await kube.list("v1", "Pod", site.namespace)
    assert all(pod["spec"]["schedulingGroup"]["podGroupName"] for pod in pods)
    assert await gangs_of(client, site) == {"train": 2}
