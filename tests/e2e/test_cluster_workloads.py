"""Pods without a label of ours are gangs by what made them."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path

from contracts.lifecycle import GangRecord
from contracts.names import GATE, WORKLOAD
from moorings.bus_client import Client
from tests.builders.controllers import list_children
from tests.builders.workloads import (
    coscheduling_pod_marks,
    kueue_pod_marks,
    owner_object,
    pod_group_of_coscheduling,
    volcano_pod_marks,
)
from tests.cases.published import SHAPES
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
from tests.lab.controlplane.client import Json, Kube
from tests.lab.controlplane.fleet import Fleet
from tests.lab.services import eventually
from tests.lab.waits import until_told


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


async def test_pods_that_name_their_group_are_gangs(
    site: Fleet, kube: Kube, client: Client
) -> None:
    """Whatever made them: each waits for its last pod, and is decided once."""
    await template(site, "one", count=1)
    crds = await workloads.serve(kube, [("scheduling.x-k8s.io/v1alpha1", "PodGroup")])
    await _create_owner(site, pod_group_of_coscheduling("team", 2))
    batch, team = kueue_pod_marks("batch", 2), coscheduling_pod_marks("team")
    first, last = (
        [
            workloads.made_pod(site, f"{name}-{number}", marks, "one")
            for name, marks in (("batch", batch), ("team", team))
        ]
        for number in range(2)
    )
    made = [await kube.create(pod) for pod in first]
    for pod in made:
        await until_told(kube, pod, "GangPodsMissing", 60.0)
    for pod in last:
        await kube.create(pod)
    await pods_in(site, 4, running=True)
    assert await _summaries(client, site) == [
        ("CoschedulingPodGroup/team", ("pod",), 2),
        ("KueuePodGroup/batch", ("pod",), 2),
    ]
    await workloads.stop_serving(kube, crds)


async def test_a_volcano_job_begins_with_its_minimum_and_grows(
    site: Fleet, kube: Kube
) -> None:
    """Room for four of six pods, two are enough; the others come as room comes."""
    await template(site, count=2)
    crds = await workloads.serve(kube, [("batch.volcano.sh/v1alpha1", "Job")])
    tasks = [{"name": "w", "replicas": 6}]
    owner = owner_object("VolcanoJob", "vj", {"minAvailable": 2, "tasks": tasks})
    marks = volcano_pod_marks("vj", "w", uid=await _create_owner(site, owner))
    made = [workloads.made_pod(site, f"vj-w-{n}", marks, "pair") for n in range(6)]
    first = await kube.create(made[0])
    await until_told(site.kube, first, "GangPodsMissing", 60.0)
    for pod in made[1:]:
        await kube.create(pod)
    begun = await pods_in(site, 4, running=True)
    waiting = [pod for pod in await pods_in(site, 6) if is_gated(pod)]
    await until_told(site.kube, waiting[0], "GangGrowing", 60.0)
    site.kubelets.finish(begun[0])

    async def grows() -> bool:
        return sum(map(is_gated, await pods_in(site, 6))) == 1

    await eventually(grows, "a fifth pod has devices", 60.0)
    await workloads.stop_serving(kube, crds)


async def test_an_mpi_job_of_the_training_operator_is_a_gang(
    site: Fleet, kube: Kube, client: Client
) -> None:
    """Where kubeflow.org/v1 alone is served, as that operator does."""
    await template(site, "one", count=1)
    crds = await workloads.serve(kube, [("kubeflow.org/v1", "MPIJob")])
    (job,), _ = SHAPES["MPIJob of v1"]
    metadata = {"name": "x", "namespace": site.namespace}
    for pod in list_children(await kube.create({**job, "metadata": metadata})):
        await kube.create(pod)
    await pods_in(site, 4, running=True)
    assert await _summaries(client, site) == [
        ("KubeflowJob/x", ("master", "worker"), 4)
    ]
    await workloads.stop_serving(kube, crds)


async def _summaries(
    client: Client, site: Fleet
) -> list[tuple[str, tuple[str, ...], int]]:
    """Describe each gang that was submitted: by what it is one, its members, pods."""
    records = await client.fetch_gangs()
    return sorted(
        _summary(each) for each in records if each.namespace == site.namespace
    )


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
