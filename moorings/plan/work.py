"""From Kubernetes objects to the state they describe and the gangs to decide.

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
from contracts.pods.members import (
    MemberPod,
    group_by_shared_claims,
    group_connected,
    member_of,
    refusal_of,
)
from contracts.workload import Node, Pod
from moorings.plan.pods import allow_any_node, find_pods
from solver.snapshot.snapshot import Snapshot, apply

T = TypeVar("T")
CLUSTER = ClusterName("plan")
_UUIDS = uuid5(NAMESPACE_DNS, "plan.moorings.dev")


class PlanObject(Struct, frozen=True, kw_only=True):
    """An object of the input, and where it came from."""

    source: str
    raw: dict[str, object]
    decoded: Decoded


class PlanWork(Struct, frozen=True, kw_only=True):
    """The state of the input, and the gangs to decide in the order of the input."""

    snapshot: Snapshot
    gangs: tuple[Gang, ...]
    consumers: dict[str, tuple[ResourceClaimConsumerReference, ...]]
    """Real pods with a uid that use a named claim, by `namespace/name`."""
    refused: dict[str, Reason]
    """Why gangs cannot be decided, by uid."""


def prepare_work(objects: Iterable[PlanObject], node: str | None = None) -> PlanWork:
    """Sort objects into state and gangs; with `node`, only that node may serve."""
    # First the state: all that is there before anything is decided.
    entries = list(objects)
    node_names = {value.name for value in _select(entries, Node)}
    snapshot = apply_state(entries)
    if node is not None and node not in node_names:
        snapshot = apply(snapshot, _observe_node(node))

    # Then who asks: claims without an allocation, and the pods that use them. Where no
    # Node says what nodes are, no pod is kept from any.
    unallocated = [c for c in _select(entries, ResourceClaim) if c.allocation is None]
    claims = {
        object_key(claim.metadata.namespace, claim.metadata.name): claim
        for claim in unallocated
    }
    pods = list(find_pods((entry.decoded.value for entry in entries), claims))
    if not node_names:
        pods = [allow_any_node(pod) for pod in pods]

    # Then gangs of them: everything at once on the one node, or Gang objects, groups of
    # pods and claims that nobody names. Their order is their age.
    gangs: list[tuple[Gang, Reason | None]]
    if node is not None:
        gangs = [(_make_claims_gang("plan", unallocated, node), None)]
    else:
        objects_gangs = ((gang, None) for gang in _select(entries, Gang))
        pod_gangs = _make_pod_gangs(pods)
        gangs = [*objects_gangs, *pod_gangs, *_make_lone_gangs(claims, pods)]
    submitted = tuple(_with_uid(gang, index) for index, (gang, _) in enumerate(gangs))
    for age, gang in enumerate(submitted, start=1):
        uid = GangUID(gang.metadata.uid)
        message = SubmitGang(cluster=CLUSTER, uid=uid, gang=gang)
        snapshot = apply(snapshot, message, sequence=age)

    refused = {
        gang.metadata.uid: reason
        for gang, (_, reason) in zip(submitted, gangs, strict=True)
        if reason is not None
    }
    return PlanWork(
        snapshot=snapshot,
        gangs=submitted,
        consumers=_find_consumers(pods),
        refused=refused,
    )


def _select(objects: Iterable[PlanObject], kind: type[T]) -> Iterator[T]:
    for entry in objects:
        if isinstance(entry.decoded.value, kind):
            yield entry.decoded.value


def _observe_node(name: str) -> ObjectObserved:
    """Make a node up of which only the name is known."""
    raw = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}
    return ObjectObserved(cluster=CLUSTER, kind="Node", key=name, object=raw)


def _find_consumers(
    pods: Iterable[MemberPod],
) -> dict[str, tuple[ResourceClaimConsumerReference, ...]]:
    consumers: dict[str, tuple[ResourceClaimConsumerReference, ...]] = {}
    for pod in pods:
        for name in pod.shared_claims if pod.uid else ():
            key = object_key(pod.namespace, name)
            consumer = ResourceClaimConsumerReference(
                resource="pods", name=pod.name, uid=pod.uid
            )
            consumers[key] = (*consumers.get(key, ()), consumer)
    return consumers


def apply_state(objects: Iterable[PlanObject]) -> Snapshot:
    """Apply all state to an empty snapshot; two objects of one name stay two."""
    snapshot, count_by_name = Snapshot(), dict[str, int]()
    for entry in objects:
        value, kind = entry.decoded.value, entry.decoded.kind
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
        count = count_by_name.get(f"{kind}/{key}", 0) + 1
        count_by_name[f"{kind}/{key}"] = count
        if count > 1 and isinstance(value, ResourceSlice | ResourceClaim | Pod):
            key = f"{key}#{count}"
        message = ObjectObserved(
            cluster=CLUSTER, kind=kind, key=key, object=dict(entry.raw)
        )
        snapshot = apply(snapshot, message)
    return snapshot


def _make_pod_gangs(pods: list[MemberPod]) -> Iterator[tuple[Gang, Reason | None]]:
    """Group pods: by gang label and by the claims they share, else alone."""
    for group in group_connected(pods, _list_marks):
        first, merged = group[0], group_by_shared_claims(group)
        gang = Gang(
            metadata=ObjectMeta(
                name=first.gang or first.name, namespace=first.namespace
            ),
            spec=GangSpec(
                priority=max(pod.priority for pod in group),
                members=tuple(
                    member_of(_to_label(peers[0].name), peers) for peers in merged
                ),
            ),
        )
        yield gang, next(filter(None, map(refusal_of, merged)), None)


def _list_marks(pod: MemberPod) -> Iterator[tuple[str, str, str]]:
    """List what makes a pod one gang with others that have it."""
    if pod.gang:
        yield pod.namespace, "gang", pod.gang
    for name in pod.shared_claims:
        yield pod.namespace, "claim", name


def _to_label(name: str) -> str:
    """Make a name one DNS label."""
    return name.replace(".", "-")[:63].strip("-") or "pod"


def _make_lone_gangs(
    claims: dict[str, ResourceClaim], pods: list[MemberPod]
) -> Iterator[tuple[Gang, None]]:
    """Make a gang of each claim that no pod names."""
    named = {
        object_key(pod.namespace, name) for pod in pods for name in pod.shared_claims
    }
    for key, claim in claims.items():
        if key not in named:
            yield _make_claims_gang(claim.metadata.name, [claim]), None


def _make_claims_gang(name: str, claims: list[ResourceClaim], node: str = "") -> Gang:
    members = tuple(
        MemberClaim(
            name=_to_label(claim.metadata.name)
            if len(claims) == 1
            else f"claim-{index}",
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
