"""The pods that workloads will make, as far as their controllers have not made them.

A pod for each replica, owned by its workload. A workload whose pods are in the input,
or whose owner is, makes none: they would be counted twice. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from uuid import NAMESPACE_DNS, uuid5

from msgspec import structs

from contracts.ids import object_key
from contracts.meta import ObjectMeta, OwnerReference
from contracts.pods.gang_owners import GangOwner
from contracts.pods.kinds import KINDS
from contracts.pods.membership import EXCLUSIVE
from contracts.pods.templates import LEADER
from contracts.workload import (
    Pod,
    PodSpec,
    PodStatus,
    ReplicatedPodTemplate,
    Workload,
)
from moorings.plan.marks import HEAD, make_marks

UUIDS = uuid5(NAMESPACE_DNS, "plan.moorings.dev")
_HASH = "pod-template-hash"
"""Label of the pods of a Deployment; their ReplicaSet's name ends with its value."""
_OWNER_LABELS = tuple(each.label for each in KINDS if each.label)
"""Labels that name the workload whose Jobs or StatefulSets own a pod."""
_Key = tuple[str, str]
"""Kind (empty: any), and `namespace/name`."""


def find_makers(workloads: Iterable[Workload], pods: Iterable[Pod]) -> list[Workload]:
    """Return the workloads that have yet to make their pods.

    An owner that is owned by what it owns makes nothing, so it does not count as one.
    """
    by_key: dict[_Key, list[Workload]] = {}
    for workload in workloads:
        by_key.setdefault(_key_of(workload), []).append(workload)
    busy: set[_Key] = set()
    for pod in pods:
        for key in _list_owners(pod.metadata):
            busy |= set(_list_owner_chain(key, by_key))
    return [
        workload
        for key, alike in by_key.items()
        for workload in alike
        if key not in busy
        and ("", key[1]) not in busy
        and not any(
            owner in by_key and key not in _list_owner_chain(owner, by_key)
            for owner in _list_owners(workload.metadata)
        )
    ]


def make_replicas(
    workload: Workload, raw: Mapping[str, Any], owner: GangOwner | None
) -> Iterator[Pod]:
    """Make the pods of a workload, named after it, their role and number.

    `raw` is what it was read from; `owner` says how many pods of a role it has at one
    time, where its kind is known.
    """
    meta = workload.metadata
    maker = OwnerReference(
        api_version=workload.api_version,
        kind=workload.kind,
        name=meta.name,
        uid=uid_of_maker(workload.kind, meta),
        controller=True,
    )
    for replicated in workload.templates:
        role = f"-{replicated.name.lower()}" if replicated.name else ""
        count = count_pods(replicated, owner)
        for index in range(0 if _comes_later(raw, replicated.name) else count):
            template = replicated.template.metadata
            marks = make_marks(raw, maker, replicated.name, index)
            metadata = structs.replace(
                template,
                name=marks.name or f"{meta.name}{role}-{index}",
                namespace=meta.namespace,
                uid="",
                labels=template.labels | marks.labels,
                annotations=template.annotations | marks.annotations,
                owner_references=(marks.owner,),
            )
            yield _make_pod(metadata, replicated.template.spec)


def _comes_later(raw: Mapping[str, Any], role: str) -> bool:
    """True if pods of a role are made once others of their gang run.

    Those of a LeaderWorkerSet's workers are, where its author wants the leader to be
    ready or to choose the domain: the leader waits for them for ever.
    """
    if raw.get("kind") != "LeaderWorkerSet" or role == LEADER:
        return False
    annotations = (raw.get("metadata") or {}).get("annotations") or {}
    is_late = (raw.get("spec") or {}).get("startupPolicy") == "LeaderReady"
    return is_late or EXCLUSIVE in annotations


def uid_of_maker(kind: str, metadata: ObjectMeta) -> str:
    """Return the uid of a workload; made up, where it has none yet."""
    key = object_key(metadata.namespace, metadata.name)
    return metadata.uid or str(uuid5(UUIDS, f"{kind}/{key}"))


def count_pods(replicated: ReplicatedPodTemplate, owner: GangOwner | None) -> int:
    """Return how many pods of a role there are at one time."""
    roles = () if owner is None else owner.roles
    name = "head" if replicated.name == HEAD else replicated.name
    counts = [role.count for role in roles if role.name in (name, "")]
    return counts[0] if counts else replicated.count


def _make_pod(metadata: ObjectMeta, spec: PodSpec) -> Pod:
    return Pod(metadata=metadata, spec=spec, status=PodStatus(phase="Pending"))


def _key_of(workload: Workload) -> _Key:
    meta = workload.metadata
    return workload.kind, object_key(meta.namespace, meta.name)


def _list_owners(metadata: ObjectMeta) -> Iterator[_Key]:
    """List the controller of an object, and its controller as far as known."""
    for owner in metadata.owner_references:
        if owner.controller:
            yield owner.kind, object_key(metadata.namespace, owner.name)
            suffix = f"-{metadata.labels.get(_HASH, '')}"
            if owner.kind == "ReplicaSet" and owner.name.endswith(suffix):
                name = owner.name.removesuffix(suffix)
                yield "Deployment", object_key(metadata.namespace, name)
    for label in _OWNER_LABELS:
        if label in metadata.labels:
            yield "", object_key(metadata.namespace, metadata.labels[label])


def _list_owner_chain(
    key: _Key, workloads: dict[_Key, list[Workload]]
) -> Iterator[_Key]:
    """Go from an owner up to those that own it."""
    seen: set[_Key] = set()
    waiting = [key]
    while waiting:
        key = waiting.pop()
        if key in seen:
            continue
        seen.add(key)
        yield key
        for workload in workloads.get(key, ()):
            waiting += _list_owners(workload.metadata)
