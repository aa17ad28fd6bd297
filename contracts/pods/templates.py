"""Finds the pods that an object will make, by shape: a template and its replicas.

By shape, so that kinds nobody has heard of yet (operators have their own) count like
a Job. Knows nothing of what the pods ask for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple, TypeVar

from msgspec.structs import replace

from contracts.errors import DecodeError
from contracts.meta import ObjectMeta
from contracts.shapes import read
from contracts.workload import PodTemplate, ReplicatedPodTemplate, Workload

T = TypeVar("T")
MAX_REPLICAS = 100_000
"""Pods of one template: more than any cluster holds is a mistake, or meant to harm."""
_NOT_REPLICATED = ("ControllerRevision", "DaemonSet", "PodTemplate")
"""Kinds whose number of pods the object does not say."""
_Reading = tuple[str, list[str]]
"""The object's name in errors, and the list of its unknown fields."""
_LEADER_WORKER = ("leaderTemplate", "workerTemplate")
LEADER = "leader"
"""The role of the first pod of a LeaderWorkerSet's group."""
_NAMELESS = ("spec", "template", "jobTemplate")
_OF_SERVER = ("metadata", "status")


class _Count(NamedTuple):
    """How many pods of a template there are."""

    pods: int
    is_written: bool

    def times(self, replicas: int | None) -> _Count:
        """Count them under another number; None: it is not written, so it is one."""
        if replicas is None:
            return _Count(self.pods, is_written=False)
        return _Count(self.pods * replicas, self.is_written)


def read_workload(
    raw: Mapping[str, Any], what: str, unknown: list[str]
) -> Workload | None:
    """Read whatever makes pods; None when the object has no pod template.

    Appends the paths of fields in templates that we do not know to `unknown`.

    Raises:
        DecodeError: a template or a number of replicas is not of its type.
    """
    kind = raw.get("kind", "")
    if kind in _NOT_REPLICATED:
        return None
    once = _Count(1, is_written=True)
    found = _find_templates(raw, "", "", once, (what, unknown))
    if kind == "LeaderWorkerSet":
        found = _find_leaders_and_workers(raw, (what, unknown))
    if kind == "SparkApplication":
        found = _count_executors(raw, found, what)
    templates = tuple(_tell_apart(found))
    if not templates:
        return None
    metadata = raw.get("metadata") or {}
    if not isinstance(metadata, Mapping):
        raise DecodeError(what, "metadata", "Expected `object`")
    return Workload(
        api_version=raw.get("apiVersion", ""),
        kind=kind,
        metadata=_read_struct(metadata, ObjectMeta, "metadata", (what, unknown)),
        templates=templates,
    )


def _find_leaders_and_workers(
    raw: Mapping[str, Any], reading: _Reading
) -> Iterator[ReplicatedPodTemplate]:
    """Read a LeaderWorkerSet: groups of a leader and `size` - 1 workers."""
    spec = raw.get("spec")
    path = "spec.leaderWorkerTemplate"
    own = spec.get("leaderWorkerTemplate") if isinstance(spec, Mapping) else None
    if not isinstance(spec, Mapping) or not isinstance(own, Mapping):
        return
    groups = _read_count(spec, "replicas", "spec", reading[0])
    size = _read_count(own, "size", path, reading[0])
    groups, size = 1 if groups is None else groups, 1 if size is None else size
    workers = own.get("workerTemplate") or {}
    leaders = own.get("leaderTemplate") or workers
    for role, field, template, each in (
        (LEADER, "leaderTemplate", leaders, 1),
        ("worker", "workerTemplate", workers, size - 1),
    ):
        count = _Count(groups * each, is_written=True)
        if count.pods > 0 and has_pod_template({"template": template}):
            found = _read_template(template, path, role, count, reading)
            place = field if own.get(field) else "workerTemplate"
            yield replace(found, path=f"{path}.{place}")


def _count_executors(
    raw: Mapping[str, Any], found: Iterable[ReplicatedPodTemplate], what: str
) -> Iterator[ReplicatedPodTemplate]:
    """Count the pods of a Spark application: a driver, and executors to begin with.

    Source: Spark 4.0, `spark.executor.instances` and `spark.dynamicAllocation`.
    """
    spec = raw.get("spec")
    spec = spec if isinstance(spec, Mapping) else {}
    executor, dynamic = (
        value if isinstance(value := spec.get(key), Mapping) else {}
        for key in ("executor", "dynamicAllocation")
    )
    counts = [_read_count(executor, "instances", "spec.executor", what)]
    if dynamic.get("enabled") is True:
        path = "spec.dynamicAllocation"
        fields = ("initialExecutors", "minExecutors")
        counts += [_read_count(dynamic, field, path, what) for field in fields]
    executors = max((count for count in counts if count is not None), default=1)
    for each in found:
        count = executors if each.name == "executor" else 1
        yield replace(each, count=count, is_counted=True)


