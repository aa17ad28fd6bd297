"""Pods and their claims -> the members of a gang, and which pod is which.

Equal pods become one member with a count. A claim that several of them use is named in
their member: it is one allocation. Claims that are allocated already ask for nothing,
but bind their pods to where they are. Pure; knows no Gang object.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import (
    Callable,
    Container,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from contracts.allocation import Reason, Rule
from contracts.claim import ResourceClaim
from contracts.codec import encode
from contracts.device import NodeSelector
from contracts.errors import DecodeError
from contracts.gang import AvoidedNode, Member, MemberClaim, MemberNode
from contracts.ids import NodeName
from contracts.messages import Place, PodRef
from contracts.pods.members import (
    MemberPod,
    member_of,
    read_member_pod,
    with_labels_of,
)
from contracts.pods.node_affinity import NODE_AFFINITY, read_pinned_node
from contracts.pods.pod_rules import list_mentioned_labels, rules_of_node
from contracts.pods.volumes import MissingVolume, find_volume_nodes
from contracts.workload import Pod
from publisher.gangs.claims import pod_group_of
from publisher.gangs.patches import narrow_affinity
from publisher.gangs.view import View, claim_keys, is_gated

ONLY = "pod"
"""The member's name where pods do not say one."""
_LABEL = 58
"""Characters of a label, so that it and a number are a label again."""
Owns = Callable[[ResourceClaim], bool]
"""Whether a claim is decided here, or left to kube-scheduler."""


class GroupedPods(Struct, frozen=True, kw_only=True):
    """What pods ask for together."""

    members: tuple[Member, ...]
    places: dict[str, tuple[Place, ...]]
    """By member; which pods and ResourceClaims each index is."""


def group_pods(
    pods: Sequence[Pod], view: View, owns: Owns, unnamed: str = ONLY
) -> GroupedPods | Reason:
    """Put pods together as members; a Reason names what cannot be decided.

    All claims of the pods exist, and their volumes can be had somewhere. Members come
    in the order of their first pods; a second kind of pods under one name is named
    `name-2`. Pods of which nothing says the name are `unnamed`.
    """
    members: dict[bytes, tuple[Member, list[Place]]] = {}
    labels: dict[bytes, list[Mapping[str, str]]] = {}
    names: set[str] = set()
    member_pods = [_read(pod, view, owns) for pod in pods]
    telling = _list_telling_labels(member_pods)
    shared = _find_shared_claims(member_pods)
    for pod, read in zip(pods, member_pods, strict=True):
        if read.refusal is not None:
            return read.refusal
        member = _bind(member_of("", read), [pod], view)
        if isinstance(member, Reason):
            return member
        place = _place(read, pod, member)
        member = _keep_claim_names(member, shared)
        name = view.membership(pod).member or unnamed
        # What asks for the same under one name is one member, unless labels differ by
        # which pods of the gang choose each other.
        told = {k: v for k, v in member.node.labels.items() if k in telling}
        likeness = encode([name, _with_labels(member, told)])
        labels.setdefault(likeness, []).append(read.node.labels)
        if likeness not in members:
            name = _number(name, names)
            names.add(name)
            members[likeness] = (replace(member, name=name), [])
        members[likeness][1].append(place)
    return GroupedPods(
        members=tuple(
            replace(
                member,
                count=len(places),
                node=with_labels_of(member.node, labels[likeness]),
            )
            for likeness, (member, places) in members.items()
        ),
        places={member.name: tuple(places) for member, places in members.values()},
    )


def _list_telling_labels(pods: Iterable[MemberPod]) -> list[str]:
    """List the keys of labels by which some of these pods choose others."""
    keys: set[str] = set()
    for pod in pods:
        try:
            keys |= list_mentioned_labels(rules_of_node(pod.namespace, pod.node))
        except DecodeError:
            continue  # the solver refuses it, with the field
    return sorted(keys)


def _with_labels(member: Member, labels: dict[str, str]) -> Member:
    node = replace(member.node, labels=labels, varying_labels=())
    return replace(member, node=node)


def _number(label: str, used: Container[str]) -> str:
    """Number a label until no other member has that name."""
    name, number = label, 1
    while name in used:
        number += 1
        name = f"{label[:_LABEL]}-{number}"
    return name


def uids_of_places(places: Mapping[str, Sequence[Place]]) -> frozenset[str]:
    """Return the uids of all pods that have a place."""
    return frozenset(
        pod.uid
        for of_member in places.values()
        for place in of_member
        for pod in place.pods
    )


