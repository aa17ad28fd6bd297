"""Pods without a label of ours are gangs by what made them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest
from msgspec import Struct

from contracts.lifecycle import GangRecord
from contracts.names import GATE, WORKLOAD
from moorings.client import Client
from tests.builders.workloads import (
    controlled_by,
    coscheduling_pod_marks,
    job_set_pod_marks,
    job_set_spec,
    kubeflow_pod_marks,
    kueue_pod_marks,
    leader_worker_set_pod_marks,
    mpi_job_pod_marks,
    owner_object,
    pod_group_of_coscheduling,
    ray_cluster_pod_marks,
    replicated_job,
    volcano_pod_marks,
)
from tests.lab import workloads
from tests.lab.cluster import (
    GATES,
    Stack,
    gang_pod,
    is_running,
    name_of,
    stateful_set,
    template,
    uid_of,
)
from tests.lab.command_line import moorings
from tests.lab.controlplane import fleet, objects
from tests.lab.controlplane.client import Json, Kube
from tests.lab.controlplane.fleet import Fleet
from tests.lab.services import eventually
from tests.lab.waits import until_told


class Late(Struct):
    """A gang that lacks one pod."""

    api: str
    name: str
    size: int
    waiting: Json
    """One of its pods."""
    last: Json
    """What makes the pod that is missing."""


async def pods_in(
    site: Fleet, count: int, prefix: str = "", *, running: bool = False
) -> list[Json]:
    """Wait for so many pods whose names begin so; gives them by name."""
    found: list[Json] = []

    async def enough() -> bool:
        pods = await site.kube.list("v1", "Pod", site.namespace)
        named = (pod for pod in pods if name_of(pod).startswith(prefix))
        found[:] = [pod for pod in named if is_running(pod) or not running]
        found.sort(key=name_of)
        return len(found) == count

    await eventually(enough, f"{count} pods {prefix}", 60.0)
    return found


def is_gated(pod: Json) -> bool:
    return any(gate["name"] == GATE for gate in pod["spec"].get("schedulingGates", ()))


async def test_a_job_starts_as_a_whole(site: Fleet, kube: Kube) -> None:
    """Not pod by pod as devices of another become free."""
    await template(site, count=2)
    await kube.create(workloads.made_job(site, "first", 3, "pair"))
    first = await pods_in(site, 3, "first", running=True)
    indexed: Json = {"completionMode": "Indexed"}
    await kube.create(workloads.made_job(site, "second", 3, "pair", **indexed))
    waiting = await pods_in(site, 3, "second")
    await until_told(kube, waiting[0], "GangDevicesTaken")
    pointed = await until_told(kube, waiting[1], "GangWaits", 60.0)
    assert "the events of Job second say why" in pointed
    claims = [await site.generated(pod) for pod in first[:1]]
    site.kubelets.finish(first[0])
    await kube.until_gone(claims[0])
    assert all(is_gated(pod) for pod in await pods_in(site, 3, "second"))
    for pod in first[1:]:
        site.kubelets.finish(pod)
    await pods_in(site, 3, "second", running=True)


async def test_pods_that_come_one_by_one_run_so(site: Fleet, kube: Kube) -> None:
    """An OrderedReady StatefulSet without a label waits for nobody."""
    await template(site, count=2)
    described = stateful_set(site, "db", 2, "pair")
    described["spec"]["podManagementPolicy"] = "OrderedReady"
    described["spec"]["selector"] = {"matchLabels": {"app": "db"}}
    described["spec"]["template"]["metadata"] = {"labels": {"app": "db"}}
    await kube.create(described)
    await pods_in(site, 2, "db", running=True)


async def test_a_labelled_one_is_told_what_to_change(site: Fleet, kube: Kube) -> None:
    """A gang of an OrderedReady StatefulSet would wait for ever."""
    await template(site, count=2)
    described = stateful_set(site, "db", 2, "pair")
    described["spec"]["podManagementPolicy"] = "OrderedReady"
    await kube.create(described)
    (pod,) = await pods_in(site, 1, "db")
    assert "podManagementPolicy to Parallel" in await until_told(
        kube, pod, "GangPodsMissing"
    )


async def test_a_gate_of_others_holds_the_whole_gang(site: Fleet, kube: Kube) -> None:
    """Devices are held for nobody who may not use them yet."""
    await template(site, count=2)
    pods = [
        gang_pod(
            site.namespace,
            f"staged-{n}",
            gang="staged",
            size=2,
            templates={"d": "pair"},
        )
        for n in range(2)
    ]
    pods[1]["spec"]["schedulingGates"] = [*GATES, {"name": "example.com/staged"}]
    made = [await kube.create(pod) for pod in pods]
    told = await until_told(kube, made[0], "GangOtherGates")
    assert "pod staged-1 waits at example.com/staged" in told
    assert is_gated(await kube.get(made[0]))
    await kube.patch(made[1], {"spec": {"schedulingGates": GATES}})
    await pods_in(site, 2, "staged", running=True)


async def test_pods_that_never_come_to_our_gate_are_known(
    site: Fleet, kube: Kube, stack: Stack, tmp_path: Path
) -> None:
    """Theirs is misspelt, or the label is all that they have."""
    await template(site, count=2)
    job = workloads.made_job(site, "stray", 2, "pair")
    gates = [{"name": "moorings.dev/gang"}]
    job["spec"]["template"]["spec"]["schedulingGates"] = gates
    await kube.create(job)
    pods = await pods_in(site, 2, "stray")
    advice = f"nobody opens the gate moorings.dev/gang; did you mean {GATE}?"
    assert advice in await until_told(kube, pods[0], "GangMarkHasNoEffect")
    alone = gang_pod(site.namespace, "bare", gang="bare", templates={"d": "pair"})
    del alone["spec"]["schedulingGates"]
    alone = await kube.create(alone)
    assert "but not the gate" in await until_told(kube, alone, "GangMarkHasNoEffect")

    async def says(*command: str) -> str:
        command = (*command, "-n", site.namespace)
        run = partial(moorings, *command, home=tmp_path, server=stack.nats.url)
        return (await asyncio.to_thread(run)).stdout

    async def are_listed() -> bool:
        gangs = await says("get", "gangs")
        return "stray" in gangs and "bare" in gangs

    await eventually(are_listed, "both are listed", 60.0)
    for what in ("stray", f"pod/{name_of(pods[1])}"):
        assert advice in await says("explain", what)
    assert "MarkHasNoEffect" in await says("explain", "pod/bare")


# --- kinds of other projects ----------------------------------------------------------


@pytest.fixture
async def large(kube: Kube, namespace: str, stack: Stack) -> AsyncIterator[Fleet]:
    """Two nodes with sixteen devices each, and the kinds of the projects."""
    assert stack.nats.url
    crds = await workloads.serve(kube)
    async with fleet.running(
        kube, namespace, devices=tuple(objects.devices(16))
    ) as site:
        await template(site, "one", count=1)
        yield site
    await workloads.stop_serving(kube, crds)


async def test_pods_of_other_projects_are_gangs(large: Fleet, client: Client) -> None:
    """Each waits for its last pod, and is decided once, with its roles."""
    late = await asyncio.gather(
        _job_set(large),
        _mpi_job(large),
        _ray_cluster(large),
        _coscheduling(large),
        _leader_worker_set(large),
        _kueue(large),
        _pytorch_job(large),
        _volcano_job(large),
        _app_wrapper(large),
    )
    told = (
        until_told(large.kube, gang.waiting, "GangPodsMissing", 60.0) for gang in late
    )
    await asyncio.gather(*told)
    for gang in late:
        await large.kube.create(gang.last)
    everybody = sum(gang.size for gang in late)
    await pods_in(large, everybody, running=True)
    records = [r for r in await client.fetch_gangs() if r.namespace == large.namespace]
    assert {_summary(record) for record in records} == {
        ("JobSet/set", ("driver", "worker"), 3),
        ("MPIJob/pi", ("launcher", "worker"), 3),
        ("RayCluster/ray", ("gpu", "head"), 3),
        ("CoschedulingPodGroup/team", ("pod",), 2),
        ("LeaderWorkerSet/llm-0", ("leader", "worker"), 3),
        ("KueuePodGroup/batch", ("pod",), 2),
        ("KubeflowJob/torch", ("master", "worker"), 3),
        ("VolcanoJob/vj", ("ps", "w"), 3),
        ("AppWrapper/wrapped", ("pod",), 3),
    }
    assert len(records) == len(late)


async def test_a_volcano_job_begins_with_its_minimum_and_grows(large: Fleet) -> None:
    """Room for four of six pods, two are enough; the others come as room comes."""
    await template(large, "eight", count=8)
    tasks = [{"name": "w", "replicas": 6}]
    owner = owner_object("VolcanoJob", "vj", {"minAvailable": 2, "tasks": tasks})
    marks = volcano_pod_marks("vj", "w", uid=await _create_owner(large, owner))
    made = [workloads.made_pod(large, f"vj-w-{n}", marks, "eight") for n in range(6)]
    first = await large.kube.create(made[0])
    await until_told(large.kube, first, "GangPodsMissing", 60.0)
    for pod in made[1:]:
        await large.kube.create(pod)
    begun = await pods_in(large, 4, running=True)
    waiting = [pod for pod in await pods_in(large, 6) if is_gated(pod)]
    await until_told(large.kube, waiting[0], "GangGrowing", 60.0)
    large.kubelets.finish(begun[0])

    async def grows() -> bool:
        return sum(map(is_gated, await pods_in(large, 6))) == 1

    await eventually(grows, "a fifth pod has devices", 60.0)


OF_TRAINING = {
    "JAXJob": "jaxReplicaSpecs",
    "MPIJob": "mpiReplicaSpecs",
    "PaddleJob": "paddleReplicaSpecs",
    "TFJob": "tfReplicaSpecs",
    "XGBoostJob": "xgbReplicaSpecs",
}
"""Kinds of kubeflow.org/v1 and the field of their roles."""


async def test_jobs_of_the_training_operator_are_gangs(site: Fleet, kube: Kube) -> None:
    """An MPIJob, too, where kubeflow.org/v1 alone is served, as that operator does."""
    version = "kubeflow.org/v1"
    crds = await workloads.serve(kube, [(version, kind) for kind in OF_TRAINING])
    late = [await _training_job(site, kind) for kind in OF_TRAINING]
    for gang in late:
        await until_told(kube, gang.waiting, "GangPodsMissing", 60.0)
        await kube.create(gang.last)
    await pods_in(site, sum(gang.size for gang in late), running=True)
    await workloads.stop_serving(kube, crds)


async def _training_job(site: Fleet, kind: str) -> Late:
    """Pods without devices: a master and two workers."""
    name = kind.lower()
    specs = {"Master": {"replicas": 1}, "Worker": {"replicas": 2}}
    raw = owner_object(kind, name, {OF_TRAINING[kind]: specs})
    uid = await _create_owner(site, raw | {"apiVersion": "kubeflow.org/v1"})
    pods = []
    for number, role in enumerate(("master", "worker", "worker")):
        marks = kubeflow_pod_marks(kind, name, role, uid=uid)
        marks["ownerReferences"][0]["apiVersion"] = "kubeflow.org/v1"
        pods.append(workloads.made_pod(site, f"{name}-{number}", marks, ""))
    return await _create_all_but_last(site, "KubeflowJob", name, pods)


def _summary(record: GangRecord) -> tuple[str, tuple[str, ...], int]:
    assert record.submission is not None
    gang = record.submission.gang
    members = sorted(gang.spec.members, key=lambda member: member.name)
    return (
        gang.metadata.annotations[WORKLOAD],
        tuple(member.name for member in members),
        sum(member.count for member in members),
    )


async def _create_owner(site: Fleet, raw: Json) -> str:
    """Create an object of another project; gives its uid."""
    raw["metadata"] = {"name": raw["metadata"]["name"], "namespace": site.namespace}
    return uid_of(await site.kube.create(raw))


async def _job_set(site: Fleet) -> Late:
    """A JobSet whose Jobs are made, one after the other, as its controller does."""
    spec = job_set_spec(replicated_job("driver"), replicated_job("worker", 2))
    uid = await _create_owner(site, owner_object("JobSet", "set", spec))
    jobs = []
    for role, index in (("worker", 0), ("worker", 1), ("driver", 0)):
        marks = job_set_pod_marks("set", role, index)
        own = {
            key: value
            for key, value in marks["labels"].items()
            if key.startswith("jobset")
        } | {"jobset.sigs.k8s.io/jobset-uid": uid}
        owner = controlled_by("JobSet", "set", uid)
        made = {"labels": own, "ownerReferences": [owner]}
        name = f"set-{role}-{index}"
        indexed: Json = {"completionMode": "Indexed"}
        jobs.append(workloads.made_job(site, name, 1, "one", made, **indexed))
    for job in jobs[:-1]:
        await site.kube.create(job)
    waiting = await pods_in(site, 2, "set")
    return Late("JobSet", "set", 3, waiting[0], jobs[-1])


async def _mpi_job(site: Fleet) -> Late:
    """Workers, and the Job of the launcher, which wants no device."""
    specs = {"Launcher": {"replicas": 1}, "Worker": {"replicas": 2}}
    owner = owner_object("MPIJob", "pi", {"mpiReplicaSpecs": specs})
    uid = await _create_owner(site, owner)
    for number in range(2):
        marks = mpi_job_pod_marks("pi", "worker", uid=uid)
        await site.kube.create(
            workloads.made_pod(site, f"pi-worker-{number}", marks, "one")
        )
    labels = mpi_job_pod_marks("pi", "launcher")["labels"]
    own = {key: value for key, value in labels.items() if key.startswith("training")}
    launcher = workloads.made_job(site, "pi-launcher", 1, "", {"labels": own})
    waiting = await pods_in(site, 2, "pi-worker")
    return Late("MPIJob", "pi", 3, waiting[0], launcher)


async def _ray_cluster(site: Fleet) -> Late:
    groups = [{"groupName": "gpu", "replicas": 2, "numOfHosts": 1}]
    owner = owner_object("RayCluster", "ray", {"workerGroupSpecs": groups})
    uid = await _create_owner(site, owner)
    pods = [
        workloads.made_pod(
            site, f"ray-{number}", ray_cluster_pod_marks("ray", group, uid=uid), "one"
        )
        for number, group in enumerate(("gpu", "gpu", "head"))
    ]
    return await _create_all_but_last(site, "RayCluster", "ray", pods)


async def _coscheduling(site: Fleet) -> Late:
    await _create_owner(site, pod_group_of_coscheduling("team", 2))
    marks = coscheduling_pod_marks("team")
    pods = [workloads.made_pod(site, f"team-{n}", marks, "one") for n in range(2)]
    return await _create_all_but_last(site, "CoschedulingPodGroup", "team", pods)


async def _leader_worker_set(site: Fleet) -> Late:
    pods = []
    for number in range(3):
        marks = leader_worker_set_pod_marks("llm", 0, number, 3)
        del marks["ownerReferences"]  # no StatefulSet is there that they would name
        pods.append(workloads.made_pod(site, f"llm-0-{number}", marks, "one"))
    return await _create_all_but_last(site, "LeaderWorkerSet", "llm-0", pods)


async def _pytorch_job(site: Fleet) -> Late:
    specs = {"Master": {"replicas": 1}, "Worker": {"replicas": 2}}
    raw = owner_object("PyTorchJob", "torch", {"pytorchReplicaSpecs": specs})
    uid = await _create_owner(site, raw)
    pods = []
    for number, role in enumerate(("master", "worker", "worker")):
        marks = kubeflow_pod_marks("PyTorchJob", "torch", role, uid=uid)
        pods.append(workloads.made_pod(site, f"torch-{number}", marks, "one"))
    return await _create_all_but_last(site, "KubeflowJob", "torch", pods)


async def _volcano_job(site: Fleet) -> Late:
    tasks = [{"name": "ps", "replicas": 1}, {"name": "w", "replicas": 2}]
    uid = await _create_owner(site, owner_object("VolcanoJob", "vj", {"tasks": tasks}))
    pods = []
    for number, task in enumerate(("ps", "w", "w")):
        marks = volcano_pod_marks("vj", task, uid=uid)
        pods.append(workloads.made_pod(site, f"vj-{number}", marks, "one"))
    return await _create_all_but_last(site, "VolcanoJob", "vj", pods)


async def _app_wrapper(site: Fleet) -> Late:
    """A Job of two pods and a pod: whoever makes them, they are one gang."""
    components = [{"podSets": [{"replicas": 2}]}, {"podSets": [{}]}]
    raw = owner_object("AppWrapper", "wrapped", {"components": components})
    await _create_owner(site, raw)
    marks = {"labels": {"workload.codeflare.dev/appwrapper": "wrapped"}}
    pods = [workloads.made_pod(site, f"wrapped-{n}", marks, "one") for n in range(3)]
    return await _create_all_but_last(site, "AppWrapper", "wrapped", pods)


async def _kueue(site: Fleet) -> Late:
    marks = kueue_pod_marks("batch", 2)
    pods = [workloads.made_pod(site, f"batch-{n}", marks, "one") for n in range(2)]
    return await _create_all_but_last(site, "KueuePodGroup", "batch", pods)


async def _create_all_but_last(
    site: Fleet, api: str, name: str, pods: list[Json]
) -> Late:
    made = [await site.kube.create(pod) for pod in pods[:-1]]
    return Late(api, name, len(pods), made[0], pods[-1])
