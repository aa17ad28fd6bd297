"""Pods that wait for classic claims -> the gang that is submitted for them. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from contracts.codec import encode
from contracts.device import NodeSelector
from contracts.gang import Gang, GangSpec, Member, MemberClaim, MemberNode
from contracts.ids import ClusterName, GangUID, NodeName
from contracts.messages import Place, PodRef, SubmitGang
from contracts.meta import ObjectMeta
from contracts.names import GANG, WORKLOAD
from contracts.pods.declared_rules import InvalidRules, read_declared_rules
from contracts.pods.declared_sizes import UnknownSize, read_declared_size
from contracts.pods.members import member_of, read_member_pod
from contracts.pods.membership import Membership
from contracts.pods.node_affinity import NODE_AFFINITY
from contracts.quantity import Quantity
from contracts.workload import Pod
from publisher.classic.known import IMMEDIATE_CLAIM
from publisher.classic.objects import ClassicClaim, SchedulingContext
from publisher.gang_names import gang_uid, shorten_gang_name
from publisher.gangs.members import ONLY
from publisher.gangs.node_affinity import narrow_affinity
from publisher.gangs.records import PodGangRecord
from publisher.gangs.view import GroupKey


class WaitingPod(Struct, frozen=True, kw_only=True):
    """A pod, the claims that it waits for and what kube-scheduler asks about it."""

    pod: Pod
    membership: Membership
    claims: dict[str, ClassicClaim]
    """Its claims by the pod's own names for them, ours that are pending alone."""
    faults: tuple[str, ...] = ()
    """What keeps its claims from being allocated."""
    context: SchedulingContext | None = None

    @property
    def uid(self) -> str:
        """The pod's uid."""
        return self.pod.metadata.uid

    @property
    def ref(self) -> PodRef:
        """The pod's name and uid."""
        return PodRef(name=self.pod.metadata.name, uid=self.uid)

    @property
    def nodes(self) -> tuple[str, ...]:
        """The nodes on which its devices may be; sorted.

        Those which kube-scheduler asks about, and those which were found unsuitable:
        it leaves them out, but one of them may do by now.
        """
        if self.pod.spec.node_name:
            return (self.pod.spec.node_name,)
        if self.context is None:
            return ()
        said = {
            node for name in self.claims for node in self.context.unsuitable(name) or ()
        }
        return tuple(sorted({*self.context.asked, *said}))


class NotReady(Struct, frozen=True, kw_only=True):
    """Why pods are not asked for yet."""

    reason: str
    message: str
    is_told: bool = True
    """True if their author should know."""


class Look(Struct, frozen=True, kw_only=True):
    """What the next steps of one gang are planned from."""

    cluster: ClusterName
    group: GroupKey
    now: str
    alive: tuple[Pod, ...]
    """All pods of the gang that have not ended."""
    waiting: tuple[WaitingPod, ...]
    """Those of them with claims that we are to allocate."""
    lacking: tuple[str, ...] = ()
    """Names of pods some of whose claims are not there yet."""
    claim: ClassicClaim | None = None
    """The claim that is allocated without a pod, where that is what the gang is."""
    records: tuple[PodGangRecord, ...] = ()
    answered: dict[str, tuple[str, ...]] = {}
    """By uid of a pod: which nodes were asked about when a node was left to it."""
    forgotten: Callable[[GangUID], bool | None] = lambda _: None
    """Tells whether a gang is over and forgotten."""

    def next_uid(self, uids: Sequence[str]) -> tuple[int, GangUID]:
        """Return generation and uid of the next gang of these pods."""
        generation = 1 + max((record.age[0] for record in self.records), default=0)
        name = str(self.group)
        while self.forgotten(gang_uid(name, generation, uids)) is not None:
            generation += 1
        return generation, gang_uid(name, generation, uids)


def submit_pods(look: Look) -> SubmitGang | NotReady:
    """Make the gang of all pods that wait, or say why not yet."""
    faults = [fault for waiting in look.waiting for fault in waiting.faults]
    if faults:
        return NotReady(reason="ClaimInvalid", message=faults[0])
    short = _find_shortage(look)
    if short is not None:
        return short
    if look.lacking:
        message = f"claims of {look.lacking[0]} are not there yet"
        return NotReady(reason="ClaimsMissing", message=message, is_told=False)
    unasked = [each for each in look.waiting if not each.nodes]
    if unasked:
        names = ", ".join(each.pod.metadata.name for each in unasked[:3])
        message = f"kube-scheduler has named no node for {names}"
        return NotReady(reason="NotScheduledYet", message=message, is_told=False)
    rules = read_declared_rules([each.pod for each in look.waiting])
    if isinstance(rules, InvalidRules):
        return NotReady(reason=rules.reason, message=rules.message)
    placed = {pod.metadata.uid for pod in look.alive} - {e.uid for e in look.waiting}
    if placed and (rules.constraints or rules.topology):
        message = "its rules also apply to pods that have their devices already"
        return NotReady(reason="PartPlaced", message=message)
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


def submit_claim(look: Look, claim: ClassicClaim) -> SubmitGang | NotReady:
    """Make the gang that a claim is which is allocated without a pod."""
    if claim.spec is None:
        return NotReady(reason="ClaimInvalid", message=claim.fault)
    generation, uid = look.next_uid([claim.uid])
    asked = MemberClaim(name="claim", spec=claim.spec, claim_name=claim.name)
    metadata = ObjectMeta(
        name=shorten_gang_name(claim.name),
        namespace=look.group.namespace,
        annotations={WORKLOAD: f"{IMMEDIATE_CLAIM}/{claim.name}"},
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


def _find_shortage(look: Look) -> NotReady | None:
    """Return what is missing until the gang is whole; None: nothing."""
    if look.waiting[0].membership.is_lone:
        return None
    size = read_declared_size(look.alive, look.waiting[0].membership)
    if isinstance(size, UnknownSize):
        return NotReady(reason=size.reason, message=size.message)
    if size is not None and len(look.alive) < size:
        message = f"{len(look.alive)} of {size} pods are there"
        return NotReady(reason="PodsMissing", message=message)
    return None


def _group_members(
    pods: Sequence[WaitingPod],
) -> tuple[tuple[Member, ...], dict[str, tuple[Place, ...]]]:
    """Make equal pods that may be on the same nodes one member; labels count."""
    found: dict[bytes, tuple[Member, list[WaitingPod]]] = {}
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


def _place_of(each: WaitingPod, member: Member) -> Place:
    names = tuple(each.claims[claim.name].name for claim in member.claims)
    return Place(pods=(each.ref,), claims=names)


def read_member(each: WaitingPod) -> Member:
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
    return made.gang.spec.members == before.members and made.places.keys() == (
        record.submission.places.keys()
    )