def _read(pod: Pod, view: View, owns: Owns) -> MemberPod:
    """Read what a pod asks for: its claims without an allocation that are ours."""
    wanting = []
    shared = {c.name: c.resource_claim_name for c in pod.spec.resource_claims}
    for name, key in claim_keys(pod).items():
        claim = view.claim(key)
        if claim is not None and owns(claim) and claim.allocation is None:
            own_name = claim.metadata.name if pod_group_of(claim) else None
            claim_name = shared[name] or own_name
            wanting.append(
                MemberClaim(name=name, spec=claim.spec, claim_name=claim_name)
            )
    read = read_member_pod(pod.metadata, pod.spec, wanting)
    if is_gated(pod):
        return read
    # Its gate is open: it counts as a pod of its node already, for amounts and rules.
    node = MemberNode(
        node_selector=read.node.node_selector,
        tolerations=read.node.tolerations,
        affinity={k: v for k, v in read.node.affinity.items() if k == NODE_AFFINITY},
    )
    return replace(read, node=node)


def _bind(member: Member, pods: Sequence[Pod], view: View) -> Member | Reason:
    node = bind_node(member.node, pods, view)
    return node if isinstance(node, Reason) else replace(member, node=node)


def bind_node(node: MemberNode, pods: Sequence[Pod], view: View) -> MemberNode | Reason:
    """Bind what pods ask of a node to their volumes, and to claims that hold devices.

    A Reason: the claims hold devices of different nodes.
    """
    affinity = _narrow_to_volumes(node.affinity, pods, view)
    names = set()
    for selector in _selectors(pods, view):
        name = selector.only_node
        if name:
            names.add(name)
        else:
            affinity = narrow_affinity(affinity, selector)
    if len(names) > 1:
        where = ", ".join(sorted(names))
        return Reason(
            rule=Rule.NODE_SELECTION,
            subject=pods[0].metadata.name,
            field="spec.resourceClaims",
            message=f"its claims are allocated on different nodes: {where}",
        )
    return replace(node, affinity=affinity, node_name=NodeName("".join(names)))


def pinned_node_of(pod: Pod) -> NodeName:
    """Return the node that a pod is pinned to; empty: none that can be read."""
    try:
        return read_pinned_node(pod.spec.affinity) or NodeName("")
    except DecodeError:
        return NodeName("")


def leave_out(node: MemberNode, nodes: Iterable[AvoidedNode]) -> MemberNode:
    """Keep pods from nodes, unless their claims hold devices of one already.

    A term of `matchFields` has one value (core/v1, validation of node selectors).
    """
    if node.node_name:
        return node
    affinity = node.affinity
    for avoided in nodes:
        affinity = narrow_affinity(affinity, NodeSelector.except_node(avoided.node))
    return replace(node, affinity=affinity)


def _narrow_to_volumes(
    affinity: Mapping[str, Any], pods: Iterable[Pod], view: View
) -> dict[str, Any]:
    """Narrow an affinity to the nodes on which the volumes of pods can be had."""
    narrowed = dict(affinity)
    for pod in pods:
        selectors = find_volume_nodes(pod.metadata, pod.spec, view.volumes)
        if not isinstance(selectors, MissingVolume):
            for selector in selectors:
                narrowed = narrow_affinity(narrowed, selector)
    return narrowed


def _selectors(pods: Sequence[Pod], view: View) -> Iterator[NodeSelector]:
    for key in sorted({key for pod in pods for key in claim_keys(pod).values()}):
        claim = view.claim(key)
        held = None if claim is None else claim.allocation
        if held is not None and held.node_selector is not None:
            yield held.node_selector


def _find_shared_claims(pods: Iterable[MemberPod]) -> frozenset[str]:
    """Find the claims that several of these pods use."""
    users: Counter[str] = Counter()
    for pod in pods:
        users.update({claim.claim_name for claim in pod.claims if claim.claim_name})
    return frozenset(name for name, count in users.items() if count > 1)


def _keep_claim_names(member: Member, shared: Container[str]) -> Member:
    """Leave out which ResourceClaims they are, but shared ones: places say it."""
    claims = tuple(
        claim if claim.claim_name in shared else replace(claim, claim_name=None)
        for claim in member.claims
    )
    return replace(member, claims=claims)


def _place(read: MemberPod, pod: Pod, member: Member) -> Place:
    keys = claim_keys(pod)
    return Place(
        pods=(PodRef(name=read.name, uid=read.uid),),
        claims=tuple(keys[claim.name].partition("/")[2] for claim in member.claims),
    )