def _find_templates(
    value: Any, path: str, role: str, count: _Count, reading: _Reading
) -> Iterator[ReplicatedPodTemplate]:
    """Walk depth first, in written order; `count` is of the enclosing replicas."""
    if isinstance(value, list):
        for index, element in enumerate(value):
            place = f"{path}[{index}]"
            yield from _find_templates(element, place, role, count, reading)
        return
    if not isinstance(value, Mapping):
        return
    role = _read_role(value, role) if path else role
    own = count
    if "template" in value:
        own = count.times(_read_replicas(value, path, reading[0]))
    is_counted_alone = has_pod_template(value)
    if is_counted_alone:
        yield _read_template(value["template"], path, role, own, reading)
    for key, child in value.items():
        if key in _OF_SERVER or (key == "template" and is_counted_alone):
            continue
        is_nameless = key in _NAMELESS or isinstance(child, list)
        child_path = f"{path}.{key}" if path else str(key)
        child_role = role if is_nameless else str(key).lower()
        inner = count if is_counted_alone else own
        yield from _find_templates(child, child_path, child_role, inner, reading)


def _read_template(
    template: Mapping[str, Any], path: str, role: str, count: _Count, reading: _Reading
) -> ReplicatedPodTemplate:
    if count.pods > MAX_REPLICAS:
        reason = f"Expected at most {MAX_REPLICAS} pods, got {count.pods}"
        raise DecodeError(reading[0], path or "spec", reason)
    template_path = f"{path}.template" if path else "template"
    return ReplicatedPodTemplate(
        name=role,
        count=count.pods,
        is_counted=count.is_written,
        template=_read_struct(template, PodTemplate, template_path, reading),
        path=template_path,
    )


def _read_role(value: Mapping[str, Any], otherwise: str) -> str:
    for key in ("name", "groupName"):
        name = value.get(key)
        if isinstance(name, str) and name:
            return name
    return otherwise


def has_pod_template(value: Mapping[str, Any]) -> bool:
    """True if the `template` of a mapping is a pod template."""
    template = value.get("template")
    spec = template.get("spec") if isinstance(template, Mapping) else None
    return isinstance(spec, Mapping) and isinstance(spec.get("containers"), list)


def without_templates(value: Any) -> Any:
    """Return what is left of an object without the pod templates that are read."""
    if isinstance(value, list):
        return [without_templates(element) for element in value]
    if not isinstance(value, Mapping):
        return value
    is_read = {
        key
        for key in ("template", *_LEADER_WORKER)
        if has_pod_template({"template": value.get(key)})
    }
    return {
        key: without_templates(child)
        for key, child in value.items()
        if key not in _OF_SERVER and key not in is_read
    }


def _tell_apart(
    templates: Iterable[ReplicatedPodTemplate],
) -> Iterator[ReplicatedPodTemplate]:
    """Number the roles that have no name of their own: pods are named after them."""
    names = set[str]()
    for number, template in enumerate(templates):
        name = template.name
        while name in names:
            name = f"{name}-{number}".lstrip("-")
        names.add(name)
        yield replace(template, name=name)


def _read_replicas(value: Mapping[str, Any], path: str, what: str) -> int | None:
    """Return how many pods run at one time: parallelism of a Job, else replicas.

    None: neither is written.
    """
    replicas = _read_count(value, "replicas", path, what)
    if replicas is not None:
        return replicas
    parallelism = _read_count(value, "parallelism", path, what)
    completions = _read_count(value, "completions", path, what)
    if parallelism is None and completions is None:
        return None
    at_once = 1 if parallelism is None else parallelism
    return at_once if completions is None else min(at_once, completions)


def _read_count(value: Mapping[str, Any], key: str, path: str, what: str) -> int | None:
    count = value.get(key)
    if count is None:
        return None
    field = f"{path}.{key}" if path else key
    if not isinstance(count, int) or isinstance(count, bool) or count < 0:
        raise DecodeError(what, field, f"Expected a count, got {count!r}")
    if count > MAX_REPLICAS:
        reason = f"Expected at most {MAX_REPLICAS} pods, got {count}"
        raise DecodeError(what, field, reason)
    return count


def _read_struct(
    raw: Mapping[str, Any], kind: type[T], path: str, reading: _Reading
) -> T:
    what, unknown = reading
    found: list[str] = []
    try:
        value = read(raw, kind, what, found)
    except DecodeError as error:
        field = path + error.field.removeprefix("$")
        raise DecodeError(what, field, error.reason) from error
    unknown.extend(f"{path}.{field}" for field in found)
    return value
