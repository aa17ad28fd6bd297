"""The marks of controllers make pods say whose gang they are."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs

from contracts.meta import OwnerReference
from contracts.pods.membership import WorkloadAPI, read_membership
from moorings.plan.marks import make_marks
from tests import builders
from tests.builders.workloads import VERSIONS


def membership(
    kind: str, role: str, raw: dict[str, Any] | None = None, version: str = ""
) -> Any:
    """Read whose gang a pod is that a workload of a kind makes."""
    version = version or VERSIONS.get(kind, "apps/v1")
    maker = OwnerReference(
        api_version=version, kind=kind, name="train", uid="u", controller=True
    )
    marks = make_marks(raw or {}, maker, role, 3)
    pod = builders.pod("p", labels=marks.labels, annotations=marks.annotations)
    metadata = structs.replace(pod.metadata, owner_references=(marks.owner,))
    return read_membership(structs.replace(pod, metadata=metadata), tuple(WorkloadAPI))


@pytest.mark.parametrize(
    ("kind", "role", "api", "member"),
    [
        ("Job", "", WorkloadAPI.JOB, ""),
        ("StatefulSet", "", WorkloadAPI.STATEFUL_SET, ""),
        ("JobSet", "workers", WorkloadAPI.JOB_SET, "workers"),
        ("MPIJob", "launcher", WorkloadAPI.MPI_JOB, "launcher"),
        ("MPIJob", "worker", WorkloadAPI.MPI_JOB, "worker"),
        ("PyTorchJob", "worker", WorkloadAPI.KUBEFLOW_JOB, "worker"),
        ("TFJob", "chief", WorkloadAPI.KUBEFLOW_JOB, "chief"),
        ("AppWrapper", "w", WorkloadAPI.APP_WRAPPER, ""),
        ("RayCluster", "headgroupspec", WorkloadAPI.RAY_CLUSTER, "head"),
        ("RayCluster", "small", WorkloadAPI.RAY_CLUSTER, "small"),
    ],
)
def test_a_pod_is_of_the_gang_of_its_workload(
    kind: str, role: str, api: WorkloadAPI, member: str
) -> None:
    found = membership(kind, role)
    assert (found.api, found.group, found.member) == (api, "train", member)
    assert found.owner.kind == kind


def test_a_volcano_job_names_the_task() -> None:
    found = membership("Job", "w", version="batch.volcano.sh/v1alpha1")
    assert (found.api, found.group, found.member) == (
        WorkloadAPI.VOLCANO_JOB,
        "train",
        "w",
    )
    assert found.owner.kind == "Job.batch.volcano.sh"


def test_the_old_operator_of_mpi_jobs_makes_pods_of_its_own() -> None:
    found = membership("MPIJob", "worker", version="kubeflow.org/v1")
    assert (found.api, found.member) == (WorkloadAPI.KUBEFLOW_JOB, "worker")


@pytest.mark.parametrize(
    ("role", "group", "member"),
    # The fourth of the leaders, and of the workers, two for each leader.
    [("leader", "train-3", "leader"), ("worker", "train-1", "worker")],
)
def test_a_leader_and_its_workers_are_one_group(
    role: str, group: str, member: str
) -> None:
    raw = {"spec": {"leaderWorkerTemplate": {"size": 3}}}
    version = "leaderworkerset.x-k8s.io/v1"
    found = membership("LeaderWorkerSet", role, raw, version=version)
    assert (found.api, found.group, found.member) == (
        WorkloadAPI.LEADER_WORKER_SET,
        group,
        member,
    )


def test_an_indexed_job_numbers_its_pods() -> None:
    found = membership("Job", "", {"spec": {"completionMode": "Indexed"}})
    assert found.api == WorkloadAPI.INDEXED_JOB


def test_replicas_that_serve_are_each_alone() -> None:
    assert membership("Deployment", "").is_lone
