"""Finding the pods that an object will make, by shape: a template and its replicas.

By shape, so that kinds nobody has heard of yet (operators have their own) count like
a Job. Knows nothing of what the pods ask for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

from contracts.errors import DecodeError
from contracts.meta import ObjectMeta
from contracts.shapes import read
from contracts.workload import PodTemplate, ReplicatedPodTemplate, Workload

T = TypeVar("T")
_NOT_REPLICATED = ("DaemonSet", "PodTemplate")
"""Kinds whose number of pods the object does not say."""
_NAMELESS = ("spec", "template", "jobTemplate")


def read_workload(raw: Mapping[str, Any], what: str) -> Workload | None:
    """Read whatever makes pods; None when the object has no pod template.

    Raises:
        DecodeError: a template or a number of replicas is not of its type.
    """
    kind = raw.get("kind", "")
    if kind in _NOT_REPLICATED:
        return None
    templates = tuple(_templates(raw, "", "", 1, what))
    if not templates:
        return None
    metadata = raw.get("metadata") or {}
    if not isinstance(metadata, Mapping):
        raise DecodeError(what, "metadata", "Expected `object`")
    return Workload(
        api_version=raw.get("apiVersion", ""),
        kind=kind,
        metadata=_read(metadata, ObjectMeta, "metadata", what),
        templates=templates,
    )


def _templates(
    value: Any, path: str, role: str, count: int, what: str
) -> Iterator[ReplicatedPodTemplate]:
    """Walk depth first, in written order; `count` is of the enclosing replicas."""
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from _templates(item, f"{path}[{index}]", role, count, what)
        return
    if not isinstance(value, Mapping):
        return
    role = _role(value, role) if path else role
    if "template" in value:
        count *= _replicas(value, path, what)
    template = value.get("template")
    if isinstance(template, Mapping) and _is_pod_template(template):
        place = f"{path}.template" if path else "template"
        yield ReplicatedPodTemplate(
            name=role.lower(),
            count=count,
            template=_read(template, PodTemplate, place, what),
        )
        return
    for key, item in value.items():
        if key in ("metadata", "status"):
            continue
        inner = role if key in _NAMELESS or isinstance(item, list) else str(key)
        place = f"{path}.{key}" if path else str(key)
        yield from _templates(item, place, inner, count, what)


def _role(value: Mapping[str, Any], otherwise: str) -> str:
    for key in ("name", "groupName"):
        name = value.get(key)
        if isinstance(name, str) and name:
            return name
    return otherwise


def _is_pod_template(template: Mapping[str, Any]) -> bool:
    spec = template.get("spec")
    return isinstance(spec, Mapping) and isinstance(spec.get("containers"), list)


def _replicas(value: Mapping[str, Any], path: str, what: str) -> int:
    """How many pods run at one time: a Job has parallelism, others have replicas."""
    replicas = _number(value, "replicas", path, what)
    if replicas is not None:
        return replicas
    parallelism = _number(value, "parallelism", path, what)
    completions = _number(value, "completions", path, what)
    at_once = 1 if parallelism is None else parallelism
    return at_once if completions is None else min(at_once, completions)


def _number(value: Mapping[str, Any], key: str, path: str, what: str) -> int | None:
    number = value.get(key)
    if number is None:
        return None
    if not isinstance(number, int) or isinstance(number, bool) or number < 0:
        place = f"{path}.{key}" if path else key
        raise DecodeError(what, place, f"Expected a count, got {number!r}")
    return number


def _read(raw: Mapping[str, Any], kind: type[T], place: str, what: str) -> T:
    try:
        return read(raw, kind, what, [])
    except DecodeError as error:
        field = place + error.field.removeprefix("$")
        raise DecodeError(what, field, error.reason) from error
