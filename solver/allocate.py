"""The pipeline as one call: a Problem in, a judged Decision out.

Refused gangs keep their reason, the rest is decided, written down and judged; whoever
is not in is told why. Nothing leaves without the judge's consent.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import structs

from contracts.allocation import Reason, Rule
from solver.decision import Decision, GangDecision, Status
from solver.devices.gather import Cluster
from solver.engines.solve import Answer, answer
from solver.errors import JudgedWrongError
from solver.explain.funnel import Funnel
from solver.judge.rules import judge
from solver.kinds.demand import Demand
from solver.problem.problem import GangPart, Problem
from solver.problem.unmodelled import reason_not_modelled
from solver.results import Results


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
        problem.expected,
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
    for gang in problem.gangs:
        reason = None if gang.refused else reason_not_modelled(gang, problem)
        if reason is None:
            yield gang
        else:
            yield structs.replace(gang, refused=(reason,), rejected=False)


def _decisions(problem: Problem, found: Answer) -> Iterator[GangDecision]:
    demand = Demand(problem.gangs)
    placed = {demand.gangs[item.gang].uid: item for item in found.placements}
    hopeless = {demand.gangs[index].uid for index in found.hopeless}
    cluster = Cluster(problem.pages, problem.parameters.features)
    results = Results(problem, cluster, narrow=True)
    funnel = Funnel(problem)
    for gang in problem.gangs:
        bare = GangDecision(uid=gang.uid, namespace=gang.namespace, name=gang.name)
        if gang.refused:
            yield structs.replace(
                bare, reasons=gang.refused, rejected=gang.rejected, failed=True
            )
        elif gang.uid in placed:
            members = results.gang(gang, placed[gang.uid])
            yield structs.replace(bare, members=members)
        elif found.status is Status.NOT_PROVEN and gang.uid not in hopeless:
            message = "no answer within the work limit"
            reason = Reason(rule=Rule.NOT_PROVEN, message=message)
            yield structs.replace(bare, reasons=(reason,))
        else:
            reasons = funnel.reasons(gang, beaten_by=len(placed))
            faulty = any(r.rule is Rule.SELECTOR_ERROR for r in reasons)
            yield structs.replace(bare, reasons=reasons, failed=faulty)
