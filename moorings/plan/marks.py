"""Labels, annotations and owner that controllers give their pods.

By these marks pods say whose gang they are (`contracts/pods/membership.py`). Kinds that
are not listed make pods that name their maker and nothing else. Pure.

Source: as docs/workloads.md names the projects and their versions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

from contracts.meta import OwnerReference
from contracts.pods.membership import COMPLETION_INDEX, JOB_SET, KUBEFLOW, RAY

HEAD = "headgroupspec"
"""The role that the shape of a RayCluster gives its head."""


class PodMarks(Struct, frozen=True, kw_only=True):
    """Metadata that a controller gives a pod."""

    owner: OwnerReference
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}


def make_marks(
    raw: Mapping[str, Any], maker: OwnerReference, role: str, index: int
) -> PodMarks:
    """Return what a workload's controller writes on a pod of a role."""
    group = maker.api_version.partition("/")[0]
    make = _MAKERS.get((group, maker.kind))
    return PodMarks(owner=maker) if make is None else make(raw, maker, role, index)


def _mark_job_pods(
    raw: Mapping[str, Any], maker: OwnerReference, _role: str, index: int
) -> PodMarks:
    is_indexed = (raw.get("spec") or {}).get("completionMode") == "Indexed"
    numbers = {COMPLETION_INDEX: str(index)} if is_indexed else {}
    return PodMarks(owner=maker, labels=numbers, annotations=numbers)


def _job_set(
    _raw: Mapping[str, Any], maker: OwnerReference, role: str, index: int
) -> PodMarks:
    own = {
        f"{JOB_SET}jobset-name": maker.name,
        f"{JOB_SET}jobset-uid": maker.uid,
        f"{JOB_SET}replicatedjob-name": role,
        f"{JOB_SET}restart-attempt": "0",
    }
    numbers = {COMPLETION_INDEX: str(index)}
    return PodMarks(
        owner=_owned_job(maker, role), labels=own | numbers, annotations=own | numbers
    )


def _mpi_job(
    _raw: Mapping[str, Any], maker: OwnerReference, role: str, _index: int
) -> PodMarks:
    labels = {
        f"{KUBEFLOW}operator-name": "mpi-operator",
        f"{KUBEFLOW}job-name": maker.name,
        f"{KUBEFLOW}job-role": role,
    }
    is_launcher = role == "launcher"
    return PodMarks(
        owner=_owned_job(maker, role) if is_launcher else maker, labels=labels
    )


def _ray_cluster(
    _raw: Mapping[str, Any], maker: OwnerReference, role: str, _index: int
) -> PodMarks:
    is_head = role == HEAD
    labels = {
        f"{RAY}cluster": maker.name,
        f"{RAY}node-type": "head" if is_head else "worker",
        f"{RAY}group": "headgroup" if is_head else role,
    }
    return PodMarks(owner=maker, labels=labels)


def _owned_job(maker: OwnerReference, role: str) -> OwnerReference:
    """Refer to the Job that a controller makes for a role."""
    return OwnerReference(
        api_version="batch/v1",
        kind="Job",
        name=f"{maker.name}-{role}",
        uid=f"{maker.uid}-{role}",
        controller=True,
    )


_Maker = Callable[[Mapping[str, Any], OwnerReference, str, int], PodMarks]
_MAKERS: dict[tuple[str, str], _Maker] = {
    ("batch", "Job"): _mark_job_pods,
    ("jobset.x-k8s.io", "JobSet"): _job_set,
    ("kubeflow.org", "MPIJob"): _mpi_job,
    ("ray.io", "RayCluster"): _ray_cluster,
}
