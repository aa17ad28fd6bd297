"""Whatever pods a published kind makes, in whatever order, none runs without the rest.

The game and its law are in tests/simulation/published.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Struct

from contracts.pods.kinds import KINDS, HowDecided
from tests.builders.values import NAMESPACE
from tests.builders.workloads import (
    controlled_by,
    coscheduling_pod_marks,
    job_pod_marks,
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
    stateful_set_pod_marks,
    volcano_pod_marks,
)
from tests.cases.group_trees import composite, pod_group
from tests.lab.soak import SOAK
from tests.simulation.published import MadePod, Published, PublishedGame, play

Json = dict[str, Any]
EXAMPLES = 2_000 if SOAK else 12
UID = "uid-owner"
MOVES = (
    *("create", "create", "create", "crowd", "delete", "terminate", "replace"),
    *("generate", "advance", "advance", "advance", "hear", "plan", "carry_out"),
    *("act", "solve", "schedule", "control", "restart", "pass_time"),
)
Shape = Callable[[int, int], Published]
"""Of so many workers, with so many that are enough where a kind says so."""


def roles(gang: str, marks: Callable[[str, int], Json], **counts: int) -> list[MadePod]:
    return [
        MadePod(marks(role, number), gang, role)
        for role, count in counts.items()
        for number in range(count)
    ]


def of_job(workers: int, _least: int, *, indexed: bool = False) -> Published:
    spec = {"parallelism": workers, "completions": workers}
    pods = roles(
        "j",
        lambda _, number: job_pod_marks("j", number if indexed else None),
        w=workers,
    )
    return Published((owner_object("Job", "j", spec),), tuple(pods), {"w": workers})


def of_indexed_job(workers: int, least: int) -> Published:
    return of_job(workers, least, indexed=True)


def of_stateful_set(workers: int, _least: int) -> Published:
    spec = {"replicas": workers, "podManagementPolicy": "Parallel"}
    pods = roles("s", lambda _, number: stateful_set_pod_marks("s", number), w=workers)
    owner = owner_object("StatefulSet", "s", spec)
    return Published((owner,), tuple(pods), {"w": workers})


def of_job_set(workers: int, _least: int) -> Published:
    spec = job_set_spec(replicated_job("driver"), replicated_job("w", workers))
    pods = roles(
        "s",
        lambda role, number: job_set_pod_marks("s", role, number),
        driver=1,
        w=workers,
    )
    owner = owner_object("JobSet", "s", spec)
    return Published((owner,), tuple(pods), {"driver": 1, "w": workers})


def of_mpi_job(workers: int, _least: int) -> Published:
    specs = {"Launcher": {"replicas": 1}, "Worker": {"replicas": workers}}
    pods = roles(
        "m",
        lambda role, _: mpi_job_pod_marks("m", role),
        launcher=1,
        worker=workers,
    )
    owner = owner_object("MPIJob", "m", {"mpiReplicaSpecs": specs})
    return Published((owner,), tuple(pods), {"launcher": 1, "worker": workers})


def of_kubeflow(kind: str, field: str) -> Shape:
    def shape(workers: int, least: int) -> Published:
        specs = {"Master": {"replicas": 1}, "Worker": {"replicas": workers}}
        policy = {"schedulingPolicy": {"minAvailable": 1 + least}}
        spec = {field: specs, "runPolicy": policy}
        version = {"apiVersion": "kubeflow.org/v1"}
        owner = owner_object("PyTorchJob", "k", spec) | {"kind": kind}

        def marks(role: str, _number: int) -> Json:
            made = kubeflow_pod_marks("PyTorchJob", "k", role, uid=UID)
            reference = made["ownerReferences"][0] | {"kind": kind} | version
            return made | {"ownerReferences": [reference]}

        pods = roles("k", marks, master=1, worker=workers)
        return Published((owner,), tuple(pods), {"master": 1, "worker": least})

    return shape


def of_volcano(workers: int, least: int) -> Published:
    tasks = [{"name": "ps", "replicas": 1}, {"name": "w", "replicas": workers}]
    spec = {"minAvailable": 1 + least, "tasks": tasks}
    pods = roles(
        "v",
        lambda task, _: volcano_pod_marks("v", task, uid=UID),
        ps=1,
        w=workers,
    )
    owner = owner_object("VolcanoJob", "v", spec)
    return Published((owner,), tuple(pods), {"ps": 1, "w": least})


def of_app_wrapper(workers: int, _least: int) -> Published:
    components = [{"podSets": [{"replicas": workers}]}, {"podSets": [{}]}]
    marks = {"labels": {"workload.codeflare.dev/appwrapper": "a"}}
    pods = roles("a", lambda _role, _number: marks, w=workers + 1)
    owner = owner_object("AppWrapper", "a", {"components": components})
    return Published((owner,), tuple(pods), {"w": workers + 1})


def of_ray_cluster(workers: int, _least: int) -> Published:
    groups = [{"groupName": "gpu", "replicas": workers}]
    pods = roles(
        "r",
        lambda group, _: ray_cluster_pod_marks("r", group),
        head=1,
        gpu=workers,
    )
    owner = owner_object("RayCluster", "r", {"workerGroupSpecs": groups})
    return Published((owner,), tuple(pods), {"head": 1, "gpu": workers})


def of_leader_worker_set(workers: int, _least: int) -> Published:
    """Two groups, each a gang."""
    pods = [
        MadePod(
            leader_worker_set_pod_marks("l", group, worker, workers + 1),
            f"l-{group}",
            "worker" if worker else "leader",
        )
        for group in range(2)
        for worker in range(workers + 1)
    ]
    return Published((), tuple(pods), {"leader": 1, "worker": workers})


def of_kueue(workers: int, _least: int) -> Published:
    pods = roles("q", lambda _role, _number: kueue_pod_marks("q", workers), w=workers)
    return Published((), tuple(pods), {"w": workers})


def of_coscheduling(workers: int, least: int) -> Published:
    pods = roles("c", lambda _role, _number: coscheduling_pod_marks("c"), w=workers)
    return Published(
        (pod_group_of_coscheduling("c", least),), tuple(pods), {"w": least}
    )


def of_pod_group(workers: int, least: int) -> Published:
    spec = {"schedulingPolicy": {"gang": {"minCount": least}}}
    owner = owner_object("Job", "g", spec) | {
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "PodGroup",
    }
    marks = {"spec": {"schedulingGroup": {"podGroupName": "g"}}}
    pods = roles("g", lambda _role, _number: marks, w=workers)
    return Published((owner,), tuple(pods), {"w": least})


def of_group_tree(workers: int, least: int) -> Published:
    """All groups are needed; the pods of one are in a group of its own."""
    owners = (
        composite("x", 2),
        composite("y", 1, parent="x"),
        pod_group("w", least, parent="y"),
        pod_group("driver", 1, parent="x"),
    )
    pods = roles("x", in_own_group, w=workers, driver=1)
    return Published(_in_namespace(owners), tuple(pods), {"w": least, "driver": 1})


def of_groups_to_choose_from(workers: int, _least: int) -> Published:
    """Each group is enough, and the others follow."""
    owners = (
        composite("x", 1),
        pod_group("a", workers, parent="x"),
        pod_group("b", 1, parent="x"),
    )
    pods = roles("x", in_own_group, a=workers, b=1)
    return Published(_in_namespace(owners), tuple(pods), {}, minimum=1)


def of_job_with_pod_group(workers: int, least: int) -> Published:
    policy = {"gang": {"minCount": least}}
    spec = {"parallelism": workers, "scheduling": {"schedulingPolicy": policy}}
    owner = controlled_by("Job", "j")
    group = pod_group("g", least)
    group["metadata"]["ownerReferences"] = [owner]
    marks = job_pod_marks("j") | in_own_group("g", 0)
    pods = roles("j", lambda _role, _number: marks, w=workers)
    owners = (owner_object("Job", "j", spec), *_in_namespace((group,)))
    return Published(owners, tuple(pods), {"w": least})


def in_own_group(group: str, _number: int) -> Json:
    return {"spec": {"schedulingGroup": {"podGroupName": group}}}


def _in_namespace(owners: Iterable[Json]) -> tuple[Json, ...]:
    place = {"namespace": NAMESPACE}
    return tuple(each | {"metadata": each["metadata"] | place} for each in owners)


class Drawn(Struct, frozen=True):
    """What a game is played with."""

    workers: int
    lack: int
    """So many fewer workers are enough."""
    spare: int
    """Devices beyond one for each pod; below 0: some get none."""
    renames: bool
    """True if pods come back under other names."""
    moves: list[tuple[str, int, int]]


GAMES = st.builds(
    Drawn,
    workers=st.integers(2, 4),
    lack=st.integers(0, 1),
    spare=st.integers(-2, 1),
    renames=st.booleans(),
    moves=st.lists(
        st.tuples(st.sampled_from(MOVES), st.integers(0, 11), st.integers(0, 11)),
        min_size=10,
        max_size=50,
    ),
)
SHAPES: dict[str, Shape] = {
    "Job.batch": of_job,
    "Job.batch, indexed": of_indexed_job,
    "StatefulSet.apps": of_stateful_set,
    "JobSet.jobset.x-k8s.io": of_job_set,
    "LeaderWorkerSet.leaderworkerset.x-k8s.io": of_leader_worker_set,
    "MPIJob.kubeflow.org, v2beta1": of_mpi_job,
    "MPIJob.kubeflow.org": of_kubeflow("MPIJob", "mpiReplicaSpecs"),
    "JAXJob.kubeflow.org": of_kubeflow("JAXJob", "jaxReplicaSpecs"),
    "PaddleJob.kubeflow.org": of_kubeflow("PaddleJob", "paddleReplicaSpecs"),
    "PyTorchJob.kubeflow.org": of_kubeflow("PyTorchJob", "pytorchReplicaSpecs"),
    "TFJob.kubeflow.org": of_kubeflow("TFJob", "tfReplicaSpecs"),
    "XGBoostJob.kubeflow.org": of_kubeflow("XGBoostJob", "xgbReplicaSpecs"),
    "RayCluster.ray.io": of_ray_cluster,
    "Job.batch.volcano.sh": of_volcano,
    "AppWrapper.workload.codeflare.dev": of_app_wrapper,
    "a pod group of Kueue": of_kueue,
    "a PodGroup of coscheduling": of_coscheduling,
    "a PodGroup of Kubernetes": of_pod_group,
    "a tree of PodGroups": of_group_tree,
    "PodGroups to choose from": of_groups_to_choose_from,
    "a PodGroup of a Job": of_job_with_pod_group,
}


def test_every_kind_that_is_decided_together_is_played() -> None:
    known = {
        f"{each.kind}.{each.group}"
        for each in KINDS
        if each.decided == HowDecided.TOGETHER
    }
    assert known <= SHAPES.keys()


@pytest.mark.parametrize("kind", SHAPES)
@settings(max_examples=EXAMPLES, deadline=None)
@given(drawn=GAMES)
def test_no_gang_begins_in_part(kind: str, drawn: Drawn) -> None:
    """Nor does one wait in the end that there are devices for."""
    published = SHAPES[kind](drawn.workers, drawn.workers - drawn.lack)
    needed = len(published.pods)
    game = PublishedGame(
        published, devices=max(needed + drawn.spare, 0), renames=drawn.renames
    )
    play(game, drawn.moves)
    if drawn.spare >= 0:
        assert game.count_running() == needed


@pytest.mark.parametrize("kind", SHAPES)
def test_pods_that_come_last_first_begin_together(kind: str) -> None:
    """The simplest game, by which the law is seen to look at something."""
    published = SHAPES[kind](3, 2)
    last = len(published.pods) - 1
    game = PublishedGame(published, devices=last + 1)
    steps = (("generate", 0, 0), ("advance", 3, 0), ("advance", 3, 0))
    moves = [(("create", last - number, 0), *steps) for number in range(last + 1)]
    play(game, [move for each in moves for move in each])
    gangs = {pod.gang for pod in published.pods}
    assert sorted(game.law.begun) == sorted(gangs)
