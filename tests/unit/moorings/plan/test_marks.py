"""The marks of controllers make pods say whose gang they are."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs

from contracts.meta import OwnerReference
from contracts.pods.membership import WorkloadAPI, read_membership
from moorings.plan.marks import PodMarks, make_marks
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


def test_an_mpi_job_of_another_operator_is_another_owner() -> None:
    found = membership("MPIJob", "worker", version="kubeflow.org/v1")
    assert found.owner.kind == "MPIJob.v1"


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


def lws_marks(role: str, index: int, spec: dict[str, Any], **notes: str) -> PodMarks:
    raw = {"metadata": {"annotations": notes}, "spec": {"leaderWorkerTemplate": spec}}
    maker = OwnerReference(
        api_version="leaderworkerset.x-k8s.io/v1", kind="LeaderWorkerSet", name="llm"
    )
    return make_marks(raw, maker, role, index)


def test_pods_of_a_leader_worker_set_have_the_names_of_their_stateful_sets() -> None:
    spec = {"size": 3}
    assert [lws_marks("leader", n, spec).name for n in range(2)] == ["llm-0", "llm-1"]
    workers = [lws_marks("worker", number, spec).name for number in range(4)]
    assert workers == ["llm-0-1", "llm-0-2", "llm-1-1", "llm-1-2"]


@pytest.mark.parametrize(
    ("size", "part", "kind", "expected"),
    [
        (4, 2, "LeaderWorker", ["0", "0", "1", "1"]),
        # The leader is one too many, and of the first subgroup.
        (5, 2, "LeaderWorker", ["0", "0", "0", "1", "1"]),
        (5, 2, "LeaderExcluded", [None, "0", "0", "1", "1"]),
    ],
)
def test_subgroups_are_those_of_its_webhook(
    size: int, part: int, kind: str, expected: list[str | None]
) -> None:
    policy = {"subGroupSize": part, "type": kind}
    spec = {"size": size, "subGroupPolicy": policy}
    label = "leaderworkerset.sigs.k8s.io/subgroup-index"
    marks = [lws_marks("leader", 0, spec)]
    marks += [lws_marks("worker", number, spec) for number in range(size - 1)]
    assert [each.labels.get(label) for each in marks] == expected
    sizes = {
        each.annotations["leaderworkerset.sigs.k8s.io/subgroup-size"] for each in marks
    }
    assert sizes == {str(part)}


def test_a_driver_of_spark_makes_its_executors() -> None:
    maker = OwnerReference(
        api_version="sparkoperator.k8s.io/v1beta2", kind="SparkApplication", name="pi"
    )
    driver = make_marks({}, maker, "driver", 0)
    executor = make_marks({}, maker, "executor", 1)
    assert (driver.name, driver.owner) == ("pi-driver", maker)
    assert (executor.name, executor.labels["spark-role"]) == ("pi-exec-2", "executor")
    assert (executor.owner.kind, executor.owner.name) == ("Pod", "pi-driver")


def test_an_indexed_job_numbers_its_pods() -> None:
    found = membership("Job", "", {"spec": {"completionMode": "Indexed"}})
    assert found.api == WorkloadAPI.INDEXED_JOB


def test_replicas_that_serve_are_each_alone() -> None:
    assert membership("Deployment", "").is_lone
