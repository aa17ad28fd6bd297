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


def membership(kind: str, role: str, raw: dict[str, Any] | None = None) -> Any:
    """Read whose gang a pod is that a workload of a kind makes."""
    version = VERSIONS.get(kind, "apps/v1")
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


def test_an_indexed_job_numbers_its_pods() -> None:
    found = membership("Job", "", {"spec": {"completionMode": "Indexed"}})
    assert found.api == WorkloadAPI.INDEXED_JOB


def test_replicas_that_serve_are_each_alone() -> None:
    assert membership("Deployment", "").is_lone
