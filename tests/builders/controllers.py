"""What the controllers of published kinds make of an object, as raw objects.

Nothing of theirs runs here: names and numbers are those of their source, in the
versions that `workloads.py` names. Kubernetes' own controllers are not played.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from tests.builders.workloads import (
    job_set_pod_marks,
    kubeflow_pod_marks,
    leader_worker_set_pod_marks,
    mpi_job_pod_marks,
    ray_cluster_pod_marks,
    volcano_pod_marks,
)

Json = dict[str, Any]
_MADE_BY_KUBERNETES = (
    *(("v1", "Pod"), ("batch/v1", "Job")),
    *(("apps/v1", "StatefulSet"), ("apps/v1", "Deployment")),
)
_SPARK_ROLE = "spark-role"
DRAWN = "xxxxx"
"""In place of the characters that the API server draws."""


def list_children(owner: Json, beside: Sequence[Json] = ()) -> list[Json]:
    """Make what the controller of an object that is stored creates for it.

    Nothing for kinds of Kubernetes, whose controllers run, and for pods, but for the
    driver of a Spark application. `beside`: what was applied, such as the runtime of a
    TrainJob.
    """
    group = owner["apiVersion"].partition("/")[0]
    if _is_driver(owner):
        return list(_spark_executors(owner, beside))
    if owner["apiVersion"] == "kubeflow.org/v2beta1":
        return list(_mpi_job(owner))
    if group == "trainer.kubeflow.org":
        return list(_train_job(owner, beside))
    make = _MAKERS.get((group, owner["kind"])) or _MAKERS.get((group, ""))
    return [] if make is None else list(make(owner))


def makes_pods(raw: Json) -> bool:
    """True if an object is a pod that makes nothing, or Kubernetes makes its pods."""
    kind = raw["apiVersion"], raw["kind"]
    return kind in _MADE_BY_KUBERNETES and not _is_driver(raw)


def _is_driver(raw: Json) -> bool:
    return bool(raw["metadata"].get("labels", {}).get(_SPARK_ROLE) == "driver")


def _made(owner: Json, api_version: str, kind: str, name: str, **fields: Any) -> Json:
    """Make an object that another controls."""
    reference = {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": True,
    }
    metadata = {
        "name": name,
        "namespace": owner["metadata"]["namespace"],
        "ownerReferences": [reference],
    }
    return {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": metadata,
        **copy.deepcopy(fields),
    }


def _pod(owner: Json, name: str, template: Json, marks: Json) -> Json:
    """Make a pod from a template; labels and annotations of its controller win."""
    pod = _made(owner, "v1", "Pod", name, spec=template["spec"])
    _mark(pod, template.get("metadata", {}))
    _mark(pod, marks)
    if "ownerReferences" not in marks:
        del pod["metadata"]["ownerReferences"]
    return pod


def _mark(described: Json, marks: Json) -> None:
    """Give an object or a template labels and annotations."""
    metadata = described.setdefault("metadata", {})
    for field in ("labels", "annotations"):
        metadata[field] = {**metadata.get(field, {}), **marks.get(field, {})}


def _cron_job(owner: Json) -> Iterator[Json]:
    spec = owner["spec"]["jobTemplate"]["spec"]
    yield _made(owner, "batch/v1", "Job", f"{_name(owner)}-{DRAWN}", spec=spec)


def _kubeflow_job(owner: Json) -> Iterator[Json]:
    (specs,) = (
        value for key, value in owner["spec"].items() if key.endswith("ReplicaSpecs")
    )
    kind, name, uid = owner["kind"], _name(owner), owner["metadata"]["uid"]
    for role, described in specs.items():
        for number in range(described["replicas"]):
            marks = kubeflow_pod_marks(kind, name, role.lower(), uid=uid)
            pod = f"{name}-{role.lower()}-{number}"
            yield _pod(owner, pod, described["template"], marks)


def _mpi_job(owner: Json) -> Iterator[Json]:
    """Make the workers, then the Job of the launcher."""
    specs, name = owner["spec"]["mpiReplicaSpecs"], _name(owner)
    for number in range(specs["Worker"]["replicas"]):
        marks = mpi_job_pod_marks(name, "worker", uid=owner["metadata"]["uid"])
        template = specs["Worker"]["template"]
        yield _pod(owner, f"{name}-worker-{number}", template, marks)
    job = {
        "parallelism": 1,
        "completions": 1,
        "template": specs["Launcher"]["template"],
    }
    launcher = _made(owner, "batch/v1", "Job", f"{name}-launcher", spec=job)
    _mark_template(launcher, mpi_job_pod_marks(name, "launcher"), "training.kubeflow")
    yield launcher


def _train_job(owner: Json, beside: Iterable[Json]) -> Iterator[Json]:
    """Make the JobSet of the runtime, of which `node` has the nodes of the TrainJob."""
    if owner["kind"] != "TrainJob":
        return
    (runtime,) = (each for each in beside if each["kind"] == "ClusterTrainingRuntime")
    spec = copy.deepcopy(runtime["spec"]["template"]["spec"])
    nodes = owner["spec"]["trainer"]["numNodes"]
    for job in spec["replicatedJobs"]:
        if job["name"] == "node":
            job["template"]["spec"] |= {"parallelism": nodes, "completions": nodes}
    yield _made(owner, "jobset.x-k8s.io/v1alpha2", "JobSet", _name(owner), spec=spec)


def _job_set(owner: Json) -> Iterator[Json]:
    name = _name(owner)
    for replicated in owner["spec"]["replicatedJobs"]:
        for number in range(replicated.get("replicas", 1)):
            spec = {"completionMode": "Indexed", **replicated["template"]["spec"]}
            child = f"{name}-{replicated['name']}-{number}"
            job = _made(owner, "batch/v1", "Job", child, spec=spec)
            marks = job_set_pod_marks(name, replicated["name"], number)
            uid = {"jobset.sigs.k8s.io/jobset-uid": owner["metadata"]["uid"]}
            both = {key: marks[key] | uid for key in ("labels", "annotations")}
            _mark_template(job, both, "jobset.")
            yield job


def _mark_template(job: Json, marks: Json, prefix: str) -> None:
    """Give the pods of a Job what its maker marks them with, not what Jobs do."""
    own = {
        field: {k: v for k, v in marks.get(field, {}).items() if k.startswith(prefix)}
        for field in ("labels", "annotations")
    }
    _mark(job["spec"]["template"], own)


def _leader_worker_set(owner: Json) -> Iterator[Json]:
    """Make the pods of all groups, without the StatefulSets that would own them."""
    name, template = _name(owner), owner["spec"]["leaderWorkerTemplate"]
    for group in range(owner["spec"]["replicas"]):
        for worker in range(template["size"]):
            pods = template["workerTemplate"]
            if not worker:
                pods = template.get("leaderTemplate", pods)
            marks = leader_worker_set_pod_marks(name, group, worker, template["size"])
            del marks["ownerReferences"]
            suffix = f"-{worker}" if worker else ""
            yield _pod(owner, f"{name}-{group}{suffix}", pods, marks)


def _disaggregated_set(owner: Json) -> Iterator[Json]:
    for role in owner["spec"]["roles"]:
        name = f"{_name(owner)}-0-{DRAWN}-{role['name']}"
        version = "leaderworkerset.x-k8s.io/v1"
        yield _made(owner, version, "LeaderWorkerSet", name, spec=role["spec"])


def _volcano_job(owner: Json) -> Iterator[Json]:
    name, uid = _name(owner), owner["metadata"]["uid"]
    for place, task in enumerate(owner["spec"]["tasks"]):
        called = task.get("name", f"default{place}")
        for number in range(task["replicas"]):
            marks = volcano_pod_marks(name, called, uid=uid)
            yield _pod(owner, f"{name}-{called}-{number}", task["template"], marks)


def _app_wrapper(owner: Json) -> Iterator[Json]:
    """Make what it wraps, which here are objects with one pod template."""
    for component in owner["spec"]["components"]:
        raw = component["template"]
        name = raw["metadata"]["name"]
        made = _made(owner, raw["apiVersion"], raw["kind"], name, spec=raw["spec"])
        label = {"workload.codeflare.dev/appwrapper": _name(owner)}
        _mark(made["spec"]["template"], {"labels": label})
        yield made


def _ray_cluster(owner: Json) -> Iterator[Json]:
    name, uid, spec = _name(owner), owner["metadata"]["uid"], owner["spec"]
    head = ray_cluster_pod_marks(name, "head", uid=uid)
    yield _pod(owner, f"{name}-head", spec["headGroupSpec"]["template"], head)
    for group in spec["workerGroupSpecs"]:
        for number in range(group["replicas"]):
            marks = ray_cluster_pod_marks(name, group["groupName"], uid=uid)
            pod = f"{name}-{group['groupName']}-worker-{number}"
            yield _pod(owner, pod, group["template"], marks)


def _ray(kind: str, *fields: str) -> Callable[[Json], Iterator[Json]]:
    """Return a maker of an object of Ray that some fields of its owner describe."""

    def make(owner: Json) -> Iterator[Json]:
        spec = owner["spec"]
        for field in fields:
            spec = spec[field]
        name = f"{_name(owner)}-{DRAWN}"
        yield _made(owner, owner["apiVersion"], kind, name, spec=spec)

    return make


def _scheduled_spark_application(owner: Json) -> Iterator[Json]:
    name, spec = f"{_name(owner)}-{DRAWN}", owner["spec"]["template"]
    yield _made(owner, owner["apiVersion"], "SparkApplication", name, spec=spec)


def _spark_application(owner: Json) -> Iterator[Json]:
    """Make the driver, which makes the rest."""
    marks = _spark_pod_marks(owner, "driver", _name(owner))
    template = owner["spec"]["driver"]["template"]
    yield _pod(owner, f"{_name(owner)}-driver", template, marks)


def _spark_executors(driver: Json, beside: Iterable[Json]) -> Iterator[Json]:
    (applied,) = beside
    spec = applied["spec"].get("template", applied["spec"])["executor"]
    name = _name(driver).removesuffix("-driver")
    for number in range(1, spec["instances"] + 1):
        marks = _spark_pod_marks(driver, "executor", name)
        yield _pod(driver, f"{name}-exec-{number}", spec["template"], marks)


def _spark_pod_marks(owner: Json, role: str, application: str) -> Json:
    labels = {_SPARK_ROLE: role, "sparkoperator.k8s.io/app-name": application}
    made = _made(owner, "v1", "Pod", "")
    return {
        "labels": labels,
        "ownerReferences": made["metadata"]["ownerReferences"],
    }


def _name(owner: Json) -> str:
    return str(owner["metadata"]["name"])


_MAKERS: dict[tuple[str, str], Callable[[Json], Iterator[Json]]] = {
    ("batch", "CronJob"): _cron_job,
    ("batch.volcano.sh", "Job"): _volcano_job,
    ("disaggregatedset.x-k8s.io", "DisaggregatedSet"): _disaggregated_set,
    ("jobset.x-k8s.io", "JobSet"): _job_set,
    ("kubeflow.org", ""): _kubeflow_job,
    ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"): _leader_worker_set,
    ("ray.io", "RayCluster"): _ray_cluster,
    ("ray.io", "RayJob"): _ray("RayCluster", "rayClusterSpec"),
    ("ray.io", "RayService"): _ray("RayCluster", "rayClusterConfig"),
    ("ray.io", "RayCronJob"): _ray("RayJob", "jobTemplate"),
    ("sparkoperator.k8s.io", "ScheduledSparkApplication"): _scheduled_spark_application,
    ("sparkoperator.k8s.io", "SparkApplication"): _spark_application,
    ("workload.codeflare.dev", "AppWrapper"): _app_wrapper,
}
"""By group and kind; an empty kind: all of the group."""
