"""What comes next for the pods of a gang, or a claim, that wait for classic claims.

All pods that belong together are asked for at once, each on the nodes that
kube-scheduler named for it. What is decided is answered as unsuitable nodes: all of
them but one. Once kube-scheduler selects that one, the claims of the pod are allocated.
Pods that were bound without a scheduler are asked for on their node. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from contracts.allocation import UNTRIED, AllocationResult, Rule
from contracts.ids import NodeName
from contracts.lifecycle import PUBLISHER
from contracts.messages import (
    AllocationWritten,
    CancelGang,
    ClaimsReleased,
    GangAllocated,
    MemberAllocated,
    PodRef,
    PodWritten,
    ReleaseGang,
    SubmitGang,
)
from publisher.classic.look import ClassicPod, Look
from publisher.classic.objects import MOST_NODES, ClassicClaim, SchedulingContext
from publisher.classic.submissions import (
    NotAskedYet,
    asks_the_same,
    submit_claim,
    submit_pods,
)
from publisher.gangs.records import PodGangRecord

Message = SubmitGang | CancelGang | ReleaseGang | AllocationWritten | ClaimsReleased
_SAYS_NOTHING = UNTRIED | {Rule.WITHDRAWN}
"""Reasons that say nothing of nodes yet."""


class Write(Struct, frozen=True, kw_only=True):
    """A claim that is to be allocated, for a pod if it is one's."""

    claim: ClassicClaim
    allocation: AllocationResult
    pod: PodRef | None = None


class ContextAnswer(Struct, frozen=True, kw_only=True):
    """What a context is to say."""

    context: SchedulingContext
    pod_uid: str
    unsuitable: dict[str, tuple[str, ...]]
    """Nodes that will not do, by the pod's name of a claim."""
    is_decided: bool
    """True if a node is left to the pod."""


class Told(Struct, frozen=True, kw_only=True):
    """What the author of a pod, or of a claim, should know."""

    kind: str
    key: str
    uid: str
    reason: str
    message: str


class ClassicSteps(Struct, frozen=True, kw_only=True):
    """What is to be done now, in this order."""

    messages: tuple[Message, ...] = ()
    writes: tuple[Write, ...] = ()
    answers: tuple[ContextAnswer, ...] = ()
    opens: PodGangRecord | None = None
    """A gang whose claims are all written: it is to be told that its pods may run."""
    rules_out: tuple[tuple[str, NodeName], ...] = ()
    """Pods, by uid, and the nodes that they are not asked for any longer."""
    told: tuple[Told, ...] = ()

    @property
    def is_nothing(self) -> bool:
        """True if nothing comes next until something changes."""
        return self == ClassicSteps(told=self.told)


def plan_gang(look: Look) -> ClassicSteps:
    """Plan what comes next."""
    ends = tuple(_end_records(look))
    if ends:
        return ClassicSteps(messages=ends)
    current = _current(look)
    if look.claim is None and not look.waiting:
        return _confirm(look, current) if current is not None else ClassicSteps()
    if current is None:
        return _begin(look)
    if current.is_ending and not current.is_over:
        return ClassicSteps()  # the solver has still to say that it is over
    if current.placed is not None:
        return _follow_decision(look, current, current.placed)
    return _wait(look, current)


def _current(look: Look) -> PodGangRecord | None:
    """Return the newest gang of what waits, unless only others can go on from it."""
    newest = max(look.records, key=lambda record: record.age, default=None)
    if newest is None or not newest.is_over:
        return newest
    is_again = newest.is_ended_by_publisher or newest.ended_by is not None
    return None if is_again and not _is_cancelled_by_others(newest) else newest


def _is_cancelled_by_others(record: PodGangRecord) -> bool:
    is_cancelled = isinstance(record.ended_by, CancelGang)
    return is_cancelled and not record.is_ended_by_publisher


# --- the end of gangs -----------------------------------------------------------------


