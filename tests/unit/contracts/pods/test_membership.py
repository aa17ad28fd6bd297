"""Whose pods belong together, and how many make them whole."""

from __future__ import annotations

import pytest

from contracts.names import GANG, GANG_SIZE, MEMBER
from contracts.pods.membership import Membership, OwnerKey, WorkloadAPI, read_membership
from contracts.workload import Pod
from tests.builders import pod
from tests.builders.values import NAMESPACE
from tests.builders.workloads import (
    Json,
    coscheduling_pod_marks,
    job_pod_marks,
    job_set_pod_marks,
    kueue_pod_marks,
    leader_worker_set_pod_marks,
    made_pod,
    mpi_job_pod_marks,
    ray_cluster_pod_marks,
    stateful_set_pod_marks,
)


def labelled(size: str = "", name: str = "a") -> Pod:
    annotations = {GANG_SIZE: size} if size else {}
    labels = {GANG: "train", MEMBER: "worker"}
    return pod(name, labels=labels, annotations=annotations)


def test_our_label_names_the_gang_and_the_member() -> None:
    assert read_membership(labelled()) == Membership(
        namespace=NAMESPACE, group="train", member="worker"
    )


def test_a_pod_without_a_label_is_alone() -> None:
    """Under its own name."""
    assert read_membership(pod("a")) == Membership(
        namespace=NAMESPACE, group="a", is_lone=True
    )


# --- without a label of ours ----------------------------------------------------------

ALL = frozenset(WorkloadAPI)


@pytest.mark.parametrize(
    ("marks", "api", "group", "member", "owner"),
    [
        (job_pod_marks("j", 0), "IndexedJob", "j", "", "Job"),
        (job_pod_marks("j"), "Job", "j", "", "Job"),
        (stateful_set_pod_marks("db", 2), "StatefulSet", "db", "", "StatefulSet"),
        (job_set_pod_marks("set", "worker"), "JobSet", "set", "worker", "JobSet"),
        (
            leader_worker_set_pod_marks("llm", 3, 0, 4),
            "LeaderWorkerSet",
            "llm-3",
            "leader",
            "",
        ),
        (
            leader_worker_set_pod_marks("llm", 3, 1, 4),
            "LeaderWorkerSet",
            "llm-3",
            "worker",
            "",
        ),
        (mpi_job_pod_marks("pi", "launcher"), "MPIJob", "pi", "launcher", "MPIJob"),
        (mpi_job_pod_marks("pi", "worker"), "MPIJob", "pi", "worker", "MPIJob"),
        (ray_cluster_pod_marks("r", "head"), "RayCluster", "r", "head", "RayCluster"),
        (ray_cluster_pod_marks("r", "gpu"), "RayCluster", "r", "gpu", "RayCluster"),
        (ray_cluster_pod_marks("b", "GPU"), "RayCluster", "b", "gpu", "RayCluster"),
        (kueue_pod_marks("k", 4), "KueuePodGroup", "k", "", ""),
        (
            coscheduling_pod_marks("c"),
            "CoschedulingPodGroup",
            "c",
            "",
            "PodGroup.scheduling.x-k8s.io",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_pods_say_by_what_they_belong_together(
    marks: Json, api: str, group: str, member: str, owner: str
) -> None:
    """As the controllers mark them; with the API switched off they do not."""
    found = read_membership(made_pod("a", marks), ALL)
    assert (found.api, found.group, found.member) == (api, group, member)
    assert (found.owner.kind if found.owner else "") == owner
    assert not found.is_lone
    off = read_membership(made_pod("a", marks), ALL - {WorkloadAPI(api)})
    assert off.api != api


def test_kubernetes_own_group_stands_in_the_spec() -> None:
    pod = made_pod("a", {}, schedulingGroup={"podGroupName": "pg"})
    found = read_membership(pod, ALL)
    assert (found.api, found.group) == (WorkloadAPI.POD_GROUP, "pg")
    assert found.owner == OwnerKey("PodGroup", NAMESPACE, "pg")


def test_our_label_wins() -> None:
    marks = job_set_pod_marks("set", "worker")
    marks["labels"] |= {GANG: "train"}
    found = read_membership(made_pod("a", marks), ALL)
    assert (found.group, found.api, found.member) == ("train", None, "")


def test_our_member_label_wins() -> None:
    """The role stays what the object calls it: its pods are counted by that."""
    marks = job_set_pod_marks("set", "worker")
    marks["labels"] |= {MEMBER: "rank"}
    found = read_membership(made_pod("a", marks), ALL)
    assert (found.member, found.role) == ("rank", "worker")


def test_a_size_of_one_makes_a_pod_a_gang_of_its_own() -> None:
    """So a Job's author says that its pods need not start together."""
    marks = job_pod_marks("j", 0)
    marks["annotations"] |= {GANG_SIZE: "1"}
    assert read_membership(made_pod("a", marks), ALL).is_lone


def test_pods_of_two_runs_are_told_apart() -> None:
    """A JobSet that starts again makes all of its pods anew."""
    runs = {
        read_membership(made_pod("a", marks), ALL).run
        for marks in (
            job_set_pod_marks("set", "worker"),
            job_set_pod_marks("set", "worker", attempt=1),
            job_pod_marks("set", uid="one"),
            job_pod_marks("set", uid="two"),
        )
    }
    assert len(runs) == 4


def test_what_made_a_pod_of_a_fast_group_says_more_than_kueue() -> None:
    """Kueue lets the pods of a StatefulSet come one after the other."""
    marks = kueue_pod_marks("k", 4, fast=True)
    assert read_membership(made_pod("a", marks), ALL).group == "k"
    marks["ownerReferences"] = stateful_set_pod_marks("db", 0)["ownerReferences"]
    assert read_membership(made_pod("a", marks), ALL).api == WorkloadAPI.STATEFUL_SET


@pytest.mark.parametrize("kind", ["ReplicaSet", "DaemonSet", "Deployment"])
def test_what_serves_is_no_gang(kind: str) -> None:
    reference = {"apiVersion": "apps/v1", "kind": kind, "name": "web", "uid": "u"}
    marks = {"ownerReferences": [reference | {"controller": True}]}
    assert read_membership(made_pod("a", marks), ALL).is_lone


def test_a_kind_of_another_group_is_no_job() -> None:
    """Somebody else's Job is not asked how many pods it has."""
    reference = {"apiVersion": "example.com/v1", "kind": "Job", "name": "j", "uid": "u"}
    marks = {"ownerReferences": [reference | {"controller": True}]}
    assert read_membership(made_pod("a", marks), ALL).is_lone
