"""Objects that other objects make, and which make the pods: of each kind the next one.

A CronJob makes Jobs, a RayJob or RayService a RayCluster, a TrainJob the JobSet of its
runtime, a DisaggregatedSet a LeaderWorkerSet for each of its roles. What of it changes
the pods and is not read is an error. Pure.

Source: KubeRay v1.4; Kubeflow Trainer v2.0; LeaderWorkerSet v0.10; Spark Operator v2.5.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from msgspec import Struct, structs

from contracts.errors import DecodeError, UnknownKindError
from contracts.ids import object_key
from contracts.kubernetes.decode import decode_object
from contracts.meta import ObjectMeta
from moorings.plan.objects import PlanObject
from moorings.plan.pods import DEFAULT_NAMESPACE

DRAWN = "xxxxx"
"""In place of the characters that the API server draws."""
TRAINER = "trainer.kubeflow.org"
LEADER_WORKER = "leaderworkerset.x-k8s.io"
_DISAGGREGATED = "disaggregatedset.x-k8s.io"
_RUNTIMES = ("ClusterTrainingRuntime", "TrainingRuntime")
_STEP = f"{TRAINER}/trainjob-ancestor-step"
"""Label of a replicated Job of a runtime: `trainer` has the nodes of a TrainJob."""
_NODE = "node"
"""The replicated Job and the container that train, unless labels say another."""
_AGAIN = ("CronJob", "RayCronJob", "ScheduledSparkApplication")
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


def list_made_objects(
    entry: PlanObject, runtimes: Runtimes | None = None
) -> tuple[PlanObject, ...]:
    """Return the next objects that one makes; any that makes pods itself as it is.

    Without `runtimes`, a TrainJob stays as it is.

    Raises:
        DecodeError: it does not say what that is like.
    """
    raw = entry.raw
    group = str(raw.get("apiVersion", "")).partition("/")[0]
    if (group, raw.get("kind")) == (TRAINER, "TrainJob") and runtimes is not None:
        job_set = _make_job_set(raw, runtimes)
        return (_decode_made(entry, job_set, "spec.runtimeRef"),)
    make = _MAKERS.get((group, str(raw.get("kind"))))
    made = [] if make is None else list(make(raw))
    if not made:
        return (entry,)
    meta = entry.decoded.value.metadata
    return tuple(
        _decode_made(
            entry, {**each.body, "metadata": each.metadata_of(raw, meta)}, each.path
        )
        for each in made
    )


def make_all(entries: Iterable[PlanObject]) -> Iterator[PlanObject]:
    """Replace what makes objects by what it makes, unless that is there already.

    What makes objects time after time makes the next ones beside them.

    Raises:
        DecodeError: something does not say what that is like.
    """
    given = list(entries)
    runtimes = list_runtimes(given)
    metas = [entry.decoded.value.metadata for entry in given]
    busy = {
        (
            meta.controller.kind,
            meta.namespace or DEFAULT_NAMESPACE,
            meta.controller.name,
        )
        for meta in metas
        if meta.controller.kind not in _AGAIN
    }
    for entry, meta in zip(given, metas, strict=True):
        made = list_made_objects(entry, runtimes)
        key = (entry.decoded.kind, meta.namespace or DEFAULT_NAMESPACE, meta.name)
        if made == (entry,) or key not in busy:
            yield from made


def makes_objects(raw: Mapping[str, Any]) -> bool:
    """True if an object makes no pods itself, and its shape does not tell what does."""
    group, _, version = str(raw.get("apiVersion", "")).partition("/")
    return group == _DISAGGREGATED or (group, version) == (TRAINER, "v1alpha1")


class _Made(Struct, frozen=True, kw_only=True):
    """An object that is made."""

    body: Json
    """Without its metadata."""
    path: str
    """The field of the maker that describes it."""
    suffix: str = DRAWN
    """The end of its name, after the name of its maker."""
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}

    def metadata_of(self, raw: Mapping[str, Any], meta: ObjectMeta) -> Json:
        """Return its metadata: made by an object, which is `raw`."""
        owner = {"kind": raw["kind"], "name": meta.name, "controller": True}
        return {
            "name": f"{meta.name}-{self.suffix}",
            "namespace": meta.namespace,
            "labels": self.labels,
            "annotations": self.annotations,
            "ownerReferences": [owner],
        }


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


def _make_job(raw: Mapping[str, Any]) -> Iterator[_Made]:
    template = _dig(raw, "spec", "jobTemplate")
    body = {**template, "apiVersion": "batch/v1", "kind": "Job"}
    yield _Made(body=body, path="spec.jobTemplate")


def _maker_of(kind: str, *fields: str, suffix: str = DRAWN) -> _Maker:
    """Return a maker of an object of the same group that some fields describe.

    Where they are empty, such as of a RayJob, it uses one that is there. `suffix`: of
    its name.
    """

    def make(raw: Mapping[str, Any]) -> Iterator[_Made]:
        spec = _dig(raw, *fields)
        body = {"apiVersion": raw["apiVersion"], "kind": kind, "spec": spec}
        if spec:
            yield _Made(body=body, path=".".join(fields), suffix=suffix)

    return make


def _make_leader_worker_sets(raw: Mapping[str, Any]) -> Iterator[_Made]:
    """Make a LeaderWorkerSet for each role of each slice of a DisaggregatedSet.

    Raises:
        DecodeError: something is not read that decides how many or where pods are.
    """
    spec = _dig(raw, "spec")
    policy = _dig(raw, "spec", "placementPolicy")
    if policy.get("type", "None") != "None":
        reason = "is not read, and says where pods may be"
        raise DecodeError(_name(raw), "spec.placementPolicy", reason)
    name = _dig(raw, "metadata").get("name", "")
    for number, role in enumerate(spec.get("roles") or ()):
        path = f"spec.roles[{number}]"
        if _dig(role, "scaling").get("mode") == "External":
            reason = "External: how many replicas there are, another object says"
            raise DecodeError(_name(raw), f"{path}.scaling.mode", reason)
        for part in range(spec.get("slices") or 1):
            labels = {
                f"{_DISAGGREGATED}/name": name,
                f"{_DISAGGREGATED}/role": str(role.get("name")),
                f"{_DISAGGREGATED}/slice": str(part),
            }
            yield _Made(
                body={
                    "apiVersion": f"{LEADER_WORKER}/v1",
                    "kind": "LeaderWorkerSet",
                    "spec": _with_labels(_dig(role, "spec"), labels),
                },
                path=path,
                suffix=f"{part}-{DRAWN}-{role.get('name')}",
                labels=labels,
                annotations=dict(_dig(role, "metadata", "annotations")),
            )


def _with_labels(spec: Mapping[str, Any], labels: dict[str, str]) -> Json:
    """Give the templates of a LeaderWorkerSet's pods labels."""
    templates = dict(_dig(spec, "leaderWorkerTemplate"))
    for field in ("leaderTemplate", "workerTemplate"):
        if template := _dig(templates, field):
            metadata = _dig(template, "metadata")
            own = {**_dig(metadata, "labels"), **labels}
            templates[field] = {**template, "metadata": {**metadata, "labels": own}}
    return {**spec, "leaderWorkerTemplate": templates}


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


_Maker = Callable[[Mapping[str, Any]], Iterable[_Made]]
_MAKERS: dict[tuple[str, str], _Maker] = {
    ("batch", "CronJob"): _make_job,
    ("ray.io", "RayJob"): _maker_of("RayCluster", "spec", "rayClusterSpec"),
    ("ray.io", "RayService"): _maker_of("RayCluster", "spec", "rayClusterConfig"),
    # It makes a RayJob, which makes the cluster: each draws a part of the name.
    ("ray.io", "RayCronJob"): _maker_of(
        *("RayCluster", "spec", "jobTemplate", "rayClusterSpec"),
        suffix=f"{DRAWN}-{DRAWN}",
    ),
    ("sparkoperator.k8s.io", "ScheduledSparkApplication"): _maker_of(
        "SparkApplication", "spec", "template"
    ),
    (_DISAGGREGATED, "DisaggregatedSet"): _make_leader_worker_sets,
}