def _end_records(look: Look) -> Iterator[Message]:
    """Yield the end of gangs whose pods are over, or are another gang's by now."""
    alive = {pod.metadata.uid for pod in look.alive}
    if look.claim is not None and not look.claim.is_deleted:
        alive.add(look.claim.uid)
    newer: set[str] = set()
    for record in sorted(look.records, key=lambda record: record.age, reverse=True):
        uids = record.pods or _claim_uids(look)
        if record.is_released and not record.is_finished:
            yield ClaimsReleased(
                cluster=look.cluster, namespace=record.namespace, uid=record.uid
            )
        elif not record.is_ending and not (uids & alive) - newer:
            yield _end(look, record)
        newer |= uids


def _claim_uids(look: Look) -> frozenset[str]:
    return frozenset() if look.claim is None else frozenset({look.claim.uid})


def _end(look: Look, record: PodGangRecord) -> Message:
    if record.is_written:
        return ReleaseGang(
            cluster=look.cluster, namespace=record.namespace, uid=record.uid
        )
    return _cancel(look, record, "nothing waits for it any longer")


def _cancel(look: Look, record: PodGangRecord, why: str) -> CancelGang:
    return CancelGang(
        cluster=look.cluster,
        namespace=record.namespace,
        uid=record.uid,
        reason=f"{PUBLISHER}{why}",
    )


def _give_up(look: Look, record: PodGangRecord, why: str) -> ClassicSteps:
    return ClassicSteps(messages=(_cancel(look, record, why),))


# --- before a decision ----------------------------------------------------------------


def _submit(look: Look) -> SubmitGang | NotAskedYet:
    return submit_pods(look) if look.claim is None else submit_claim(look, look.claim)


def _begin(look: Look) -> ClassicSteps:
    if look.claim is not None and not look.claim.is_wanting:
        return ClassicSteps()
    made = _submit(look)
    if isinstance(made, SubmitGang):
        return ClassicSteps(messages=(made,))
    if not made.is_told:
        return ClassicSteps()
    return ClassicSteps(told=tuple(_tell(look, made.reason, made.message)))


def _wait(look: Look, record: PodGangRecord) -> ClassicSteps:
    """Go on with a gang that has no place: ask anew if what is asked has changed."""
    made = _submit(look)
    if isinstance(made, SubmitGang) and not asks_the_same(made, record):
        if record.is_over and not _is_cancelled_by_others(record):
            return ClassicSteps(messages=(made,))
        if not record.is_over:
            return _give_up(look, record, "other nodes or claims are asked for")
    alive = {pod.metadata.uid for pod in look.alive}
    if not record.is_over and not record.pods <= alive:
        return _give_up(look, record, "some of its pods are over")
    if not record.reasons or record.reasons[0].rule in _SAYS_NOTHING:
        return ClassicSteps()
    reason = record.reasons[0]
    answers = tuple(answer for each in look.waiting for answer in _answer(each, None))
    told = _tell(look, str(reason.rule), str(reason))
    return ClassicSteps(answers=answers, told=tuple(told))


def _tell(look: Look, reason: str, message: str) -> list[Told]:
    """Tell the first of the pods, or the claim."""
    if look.claim is not None:
        claim = look.claim
        return [
            Told(
                kind="ResourceClaim",
                key=claim.key,
                uid=claim.uid,
                reason=reason,
                message=message,
            )
        ]
    meta = look.waiting[0].pod.metadata
    key = f"{meta.namespace}/{meta.name}"
    return [Told(kind="Pod", key=key, uid=meta.uid, reason=reason, message=message)]


# --- after a decision -----------------------------------------------------------------


