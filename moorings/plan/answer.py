"""From Decisions to the Plan that is printed: what each gets, or why not. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct, structs

from contracts.allocation import Reason, Rule
from contracts.claim import ResourceClaimConsumerReference
from contracts.gang import count_growing
from contracts.ids import object_key
from contracts.messages import MemberAllocated, SubmitGang
from contracts.workload import Pod
from moorings.plan.asking import WaitingGang
from moorings.plan.lone_claims import name_fields
from moorings.plan.plan import ClaimPlan, GangPlan, Plan, PlanStatistics, PodPlan
from moorings.plan.work import PlanWork
from publisher.gangs.members import member_name_of
from publisher.gangs.view import claim_keys
from solver.decision import Decision, GangDecision, Status
from solver.problem.gangs import GangPart, MemberPart
from solver.problem.problem import Problem
from solver.results import claim_ref
from solver.snapshot.parts import NodePart, PoolPart

Consumers = Mapping[str, tuple[ResourceClaimConsumerReference, ...]]
"""The pods that use a claim, by its `namespace/name`."""
GROWING = Reason(
    rule=Rule.GROWING,
    message="its gang is allocated without it, and there is no room for more pods",
)
_WORST = (Status.OPTIMAL, Status.FEASIBLE, Status.NOT_PROVEN)


class SolvedWork(Struct, frozen=True, kw_only=True):
    """One solve: what was asked, and what was decided."""

    work: PlanWork
    problem: Problem
    decision: Decision


def make_plan(
    answers: Sequence[SolvedWork], *, evaluations: int, seconds: tuple[float, float]
) -> Plan:
    """Write answers down; `seconds` are those of the solves and of everything.

    Objective, hash and statistics are those of the first: the others only bind pods to
    claims that it allocated.
    """
    first, last = answers[0], answers[-1]
    claims: list[ClaimPlan] = []
    gangs: list[GangPlan] = []
    consumers = _find_consumers(answers)
    for answer in answers:
        for message, part, gang in _pair_gangs(answer):
            claims += _plan_claims(answer.work, message, part, gang, consumers)
            gangs.append(_plan_gang(message, gang))
    for waiting in last.work.waiting:
        claims += _plan_waiting_claims(last.work, waiting)
        gangs.append(_plan_waiting(waiting))
    statuses = {answer.decision.status for answer in answers}
    return Plan(
        status=str(max(statuses, key=_WORST.index)),
        objective=first.decision.objective,
        claims=tuple(claims),
        gangs=tuple(gangs),
        notes=last.work.notes,
        stats=_make_statistics(first, evaluations, seconds),
        problem_hash=first.problem.hash,
    )


def _pair_gangs(
    answer: SolvedWork,
) -> Iterator[tuple[SubmitGang, GangPart, GangDecision]]:
    decisions = {gang.uid: gang for gang in answer.decision.gangs}
    parts = {gang.uid: gang for gang in answer.problem.gangs}
    for message in answer.work.gangs:
        decided = decisions[message.uid]
        reasons = name_fields(message.gang, decided.reasons)
        yield message, parts[message.uid], structs.replace(decided, reasons=reasons)


def _find_consumers(answers: Iterable[SolvedWork]) -> Consumers:
    """Find the real pods that use each claim, of the gangs that are in."""
    consumers: dict[str, list[ResourceClaimConsumerReference]] = {}
    for answer in answers:
        for message, _, gang in _pair_gangs(answer):
            for member in gang.members if message.places else ():
                place = message.places[member.member][member.index]
                for ref in place.pods:
                    pod = answer.work.pod(gang.namespace, ref)
                    if pod is None:
                        continue
                    user = ResourceClaimConsumerReference(
                        resource="pods", name=ref.name, uid=ref.uid
                    )
                    for key in claim_keys(pod).values():
                        consumers.setdefault(key, []).append(user)
    return {key: tuple(users) for key, users in consumers.items()}


def _make_statistics(
    answer: SolvedWork, evaluations: int, seconds: tuple[float, float]
) -> PlanStatistics:
    values = [part.value for page in answer.problem.pages for part in page.parts()]
    pools = [value for value in values if isinstance(value, PoolPart)]
    nodes = {value.name for value in values if isinstance(value, NodePart)}
    statistics = answer.decision.statistics
    return PlanStatistics(
        devices=sum(len(pool.devices) for pool in pools),
        nodes=len(nodes | {pool.node for pool in pools if pool.node}),
        device_kinds=statistics.device_kinds,
        node_kinds=statistics.node_kinds,
        engine=statistics.engine,
        engine_reason=statistics.engine_reason,
        patterns=statistics.patterns,
        settled_pods=answer.work.settled.pods,
        allocated_claims=answer.work.settled.claims,
        selector_evaluations=evaluations,
        solve_seconds=round(seconds[0], 6),
        total_seconds=round(seconds[1], 6),
    )


# --- what was decided -----------------------------------------------------------------


def _plan_gang(message: SubmitGang, gang: GangDecision) -> GangPlan:
    return GangPlan(
        namespace=gang.namespace,
        name=gang.name,
        uid=gang.uid,
        verdict=gang.verdict,
        members=tuple(
            PodPlan(
                name=member.member,
                index=member.index,
                node=member.node,
                pods=_pods_of(message, member.member, member.index),
            )
            for member in gang.members
        ),
        growing=_count_growing(message, gang),
        reasons=gang.reasons,
    )


def _count_growing(message: SubmitGang, gang: GangDecision) -> dict[str, int]:
    """Count the pods that have no place though their gang is in, by member."""
    placed = [pod.member for pod in gang.members]
    return count_growing(message.gang.spec, placed) if placed else {}


def _pods_of(message: SubmitGang, member: str, index: int) -> tuple[str, ...]:
    if not message.places:
        return ()
    return tuple(ref.name for ref in message.places[member][index].pods)


def _plan_claims(
    work: PlanWork,
    message: SubmitGang,
    part: GangPart,
    gang: GangDecision,
    consumers: Consumers,
) -> Iterator[ClaimPlan]:
    plans = [
        plan
        for member in gang.members
        for plan in _plan_allocated(work, message, gang, member)
    ]
    plans += _plan_unallocated(work, message, part, gang)
    # A claim that several pods share stands with the first of them.
    sharing: dict[str, list[ClaimPlan]] = {}
    for plan in plans:
        key = object_key(plan.namespace, plan.name)
        sharing.setdefault(key, []).append(plan)
    for key, same in sharing.items():
        first = (same[0].member, same[0].index)
        pods = ", ".join(dict.fromkeys(plan.pod for plan in same if plan.pod))
        users = () if same[0].allocation is None else consumers.get(key, ())
        if len(same) == 1 and not users:
            yield same[0]
            continue
        for plan in same:
            if (plan.member, plan.index) == first:
                yield structs.replace(plan, pod=pods, reserved_for=users)


def _name_by_claim(
    work: PlanWork, message: SubmitGang, member: str, index: int
) -> dict[str, tuple[str, str]]:
    """Name the ResourceClaims of a place, with their uids, by claim of the member."""
    if not message.places:
        return {}
    place = message.places[member][index]
    claims = next(m.claims for m in message.gang.spec.members if m.name == member)
    named = {}
    for claim, name in zip(claims, place.claims, strict=True):
        found = work.claim(object_key(message.gang.metadata.namespace, name))
        named[claim.name] = (name, "" if found is None else found.metadata.uid)
    return named


def _plan_allocated(
    work: PlanWork, message: SubmitGang, gang: GangDecision, member: MemberAllocated
) -> Iterator[ClaimPlan]:
    named = _name_by_claim(work, message, member.member, member.index)
    pods = _pods_of(message, member.member, member.index)
    for claim in member.claims:
        name, uid = named.get(claim.claim, (claim.ref.name, ""))
        yield ClaimPlan(
            namespace=gang.namespace,
            name=name,
            uid=uid or claim.ref.uid,
            gang=gang.name,
            member=member.member,
            index=member.index,
            claim=claim.claim,
            pod=", ".join(pods),
            node=member.node,
            verdict="allocated",
            allocation=claim.allocation,
        )


def _plan_unallocated(
    work: PlanWork, message: SubmitGang, part: GangPart, gang: GangDecision
) -> Iterator[ClaimPlan]:
    """Write down the claims of pods that have no place, all for one reason."""
    is_error = gang.verdict == "error"
    reasons = gang.reasons or (GROWING,)
    error = str(reasons[0]) if is_error else None
    placed = Counter(pod.member for pod in gang.members)
    resolved_members = {member.name: member for member in part.members}
    for member in message.gang.spec.members:
        resolved = resolved_members.get(member.name)
        for index in range(placed[member.name], member.count):
            named = _name_by_claim(work, message, member.name, index)
            for claim in member.claims:
                name, uid = named.get(claim.name) or (claim.claim_name or "", "")
                if not uid and resolved is not None:
                    ref = _name_claim(part, resolved, index, claim.name)
                    name, uid = name or ref[0], ref[1]
                yield ClaimPlan(
                    namespace=gang.namespace,
                    name=name or f"{gang.name}-{member.name}-{index}-{claim.name}",
                    uid=uid,
                    gang=gang.name,
                    member=member.name,
                    index=index,
                    claim=claim.name,
                    pod=", ".join(_pods_of(message, member.name, index)),
                    node=None,
                    verdict="error" if is_error else "none",
                    error_scope=_find_error_scope(reasons[0]) if is_error else None,
                    error=error,
                    reasons=reasons,
                )


def _name_claim(
    part: GangPart, member: MemberPart, index: int, claim: str
) -> tuple[str, str]:
    """Return the name and uid that the solver gives a claim."""
    for resolved in member.claims:
        if resolved.name == claim:
            ref = claim_ref(part, member, index, resolved)
            return ref.name, ref.uid
    return "", ""


def _find_error_scope(reason: Reason) -> str:
    """Return how far an error reaches: the node, the cluster, or this attempt."""
    if "aborted" in reason.facts:
        return "aborted"
    return "node" if "nodeOnly" in reason.facts else "cluster"


# --- what was not asked for -----------------------------------------------------------


def _plan_waiting(waiting: WaitingGang) -> GangPlan:
    return GangPlan(
        namespace=waiting.group.namespace,
        name=waiting.group.name,
        uid="",
        verdict=waiting.verdict,
        reasons=waiting.reasons,
    )


def _plan_waiting_claims(work: PlanWork, waiting: WaitingGang) -> Iterator[ClaimPlan]:
    is_error = waiting.verdict == "error"
    for index, pod in enumerate(waiting.pods):
        for name, key in _list_claims(pod):
            found = work.claim(key) if key else None
            if found is not None and found.allocation is not None:
                continue
            yield ClaimPlan(
                namespace=waiting.group.namespace,
                name=key.partition("/")[2] or f"{pod.metadata.name}-{name}",
                uid="" if found is None else found.metadata.uid,
                gang=waiting.group.name,
                member=member_name_of(pod, None),
                index=index,
                claim=name,
                pod=pod.metadata.name,
                node=None,
                verdict=waiting.verdict,
                error_scope="cluster" if is_error else None,
                error=str(waiting.reasons[0]) if is_error else None,
                reasons=waiting.reasons,
            )


def _list_claims(pod: Pod) -> Iterator[tuple[str, str]]:
    """Go through the claims of a pod: names, and keys of those that are known."""
    keys = claim_keys(pod)
    for claim in pod.spec.resource_claims:
        yield claim.name, keys.get(claim.name, "")
