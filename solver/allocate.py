"""The pipeline as one call: a Problem in, a judged Decision out.

Refused gangs keep their reason, gangs that this version cannot decide get one, the
rest is decided, written down and judged; whoever is not in is told why. Nothing
leaves without the judge's consent.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import structs

from contracts.allocation import Reason, Rule
from solver.decision import Decision, GangDecision, Status
from solver.engine import Answer, answer
from solver.errors import JudgedWrongError
from solver.explain.funnel import Funnel
from solver.judge.rules import judge
from solver.problem.demand import Demand, RequestKind, request_kind
from solver.problem.problem import GangPart, Problem
from solver.problem.unmodelled import fields_not_modelled
from solver.results import ClassConfigs, members_allocated
from solver.snapshot.parts import ClassPart


def allocate(problem: Problem) -> Decision:
    """Decide a batch.

    Raises:
        JudgedWrongError: our own answer breaks a rule; nothing may be published.
        VerdictMissingError: the Problem is incomplete.
    """
    decided = Problem(
        problem.pages,
        tuple(_refused_where_unmodelled(problem)),
        problem.selectors,
        problem.parameters,
    )
    found = answer(decided)
    decision = Decision(
        problem=problem.hash,
        status=found.status,
        objective=found.tiers,
        gangs=tuple(_decisions(decided, found)),
        statistics=found.statistics,
    )
    violations = judge(decided, decision)
    if violations:
        raise JudgedWrongError(violations)
    return decision


def _refused_where_unmodelled(problem: Problem) -> Iterator[GangPart]:
    demand = Demand(problem.gangs)
    fields = fields_not_modelled(problem.pages, demand.query, problem.selectors)
    index = {kind: i for i, kind in enumerate(demand.query.requests)}
    for gang in problem.gangs:
        reason = None if gang.refused or not fields else _reason(gang, index, fields)
        if reason is None:
            yield gang
        else:
            yield structs.replace(gang, refused=(reason,), rejected=False)


def _reason(
    gang: GangPart, index: dict[RequestKind, int], fields: dict[int, str]
) -> Reason | None:
    for member in gang.members:
        for claim in member.claims:
            for request in claim.requests:
                field = fields.get(index[request_kind(request)])
                if field is not None:
                    return Reason(
                        rule=Rule.NOT_MODELLED,
                        subject=f"{member.name}/{claim.name}/{request.name}",
                        field=field,
                        message="selects devices that this version cannot decide yet",
                    )
    return None


def _decisions(problem: Problem, found: Answer) -> Iterator[GangDecision]:
    demand = Demand(problem.gangs)
    placed = {demand.gangs[item.gang].uid: item for item in found.placed}
    hopeless = {demand.gangs[index].uid for index in found.hopeless}
    configs = _class_configs(problem)
    funnel = Funnel(problem)
    for gang in problem.gangs:
        bare = GangDecision(uid=gang.uid, namespace=gang.namespace, name=gang.name)
        if gang.refused:
            yield structs.replace(
                bare, reasons=gang.refused, rejected=gang.rejected, failed=True
            )
        elif gang.uid in placed:
            members = members_allocated(gang, placed[gang.uid], configs)
            yield structs.replace(bare, members=members)
        elif found.status is Status.NOT_PROVEN and gang.uid not in hopeless:
            message = "no answer within the work limit"
            reason = Reason(rule=Rule.NOT_PROVEN, message=message)
            yield structs.replace(bare, reasons=(reason,))
        else:
            reasons = funnel.reasons(gang, beaten_by=len(placed))
            faulty = any(r.rule is Rule.SELECTOR_ERROR for r in reasons)
            yield structs.replace(bare, reasons=reasons, failed=faulty)


def _class_configs(problem: Problem) -> ClassConfigs:
    return {
        part.value.name: part.value.config
        for page in problem.pages
        for part in page.parts.values()
        if isinstance(part.value, ClassPart) and part.value.config
    }