def _follow_decision(
    look: Look, record: PodGangRecord, decision: GangAllocated
) -> ClassicSteps:
    if look.claim is not None:
        return _allocate_alone(look, record, decision, look.claim)
    places = _places_by_uid(record, decision)
    missing = [each for each in look.waiting if each.uid not in places]
    if missing:
        return _give_up(look, record, "more pods wait")
    if record.is_written:
        return _give_up(look, record, "claims were deallocated")
    answers: list[ContextAnswer] = []
    writes: list[Write] = []
    for each in look.waiting:
        place = places[each.uid]
        if _is_void(look, each, place.node):
            steps = _give_up(look, record, f"kube-scheduler rules out {place.node}")
            return replace(steps, rules_out=((each.uid, place.node),))
        if _is_selected(each, place.node):
            writes += _allocate(each, place)
        else:
            answers += _answer(each, place.node)
    # A claim that two of these pods use is written once.
    once = {write.claim.key: write for write in reversed(writes)}
    return ClassicSteps(writes=tuple(reversed(once.values())), answers=tuple(answers))


def _places_by_uid(
    record: PodGangRecord, decision: GangAllocated
) -> dict[str, MemberAllocated]:
    if record.submission is None:
        return {}
    places = record.submission.places
    return {
        pod.uid: member
        for member in decision.members
        for pod in places[member.member][member.index].pods
    }


def _is_void(look: Look, each: ClassicPod, node: NodeName) -> bool:
    """True if kube-scheduler was left just this node, and will not have it.

    It asked about others since, or it has said nothing for long.
    """
    if each.context is None or _is_selected(each, node):
        return False
    if each.uid in look.overdue:
        return True
    answered = look.answered.get(each.uid)
    is_asked = node in each.context.asked
    return answered is not None and answered != each.context.asked and not is_asked


def _is_selected(each: ClassicPod, node: NodeName) -> bool:
    is_bound = each.pod.spec.node_name == node
    return is_bound or (each.context is not None and each.context.selected == node)


def _allocate(each: ClassicPod, place: MemberAllocated) -> Iterator[Write]:
    decided = {claim.claim: claim.allocation for claim in place.claims}
    for name, claim in each.claims.items():
        if name in decided:
            yield Write(claim=claim, allocation=decided[name], pod=each.ref)


def _allocate_alone(
    look: Look, record: PodGangRecord, decision: GangAllocated, claim: ClassicClaim
) -> ClassicSteps:
    if not claim.is_wanting:
        return _confirm(look, record)
    if record.is_written:
        return _give_up(look, record, "the claim was deallocated")
    (allocated,) = decision.members[0].claims
    return ClassicSteps(writes=(Write(claim=claim, allocation=allocated.allocation),))


def _answer(each: ClassicPod, node: NodeName | None) -> Iterator[ContextAnswer]:
    """Yield what a context should say, unless it does: a node is left, or none is."""
    context = each.context
    if context is None:
        return
    nodes = [name for name in each.nodes if name != node]
    # Of too many those count that were asked for just now.
    nodes.sort(key=lambda name: (name not in context.asked, name))
    told = tuple(sorted(nodes[:MOST_NODES]))
    unsuitable = dict.fromkeys(each.claims, told)
    if all(context.unsuitable(name) == told for name in each.claims):
        return
    yield ContextAnswer(
        context=context,
        pod_uid=each.uid,
        unsuitable=unsuitable,
        is_decided=node is not None,
    )


def _confirm(look: Look, record: PodGangRecord) -> ClassicSteps:
    """Confirm a decision all of whose claims are written."""
    decision = record.in_force
    if decision is None or record.is_open or record.is_over:
        return ClassicSteps()
    if record.is_written:
        return ClassicSteps(opens=record)
    message = AllocationWritten(
        cluster=look.cluster,
        namespace=record.namespace,
        uid=record.uid,
        attempt=decision.attempt,
    )
    return ClassicSteps(messages=(message.naming(tuple(_name_pods(record, decision))),))


def _name_pods(record: PodGangRecord, decision: GangAllocated) -> Iterator[PodWritten]:
    places = {} if record.submission is None else record.submission.places
    for member in decision.members:
        found = places.get(member.member)
        if not found:
            continue
        place = found[member.index]
        names = (claim.claim for claim in member.claims)
        yield PodWritten(
            member=member.member,
            index=member.index,
            pod=place.pods[0].name,
            claims=dict(zip(names, place.claims, strict=False)),
        )
