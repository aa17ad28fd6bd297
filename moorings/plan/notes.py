"""Notes of a plan: where the input was not taken as it is written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from contracts.counts import counted
from contracts.kubernetes.decode import KubernetesObject
from contracts.names import GATE
from contracts.pods.membership import Membership, explain_alone, is_told_alone
from contracts.workload import Pod, Workload
from moorings.plan.pods import list_specs

_NAMED = 3
"""So many pods are named in a note."""


def note_gates(names: list[str]) -> Iterator[str]:
    """Note that pods are planned as if they had our gate."""
    if names:
        yield (
            f"{_enumerate_pods(names)}: planned as if the gate {GATE} were there; in a "
            "cluster kube-scheduler binds pods without it one by one"
        )


def note_missed(names: list[str], *, counts: bool) -> Iterator[str]:
    """Note that pods lack the gate of their gang, which `counts` them or does not."""
    if names:
        then = "counts them once they exist" if counts else "does not count them"
        yield (
            f"{_enumerate_pods(names)}: no gate {GATE}, which others of the gang "
            f"have; kube-scheduler binds such pods, and the gang {then}"
        )


def note_plain(count: int) -> Iterator[str]:
    """Note that pods request no devices."""
    if count:
        ask = counted(count, "pod requests", "pods request")
        are = "it is" if count == 1 else "they are"
        yield f"{ask} no DRA device; {are} left to kube-scheduler"


def note_schedulers(pods: Iterable[Pod]) -> Iterator[str]:
    """Note that kube-scheduler does not bind pods of another scheduler."""
    names: dict[str, list[str]] = {}
    for pod in pods:
        scheduler = pod.spec.scheduler_name
        if scheduler not in ("", "default-scheduler"):
            names.setdefault(scheduler, []).append(pod.metadata.name)
    for scheduler, own in names.items():
        yield (
            f"{_enumerate_pods(own)}: kube-scheduler does not bind pods with "
            f"schedulerName {scheduler}, unless that is a profile of its own"
        )


def note_suspended(
    entries: Iterable[tuple[KubernetesObject, Mapping[str, Any]]],
) -> Iterator[str]:
    """Note workloads whose controllers make no pods yet, or not here."""
    for value, raw in entries:
        spec = raw.get("spec")
        if not isinstance(value, Workload) or not isinstance(spec, Mapping):
            continue
        name = f"{value.kind} {value.metadata.name}"
        policy = spec.get("runPolicy")
        said = (spec, policy) if isinstance(policy, Mapping) else (spec,)
        if any(each.get("suspend") is True for each in said):
            yield f"{name} is suspended: planned as if it were resumed"
        manager = next(filter(None, (each.get("managedBy") for each in said)), "")
        if "multikueue" in str(manager):
            yield (
                f"{name} is managed by {manager}, which makes its pods on another "
                "cluster: planned as if they were made here"
            )


def note_apart(pods: Iterable[tuple[Pod, Membership]]) -> Iterator[str]:
    """Note pods of one maker that are decided one by one where that may surprise."""
    siblings: dict[tuple[str, str, str], list[Pod]] = {}
    for pod, membership in pods:
        owner = pod.metadata.controller
        if is_told_alone(pod, membership):
            key = (owner.api_version, owner.kind, owner.name)
            siblings.setdefault(key, []).append(pod)
    for (api_version, kind, name), own in siblings.items():
        if len(own) > 1:
            named = _enumerate_pods([pod.metadata.name for pod in own])
            yield (
                f"{named} of {kind} {name} ({api_version}) are decided one by one: "
                f"{explain_alone(own[0])}"
            )


def note_volumes(
    values: Iterable[KubernetesObject], *, is_known: bool
) -> Iterator[str]:
    """Note that volumes of pods are not checked, unless `is_known`."""
    has_volumes = any(
        volume.persistent_volume_claim is not None
        for value in values
        for spec in list_specs(value)
        for volume in spec.volumes
    )
    if has_volumes and not is_known:
        yield (
            "the input has no PersistentVolumeClaim, PersistentVolume or "
            "StorageClass, so the nodes of volumes are not checked"
        )


def _enumerate_pods(names: list[str]) -> str:
    """Name the first of some pods."""
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    noun = "pod" if len(names) == 1 else "pods"
    return f"{noun} {', '.join(names[:_NAMED])}{more}"
