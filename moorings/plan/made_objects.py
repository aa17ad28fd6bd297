"""Objects that other objects make, and which make the pods: of each kind the next one.

A CronJob makes Jobs, a RayJob or RayService a RayCluster, a TrainJob the JobSet of its
runtime. What of it changes the pods and is not read is an error. Pure.

Source: KubeRay v1.4; Kubeflow Trainer v2.0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from msgspec import structs

from contracts.errors import DecodeError, UnknownKindError
from contracts.ids import object_key
from contracts.kubernetes.decode import decode_object
from moorings.plan.objects import PlanObject

DRAWN = "xxxxx"
"""In place of the characters that the API server draws."""
TRAINER = "trainer.kubeflow.org"
_RUNTIMES = ("ClusterTrainingRuntime", "TrainingRuntime")
_STEP = f"{TRAINER}/trainjob-ancestor-step"
"""Label of a replicated Job of a runtime: `trainer` has the nodes of a TrainJob."""
_NODE = "node"
"""The replicated Job and the container that train, unless labels say another."""
_NOT_READ = ("podTemplateOverrides", "runtimePatches")
"""Fields of a TrainJob that change its pods."""
Json = dict[str, Any]
Runtimes = Mapping[tuple[str, str], Mapping[str, Any]]
"""By kind, and `namespace/name` or name."""


def list_runtimes(entries: Iterable[PlanObject]) -> Runtimes:
    """Return the training runtimes of an input."""
    found: dict[tuple[str, str], Mapping[str, Any]] = {}
    for entry in entries:
        kind, meta = entry.decoded.kind, entry.decoded.value.metadata
        if kind in _RUNTIMES and entry.raw:
            is_clusters = kind == _RUNTIMES[0]
            key = meta.name if is_clusters else object_key(meta.namespace, meta.name)
            found[kind, key] = entry.raw
    return found


def with_made_object(entry: PlanObject, runtimes: Runtimes | None = None) -> PlanObject:
    """Return the next object that one makes; any that makes pods itself as it is.

    Without `runtimes`, a TrainJob stays as it is.

    Raises:
        DecodeError: it does not say what that is like.
    """
    raw = entry.raw
    group = str(raw.get("apiVersion", "")).partition("/")[0]
    if (group, raw.get("kind")) == (TRAINER, "TrainJob") and runtimes is not None:
        return _decode_made(entry, _make_job_set(raw, runtimes), "spec.runtimeRef")
    make = _MAKERS.get((group, str(raw.get("kind"))))
    made = None if make is None else make(raw)
    if made is None:
        return entry
    body, path = made
    meta = entry.decoded.value.metadata
    owner = {"kind": raw["kind"], "name": meta.name, "controller": True}
    metadata = {
        "name": f"{meta.name}-{DRAWN}",
        "namespace": meta.namespace,
        "ownerReferences": [owner],
    }
    return _decode_made(entry, {**body, "metadata": metadata}, path)


def _decode_made(entry: PlanObject, made: Json, path: str) -> PlanObject:
    try:
        decoded = decode_object(made)
    except UnknownKindError as error:
        reason = f"Expected a {made['kind']} with a pod template"
        raise DecodeError(_name(entry.raw), path, reason) from error
    return structs.replace(entry, raw=made, decoded=decoded)


def _dig(raw: Mapping[str, Any], *fields: str) -> Mapping[str, Any]:
    """Return a nested object; one that is not there is empty.

    Raises:
        DecodeError: something on the way is no object.
    """
    value: Any = raw
    for number, field in enumerate(fields):
        value = value.get(field) or {}
        if not isinstance(value, Mapping):
            path = ".".join(fields[: number + 1])
            raise DecodeError(_name(raw), path, "Expected `object`")
    found: Mapping[str, Any] = value
    return found


def _name(raw: Mapping[str, Any]) -> str:
    meta = raw.get("metadata")
    name = meta.get("name", "") if isinstance(meta, Mapping) else ""
    return f"{raw.get('kind')} {name}"


def _make_job(raw: Mapping[str, Any]) -> tuple[Json, str] | None:
    template = _dig(raw, "spec", "jobTemplate")
    return {**template, "apiVersion": "batch/v1", "kind": "Job"}, "spec.jobTemplate"


def _make_ray_cluster(*fields: str) -> _Maker:
    """Return a maker of the RayCluster that some fields describe."""

    def make(raw: Mapping[str, Any]) -> tuple[Json, str] | None:
        spec = _dig(raw, *fields)
        if not spec:
            return None  # it uses one that is there
        cluster = {"apiVersion": raw["apiVersion"], "kind": "RayCluster", "spec": spec}
        return cluster, ".".join(fields)

    return make


def _make_job_set(raw: Mapping[str, Any], runtimes: Runtimes) -> Json:
    """Make the JobSet of a TrainJob, of the same name, from its runtime.

    Raises:
        DecodeError: the runtime is not in the input, or something is not read.
    """
    spec = _dig(raw, "spec")
    for field in _NOT_READ:
        if spec.get(field):
            reason = "is not read, and may change what the pods ask for"
            raise DecodeError(_name(raw), f"spec.{field}", reason)
    reference = _dig(raw, "spec", "runtimeRef")
    kind, name = reference.get("kind") or _RUNTIMES[0], str(reference.get("name"))
    meta = _dig(raw, "metadata")
    key = name if kind == _RUNTIMES[0] else object_key(meta.get("namespace", ""), name)
    runtime = runtimes.get((kind, key))
    if runtime is None:
        raise DecodeError(_name(raw), "spec.runtimeRef", f"{kind} {key} is not there")
    trainer = _dig(raw, "spec", "trainer")
    nodes = trainer.get("numNodes") or _dig(runtime, "spec", "mlPolicy").get("numNodes")
    template = _dig(runtime, "spec", "template", "spec")
    jobs = [
        _with_nodes(job, nodes or 1, trainer.get("resourcesPerNode"))
        for job in template.get("replicatedJobs") or ()
    ]
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {
            "name": meta.get("name", ""),
            "namespace": meta.get("namespace", ""),
            "ownerReferences": [
                {"kind": "TrainJob", "name": meta.get("name", ""), "controller": True}
            ],
        },
        "spec": {**template, "replicatedJobs": jobs},
    }


def _with_nodes(job: Mapping[str, Any], nodes: int, resources: Any) -> Json:
    """Give the replicated Job that trains so many pods, with these resources each."""
    labels = _dig(job, "template", "metadata", "labels")
    if labels.get(_STEP, "trainer" if job.get("name") == _NODE else "") != "trainer":
        return dict(job)
    spec = dict(_dig(job, "template", "spec"))
    spec |= {"parallelism": nodes, "completions": nodes}
    if resources:
        pod = dict(_dig(job, "template", "spec", "template", "spec"))
        pod["containers"] = [
            {**each, "resources": resources} if each.get("name") == _NODE else each
            for each in pod.get("containers") or ()
        ]
        spec["template"] = {**spec.get("template", {}), "spec": pod}
    return {**job, "template": {**job.get("template", {}), "spec": spec}}


_Maker = Callable[[Mapping[str, Any]], tuple[Json, str] | None]
_MAKERS: dict[tuple[str, str], _Maker] = {
    ("batch", "CronJob"): _make_job,
    ("ray.io", "RayJob"): _make_ray_cluster("spec", "rayClusterSpec"),
    ("ray.io", "RayService"): _make_ray_cluster("spec", "rayClusterConfig"),
    ("ray.io", "RayCronJob"): _make_ray_cluster(
        "spec", "jobTemplate", "rayClusterSpec"
    ),
}
