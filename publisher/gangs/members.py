"""Pods and their claims -> the members of a gang, and which pod is which.

Equal pods become one member with a count. Its member names a claim that several pods
use, as it gets one allocation. Claims that already have devices ask for none; their
pods must go where these devices are. Pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from contracts.allocation import Reason
from contracts.codec import encode
from contracts.errors import DecodeError
from contracts.gang import Gang, Member, MemberClaim, MemberNode, NodeToleration
from contracts.messages import Place, PodRef
from contracts.pods.members import MemberPod, member_of, read_member_pod, with_labels_of
from contracts.pods.membership import read_membership
from contracts.pods.node_affinity import NODE_AFFINITY
from contracts.pods.pod_rules import list_mentioned_labels, rules_of_node
from contracts.workload import Pod
from publisher.gang_names import is_part_of
from publisher.gangs.claims import pod_group_of
from publisher.gangs.context import PlanContext
from publisher.gangs.node_affinity import bind_node
from publisher.gangs.view import claim_keys, is_gated

ONLY = "pod"
"""The member's name where pods do not say one."""
_KUBELETS = (NodeToleration(operator="Exists", effect="NoSchedule"),)
"""Taints that only schedulers look at."""
_LABEL = 58
"""Characters of a label, so that it and a number are a label again."""


class GroupedPods(Struct, frozen=True, kw_only=True):
    """What pods ask for together."""

    members: tuple[Member, ...]
    places: dict[str, tuple[Place, ...]]
    """By member; which pods and ResourceClaims each index is."""


def group_pods(
    pods: Sequence[Pod], context: PlanContext, unnamed: str = ONLY
) -> GroupedPods | Reason:
    """Put pods together as members; a Reason names what cannot be decided.

    All claims of the pods exist, and some node has their volumes. Members come in the
    order of their first pods; a second kind of pods under one name is named `name-2`.
    Pods without the name of a member are `unnamed`.
    """
    members: dict[bytes, tuple[Member, list[Place]]] = {}
    labels: dict[bytes, list[Mapping[str, str]]] = {}
    names: set[str] = set()
    member_pods = [_read_pod(pod, context) for pod in pods]
    telling = _list_telling_labels(member_pods)
    shared = _find_shared_claims(member_pods)
    for pod, read in zip(pods, member_pods, strict=True):
        if read.refusal is not None:
            return read.refusal
        member = member_of("", read)
        node = bind_node(member.node, [pod], context.view)
        if isinstance(node, Reason):
            return node
        member = replace(member, node=node)
        place = place_of_pod(pod, member)
        member = _keep_claim_names(member, shared)
        name = context.membership(pod).member or unnamed
        # What asks for the same under one name is one member, unless labels differ by
        # which pods of the gang choose each other.
        told = {k: v for k, v in member.node.labels.items() if k in telling}
        likeness = encode([name, _with_labels(member, told)])
        labels.setdefault(likeness, []).append(read.node.labels)
        if likeness not in members:
            name = _number_name(name, names)
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


def _number_name(label: str, used: Container[str]) -> str:
    """Number a label until no other member has that name."""
    name, number = label, 1
    while name in used:
        number += 1
        name = f"{label[:_LABEL]}-{number}"
    return name


def _read_pod(pod: Pod, context: PlanContext) -> MemberPod:
    """Read what a pod asks for: its claims without an allocation that are ours."""
    wanting = []
    shared = {c.name: c.resource_claim_name for c in pod.spec.resource_claims}
    for name, key in claim_keys(pod).items():
        claim = context.view.claim(key)
        if claim is None or claim.allocation is not None:
            continue
        if context.owns(claim):
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
        # kubelet starts a pod that is on its node past such taints.
        tolerations=(
            *read.node.tolerations,
            *(_KUBELETS if pod.spec.node_name else ()),
        ),
        affinity={k: v for k, v in read.node.affinity.items() if k == NODE_AFFINITY},
        features=read.node.features,
    )
    return replace(read, node=node)


def _find_shared_claims(pods: Iterable[MemberPod]) -> frozenset[str]:
    """Find the claims that several of these pods use."""
    users: Counter[str] = Counter()
    for pod in pods:
        users.update({claim.claim_name for claim in pod.claims if claim.claim_name})
    return frozenset(name for name, count in users.items() if count > 1)


def _keep_claim_names(member: Member, shared: Container[str]) -> Member:
    """Keep the names of shared ResourceClaims alone: places name the others."""
    claims = tuple(
        claim if claim.claim_name in shared else replace(claim, claim_name=None)
        for claim in member.claims
    )
    return replace(member, claims=claims)


def place_of_pod(pod: Pod, member: Member) -> Place:
    """Return the place that a submission names for a pod, claims in member order."""
    keys = claim_keys(pod)
    names = (keys.get(claim.name, "") for claim in member.claims)
    return Place(
        pods=(ref_of(pod),), claims=tuple(name.partition("/")[2] for name in names)
    )


def default_member_of(gang: Gang | None) -> str:
    """Return the member of pods without a label: the only one, if there is one."""
    if gang is not None and len(gang.spec.members) == 1:
        return gang.spec.members[0].name
    return ONLY


def member_name_of(pod: Pod, gang: Gang | None) -> str:
    """Return the name of the member that a pod is.

    Of the parts of a pod set (`name_part`) it is that whose nodes it may run on.
    """
    name = read_membership(pod).member or default_member_of(gang)
    if gang is None:
        return name
    selected = pod.spec.node_selector.items()
    for member in gang.spec.members:
        if is_part_of(member.name, name) and (
            member.node.node_selector.items() <= selected
        ):
            return member.name
    return name


def ref_of(pod: Pod) -> PodRef:
    """Name a pod."""
    return PodRef(name=pod.metadata.name, uid=pod.metadata.uid)
