"""From a Decision to the Plan that is printed, in the order of the input. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from contracts.allocation import Reason
from contracts.claim import ResourceClaimConsumerReference
from contracts.gang import MemberClaim
from contracts.ids import object_key
from contracts.messages import MemberAllocated
from moorings.plan.plan import ClaimPlan, GangPlan, Plan, PlanStatistics, PodPlan
from moorings.plan.work import PlanWork
from solver.decision import Decision, GangDecision
from solver.problem.problem import GangPart, MemberPart, Problem
from solver.results import claim_ref
from solver.snapshot.parts import NodePart, PoolPart


def make_plan(
    work: PlanWork,
    problem: Problem,
    decision: Decision,
    *,
    evaluations: int,
    seconds: tuple[float, float],
) -> Plan:
    """Write the answer down; `seconds` are those of the solve and of everything."""
    decisions = {gang.uid: gang for gang in decision.gangs}
    parts = {gang.uid: gang for gang in problem.gangs}
    uids = [gang.metadata.uid for gang in work.gangs]
    pairs = [(parts[uid], decisions[uid]) for uid in uids]  # type: ignore[index]  # uids of this work
    values = [part.value for page in problem.pages for part in page.parts()]
    pools = [value for value in values if isinstance(value, PoolPart)]
    nodes = {value.name for value in values if isinstance(value, NodePart)}
    statistics = decision.statistics
    return Plan(
        status=str(decision.status),
        objective=decision.objective,
        claims=tuple(
            claim for part, gang in pairs for claim in _plan_claims(work, part, gang)
        ),
        gangs=tuple(_plan_gang(gang) for _, gang in pairs),
        stats=PlanStatistics(
            devices=sum(len(pool.devices) for pool in pools),
            nodes=len(nodes | {pool.node for pool in pools if pool.node}),
            device_kinds=statistics.device_kinds,
            node_kinds=statistics.node_kinds,
            engine=statistics.engine,
            engine_reason=statistics.engine_reason,
            patterns=statistics.patterns,
            selector_evaluations=evaluations,
            solve_seconds=round(seconds[0], 6),
            total_seconds=round(seconds[1], 6),
        ),
        problem_hash=problem.hash,
    )


def _plan_gang(gang: GangDecision) -> GangPlan:
    return GangPlan(
        namespace=gang.namespace,
        name=gang.name,
        uid=gang.uid,
        verdict=gang.verdict,
        members=tuple(
            PodPlan(name=member.member, index=member.index, node=member.node)
            for member in gang.members
        ),
        reasons=gang.reasons,
    )


def _plan_claims(
    work: PlanWork, part: GangPart, gang: GangDecision
) -> Iterator[ClaimPlan]:
    if gang.members:
        for member in gang.members:
            yield from _plan_allocated(work, gang, member)
    else:
        yield from _plan_unallocated(work, part, gang)


def _plan_unallocated(
    work: PlanWork, part: GangPart, gang: GangDecision
) -> Iterator[ClaimPlan]:
    """Write down the claims of a gang that is not in, all for one reason."""
    reason = gang.reasons[0]
    error = str(reason) if gang.verdict == "error" else None
    submitted = next(g for g in work.gangs if g.metadata.uid == part.uid)
    resolved_members = {member.name: member for member in part.members}
    for member in submitted.spec.members:
        resolved = resolved_members.get(member.name)
        for index in range(member.count):
            for claim in member.claims:
                name, uid = _name_claim(part, resolved, index, claim)
                yield ClaimPlan(
                    namespace=gang.namespace,
                    name=name or f"{gang.name}-{member.name}-{index}-{claim.name}",
                    uid=uid,
                    gang=gang.name,
                    member=member.name,
                    index=index,
                    claim=claim.name,
                    node=None,
                    verdict=gang.verdict,
                    error_scope=_find_error_scope(reason)
                    if error is not None
                    else None,
                    error=error,
                    reasons=gang.reasons,
                )


def _name_claim(
    part: GangPart, member: MemberPart | None, index: int, claim: MemberClaim
) -> tuple[str, str]:
    """Return name and uid of a claim as far as it has them; `member` is resolved."""
    name, uid = claim.claim_name or "", ""
    if member is not None:
        for resolved in member.claims:
            if resolved.name == claim.name:
                ref = claim_ref(part, member, index, resolved)
                name, uid = ref.name, ref.uid
    return name, uid


def _find_error_scope(reason: Reason) -> str:
    """Return how far an error reaches: the node, the cluster, or this attempt."""
    if "aborted" in reason.facts:
        return "aborted"
    return "node" if "nodeOnly" in reason.facts else "cluster"


def _plan_allocated(
    work: PlanWork, gang: GangDecision, member: MemberAllocated
) -> Iterator[ClaimPlan]:
    for claim in member.claims:
        ref = claim.ref
        consumers: tuple[ResourceClaimConsumerReference, ...] = work.consumers.get(
            object_key(ref.namespace, ref.name), ()
        )
        yield ClaimPlan(
            namespace=ref.namespace,
            name=ref.name,
            uid=ref.uid,
            gang=gang.name,
            member=member.member,
            index=member.index,
            claim=claim.claim,
            node=member.node,
            verdict="allocated",
            allocation=claim.allocation,
            reserved_for=consumers,
        )
