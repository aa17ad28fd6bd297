"""From Kubernetes objects to what is believed and what is to be decided.

Pods are members. Pods of one gang label are decided together, pods that share an
unallocated claim are one member, any other pod is a gang of one; each replica of a
workload counts as a pod. A claim that no pod names is a gang of one. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar
from uuid import NAMESPACE_DNS, uuid5

from msgspec import Struct, structs

from contracts.allocation import Reason
from contracts.claim import (
    DeviceClass,
    ResourceClaim,
    ResourceClaimConsumerReference,
    ResourceClaimTemplate,
)
from contracts.device import DeviceTaintRule, ResourceSlice
from contracts.gang import Gang, GangSpec, Member, MemberClaim, MemberNode
from contracts.ids import ClusterName, GangUID, NodeName, object_key
from contracts.kubernetes.decode import Decoded
from contracts.messages import ObjectObserved, SubmitGang
from contracts.meta import ObjectMeta
from contracts.pods.members import MemberPod, joined, member_of, refusal_of, sharing
from contracts.workload import Node, Pod
from moorings.plan.pods import anywhere, pods_of
from solver.snapshot.snapshot import Snapshot, apply

T = TypeVar("T")
CLUSTER = ClusterName("plan")
_UUIDS = uuid5(NAMESPACE_DNS, "plan.moorings.dev")


class PlanObject(Struct, frozen=True, kw_only=True):
    """An object of the input, and where it came from."""

    source: str
    raw: dict[str, object]
    decoded: Decoded


class Work(Struct, frozen=True, kw_only=True):
    """What is believed, and the gangs to decide in the order of the input."""

    snapshot: Snapshot
    gangs: tuple[Gang, ...]
    consumers: dict[str, tuple[ResourceClaimConsumerReference, ...]]
    """Real pods with a uid that use a named claim, by `namespace/name`."""
    refused: dict[str, Reason]
    """Why gangs cannot be decided, by uid."""


def work_of(objects: Iterable[PlanObject], node: str | None = None) -> Work:
    """Sort objects into beliefs and work; with `node`, only that node may serve."""
    found = list(objects)
    snapshot = believed(found)
    waiting = [item for item in _of(found, ResourceClaim) if not _is_allocated(item)]
    claims = {
        object_key(item.metadata.namespace, item.metadata.name): item
        for item in waiting
    }
    gangs: list[tuple[Gang, Reason | None]]
    pods = list(pods_of((item.decoded.value for item in found), claims))
    if not any(True for _ in _of(found, Node)):
        pods = [anywhere(pod) for pod in pods]
    if node is not None:
        if all(item.name != node for item in _of(found, Node)):
            snapshot = apply(snapshot, _node_observed(node))
        gangs = [(_gang_of_claims("plan", waiting, node), None)]
    else:
        own = ((gang, None) for gang in _of(found, Gang))
        gangs = [*own, *_gangs_of(pods), *_lone(claims, pods)]
    consumers: dict[str, tuple[ResourceClaimConsumerReference, ...]] = {}
    for pod in pods:
        for name in pod.shared if pod.uid else ():
            key = object_key(pod.namespace, name)
            consumer = ResourceClaimConsumerReference(
                resource="pods", name=pod.name, uid=pod.uid
            )
            consumers[key] = (*consumers.get(key, ()), consumer)
    named = tuple(_with_uid(gang, index) for index, (gang, _) in enumerate(gangs))
    for age, gang in enumerate(named, start=1):
        uid = GangUID(gang.metadata.uid)
        message = SubmitGang(cluster=CLUSTER, uid=uid, gang=gang)
        snapshot = apply(snapshot, message, sequence=age)
    refused = {
        gang.metadata.uid: reason
        for gang, (_, reason) in zip(named, gangs, strict=True)
        if reason is not None
    }
    return Work(snapshot=snapshot, gangs=named, consumers=consumers, refused=refused)


def _of(objects: Iterable[PlanObject], kind: type[T]) -> Iterator[T]:
    for item in objects:
        if isinstance(item.decoded.value, kind):
            yield item.decoded.value


def _node_observed(name: str) -> ObjectObserved:
    """Make a node up of which only the name is known."""
    raw = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}
    return ObjectObserved(cluster=CLUSTER, kind="Node", key=name, object=raw)


def believed(objects: Iterable[PlanObject]) -> Snapshot:
    """Believe all state; two objects of one name are two objects."""
    snapshot, used = Snapshot(), dict[str, int]()
    for item in objects:
        value, kind = item.decoded.value, item.decoded.kind
        if not isinstance(
            value,
            ResourceSlice
            | Node
            | DeviceClass
            | DeviceTaintRule
            | ResourceClaimTemplate
            | ResourceClaim
            | Pod,
        ):
            continue
        key = value.metadata.name
        if isinstance(value, ResourceClaimTemplate | ResourceClaim | Pod):
            key = object_key(value.metadata.namespace, key)
        used[f"{kind}/{key}"] = count = used.get(f"{kind}/{key}", 0) + 1
        if count > 1 and isinstance(value, ResourceSlice | ResourceClaim | Pod):
            key = f"{key}#{count}"
        message = ObjectObserved(
            cluster=CLUSTER, kind=kind, key=key, object=dict(item.raw)
        )
        snapshot = apply(snapshot, message)
    return snapshot


def _is_allocated(claim: ResourceClaim) -> bool:
    return claim.status is not None and claim.status.allocation is not None


def _gangs_of(pods: list[MemberPod]) -> Iterator[tuple[Gang, Reason | None]]:
    """Group pods: by gang label and by the claims they share, else alone."""
    for group in joined(pods, _marks):
        first, merged = group[0], sharing(group)
        gang = Gang(
            metadata=ObjectMeta(
                name=first.gang or first.name, namespace=first.namespace
            ),
            spec=GangSpec(
                priority=max(pod.priority for pod in group),
                members=tuple(member_of(_label(p[0].name), p) for p in merged),
            ),
        )
        yield gang, next(filter(None, map(refusal_of, merged)), None)


def _marks(pod: MemberPod) -> Iterator[tuple[str, str, str]]:
    """Say by what a pod is of one gang with others."""
    if pod.gang:
        yield pod.namespace, "gang", pod.gang
    for name in pod.shared:
        yield pod.namespace, "claim", name


def _label(name: str) -> str:
    """Make a name one DNS label."""
    return name.replace(".", "-")[:63].strip("-") or "pod"


def _lone(
    claims: dict[str, ResourceClaim], pods: list[MemberPod]
) -> Iterator[tuple[Gang, None]]:
    """Make a gang of each claim that no pod names."""
    named = {object_key(pod.namespace, name) for pod in pods for name in pod.shared}
    for key, claim in claims.items():
        if key not in named:
            yield _gang_of_claims(claim.metadata.name, [claim]), None


def _gang_of_claims(name: str, claims: list[ResourceClaim], node: str = "") -> Gang:
    members = tuple(
        MemberClaim(
            name=_label(claim.metadata.name) if len(claims) == 1 else f"claim-{index}",
            claim_name=claim.metadata.name,
            spec=claim.spec,
        )
        for index, claim in enumerate(claims)
    )
    namespace = claims[0].metadata.namespace if claims else ""
    return Gang(
        metadata=ObjectMeta(name=name, namespace=namespace),
        spec=GangSpec(
            members=(
                Member(
                    name="claim",
                    claims=members,
                    node=MemberNode(node_name=NodeName(node)),
                ),
            )
        ),
    )


def _with_uid(gang: Gang, index: int) -> Gang:
    uid = gang.metadata.uid or str(
        uuid5(_UUIDS, f"{index}/{gang.metadata.namespace}/{gang.metadata.name}")
    )
    return structs.replace(gang, metadata=structs.replace(gang.metadata, uid=uid))
