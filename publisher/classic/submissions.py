"""Pods that wait for classic claims -> the gang that is submitted for them. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from contracts.codec import encode
from contracts.counts import counted
from contracts.device import NodeSelector
from contracts.gang import Gang, GangSpec, Member, MemberClaim, MemberNode
from contracts.ids import NodeName
from contracts.messages import Place, SubmitGang
from contracts.meta import ObjectMeta
from contracts.names import GANG, OF_CLAIM, WORKLOAD
from contracts.pods.declared_rules import InvalidRules, read_declared_rules
from contracts.pods.declared_sizes import UnknownSize, read_declared_size
from contracts.pods.members import member_of, read_member_pod
from contracts.pods.node_affinity import NODE_AFFINITY
from contracts.quantity import Quantity
from publisher.classic.look import ClassicPod, Look
from publisher.classic.objects import ClassicClaim
from publisher.gang_names import shorten_gang_name
from publisher.gangs.members import ONLY
from publisher.gangs.node_affinity import narrow_affinity
from publisher.gangs.records import PodGangRecord, uids_of_places


class NotAskedYet(Struct, frozen=True, kw_only=True):
    """Why pods are not asked for yet."""

    reason: str
    message: str
    is_told: bool = True
    """True if their author should know."""


def submit_pods(look: Look) -> SubmitGang | NotAskedYet:
    """Make the gang of all pods that wait, or say why not yet."""
    faults = [fault for waiting in look.waiting for fault in waiting.faults]
    if faults:
        return NotAskedYet(reason="ClaimInvalid", message=faults[0])
    short = _find_shortage(look)
    if short is not None:
        return short
    if look.lacking:
        message = f"claims of {look.lacking[0]} are not there yet"
        return NotAskedYet(reason="ClaimsMissing", message=message, is_told=False)
    unasked = [each for each in look.waiting if not each.nodes]
    if unasked:
        names = ", ".join(each.pod.metadata.name for each in unasked[:3])
        message = f"kube-scheduler has named no node for {names}"
        return NotAskedYet(reason="NotScheduledYet", message=message, is_told=False)
    rules = read_declared_rules([each.pod for each in look.waiting])
    if isinstance(rules, InvalidRules):
        return NotAskedYet(reason=rules.reason, message=rules.message)
    placed = {pod.metadata.uid for pod in look.alive} - {e.uid for e in look.waiting}
    if placed and (rules.constraints or rules.topology):
        message = "its rules also apply to pods that have their devices already"
        return NotAskedYet(reason="PartPlaced", message=message)
    members, places = _group_members(look.waiting)
    generation, uid = look.next_uid([each.uid for each in look.waiting])
    found = look.waiting[0].membership
    name = shorten_gang_name(found.group)
    metadata = ObjectMeta(
        name=name,
        namespace=found.namespace,
        labels={} if found.is_lone else {GANG: name},
        annotations={WORKLOAD: f"{found.api}/{found.group}"} if found.api else {},
        generation=generation,
    )
    spec = GangSpec(
        priority=max(each.pod.spec.priority or 0 for each in look.waiting),
        members=members,
        constraints=rules.constraints,
        topology=rules.topology,
    )
    return SubmitGang(
        cluster=look.cluster,
        uid=uid,
        gang=Gang(metadata=metadata, spec=spec),
        submitted_at=look.now,
        places=places,
    )


def submit_claim(look: Look, claim: ClassicClaim) -> SubmitGang | NotAskedYet:
    """Make the gang that a claim is which is allocated without a pod."""
    if claim.spec is None:
        return NotAskedYet(reason="ClaimInvalid", message=claim.fault)
    generation, uid = look.next_uid([claim.uid])
    asked = MemberClaim(name="claim", spec=claim.spec, claim_name=claim.name)
    metadata = ObjectMeta(
        name=shorten_gang_name(claim.name),
        namespace=look.group.namespace,
        annotations={WORKLOAD: f"{OF_CLAIM}/{claim.name}"},
        generation=generation,
    )
    node = MemberNode(resources={"pods": Quantity.of(0)})
    member = Member(name="claim", claims=(asked,), node=node)
    return SubmitGang(
        cluster=look.cluster,
        uid=uid,
        gang=Gang(metadata=metadata, spec=GangSpec(members=(member,))),
        submitted_at=look.now,
    )


def _find_shortage(look: Look) -> NotAskedYet | None:
    """Return what is missing until the gang is whole; None: nothing."""
    if look.waiting[0].membership.is_lone:
        return None
    size = read_declared_size(look.alive, look.waiting[0].membership)
    if isinstance(size, UnknownSize):
        return NotAskedYet(reason=size.reason, message=size.message)
    if size is not None and len(look.alive) < size:
        message = f"{len(look.alive)} of {counted(size, 'pod')} are there"
        return NotAskedYet(reason="PodsMissing", message=message)
    return None


def _group_members(
    pods: Sequence[ClassicPod],
) -> tuple[tuple[Member, ...], dict[str, tuple[Place, ...]]]:
    """Make equal pods that may be on the same nodes one member; labels count."""
    found: dict[bytes, tuple[Member, list[ClassicPod]]] = {}
    used: dict[str, int] = {}
    for each in pods:
        member = read_member(each)
        name = each.membership.member or ONLY
        likeness = encode([name, member])
        if likeness not in found:
            used[name] = used.get(name, 0) + 1
            numbered = name if used[name] == 1 else f"{name}-{used[name]}"
            found[likeness] = (replace(member, name=numbered), [])
        found[likeness][1].append(each)
    members = tuple(replace(member, count=len(own)) for member, own in found.values())
    places = {
        member.name: tuple(_place_of(each, member) for each in own)
        for member, own in found.values()
    }
    return members, places


def _place_of(each: ClassicPod, member: Member) -> Place:
    names = tuple(each.claims[claim.name].name for claim in member.claims)
    return Place(pods=(each.ref,), claims=names)


def read_member(each: ClassicPod) -> Member:
    """Read what a pod asks for, on the nodes that it may be on.

    Claims that it names are named: other pods may use them, too. A pod that is on its
    node counts there already, for amounts and rules.
    """
    named = {c.name: c.resource_claim_name for c in each.pod.spec.resource_claims}
    claims = [
        MemberClaim(name=name, spec=claim.spec, claim_name=named.get(name))
        for name, claim in each.claims.items()
    ]
    read = read_member_pod(each.pod.metadata, each.pod.spec, claims)
    member = member_of("", read)
    if each.pod.spec.node_name:
        affinity = {k: v for k, v in member.node.affinity.items() if k == NODE_AFFINITY}
        node = MemberNode(node_name=each.pod.spec.node_name, affinity=affinity)
        return replace(member, node=node)
    terms = tuple(
        term
        for node in each.nodes
        for term in NodeSelector.of_node(NodeName(node)).node_selector_terms
    )
    selector = NodeSelector(node_selector_terms=terms)
    affinity = narrow_affinity(member.node.affinity, selector)
    return replace(member, node=replace(member.node, affinity=affinity))


def asks_the_same(made: SubmitGang, record: PodGangRecord) -> bool:
    """True if what would be asked for now is what a record asked for."""
    if record.submission is None:
        return False
    before = record.submission.gang.spec
    is_same = made.gang.spec.members == before.members
    return is_same and uids_of_places(made.places) == record.pods
