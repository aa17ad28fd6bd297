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
from contracts.pods.membership import (
    APP_WRAPPER,
    COMPLETION_INDEX,
    EXCLUSIVE,
    JOB_SET,
    KUBEFLOW,
    KUBEFLOW_JOBS,
    LWS,
    RAY,
    VOLCANO,
    VOLCANO_GROUP,
)
from contracts.pods.templates import LEADER

HEAD = "headgroupspec"
"""The role that the shape of a RayCluster gives its head."""


class PodMarks(Struct, frozen=True, kw_only=True):
    """What a controller writes on a pod."""

    owner: OwnerReference
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    name: str = ""
    """Of the pod; empty: not known before it is there."""


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


def _kubeflow_job(
    raw: Mapping[str, Any], maker: OwnerReference, role: str, index: int
) -> PodMarks:
    if maker.kind == "MPIJob" and maker.api_version != "kubeflow.org/v1":
        return _mpi_job(raw, maker, role, index)
    labels = {
        f"{KUBEFLOW}job-name": maker.name,
        f"{KUBEFLOW}replica-type": role,
        f"{KUBEFLOW}replica-index": str(index),
    }
    return PodMarks(owner=maker, labels=labels)


def _volcano_job(
    raw: Mapping[str, Any], maker: OwnerReference, role: str, index: int
) -> PodMarks:
    name = _name_task(raw, role)
    task = {f"{VOLCANO}task-spec": name, f"{VOLCANO}task-index": str(index)}
    labels = {f"{VOLCANO}job-name": maker.name, **task}
    return PodMarks(
        owner=maker,
        labels=labels,
        annotations=task,
        name=f"{maker.name}-{name.lower()}-{index}",
    )


def _name_task(raw: Mapping[str, Any], role: str) -> str:
    """Name a task as Volcano's webhook does, where its author did not.

    The role of the first such template is empty, that of others their number.
    """
    tasks = (raw.get("spec") or {}).get("tasks") or ()
    unnamed = [number for number, task in enumerate(tasks) if not task.get("name")]
    if not role and unnamed:
        return f"default{unnamed[0]}"
    is_number = role.isdecimal() and int(role) in unnamed
    return f"default{role}" if is_number else role


def _app_wrapper(
    _raw: Mapping[str, Any], maker: OwnerReference, _role: str, _index: int
) -> PodMarks:
    return PodMarks(owner=maker, labels={APP_WRAPPER: maker.name})


def _leader_worker_set(
    raw: Mapping[str, Any], maker: OwnerReference, role: str, index: int
) -> PodMarks:
    template = raw["spec"]["leaderWorkerTemplate"]
    size = template.get("size", 1)
    is_leader = role == LEADER
    group = index if is_leader else index // max(size - 1, 1)
    worker = 0 if is_leader else index % max(size - 1, 1) + 1
    leader = f"{maker.name}-{group}"
    labels = {
        f"{LWS}name": maker.name,
        f"{LWS}group-index": str(group),
        f"{LWS}worker-index": str(worker),
    }
    given = (raw.get("metadata") or {}).get("annotations") or {}
    exclusive = {key: given[key] for key in (EXCLUSIVE,) if key in given}
    annotations = {f"{LWS}size": str(size), **exclusive}
    policy = template.get("subGroupPolicy") or {}
    part = policy.get("subGroupSize")
    if part:
        annotations[f"{LWS}subgroup-size"] = str(part)
        kind = policy.get("type", "LeaderWorker")
        annotations[f"{LWS}subgroup-policy-type"] = kind
        if not is_leader or kind != "LeaderExcluded":
            subgroup = _find_subgroup(size, part, worker)
            labels[f"{LWS}subgroup-index"] = str(subgroup)
    return PodMarks(
        owner=maker,
        labels=labels,
        annotations=annotations,
        name=leader if is_leader else f"{leader}-{worker}",
    )


def _find_subgroup(size: int, part: int, worker: int) -> int:
    """Return the subgroup of a pod; a leader that is one too many is in the first.

    Source: LeaderWorkerSet v0.10.0, `getSubGroupIndex`.
    """
    if worker and (size - 1) % part == 0 and size % part:
        return (worker - 1) // part
    return worker // part


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


def _spark_application(
    _raw: Mapping[str, Any], maker: OwnerReference, role: str, index: int
) -> PodMarks:
    """Mark the driver, which is the operator's, or an executor, which is its own."""
    labels = {"spark-role": role, "sparkoperator.k8s.io/app-name": maker.name}
    driver = f"{maker.name}-driver"
    if role == "driver":
        return PodMarks(owner=maker, labels=labels, name=driver)
    owner = OwnerReference(
        api_version="v1",
        kind="Pod",
        name=driver,
        uid=f"{maker.uid}-driver",
        controller=True,
    )
    return PodMarks(owner=owner, labels=labels, name=f"{maker.name}-exec-{index + 1}")


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
    **{("kubeflow.org", kind): _kubeflow_job for kind in KUBEFLOW_JOBS},
    (VOLCANO_GROUP, "Job"): _volcano_job,
    ("workload.codeflare.dev", "AppWrapper"): _app_wrapper,
    ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"): _leader_worker_set,
    ("ray.io", "RayCluster"): _ray_cluster,
    ("sparkoperator.k8s.io", "SparkApplication"): _spark_application,
}
