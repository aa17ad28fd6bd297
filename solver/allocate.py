"""The pipeline as one call: a Problem in, a judged Decision out.

Refused gangs keep their reason, the rest is decided, written down and judged; gangs
that are not in get a reason. Nothing leaves without the judge's consent.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import structs

from contracts.allocation import Reason, Rule
from contracts.ids import GangKey
from solver.decision import Decision, GangDecision, Status
from solver.devices.gather import Cluster
from solver.engines.alone import AloneSearch
from solver.engines.solve import Answer, answer
from solver.errors import JudgedWrongError
from solver.explain.funnel import Funnel
from solver.judge.rules import judge
from solver.kinds.affinity.resolve import resolve_affinity
from solver.kinds.growth import resolve_standing
from solver.kinds.sharing import SharedClaimLayouts
from solver.placement import GangPlacement, PodPlacement
from solver.problem.gang_refusals import find_unmodelled
from solver.problem.gangs import GangPart
from solver.problem.problem import Problem
from solver.results import Results
from solver.stages import stage

NO_MORE = "none of its further pods has a place"


def allocate(problem: Problem) -> Decision:
    """Decide a batch.

    Raises:
        JudgedWrongError: our own answer breaks a rule; nothing may be published.
        VerdictMissingError: the Problem is incomplete.
    """
    # First refuse by name what no engine states; the rest goes to an engine.
    with stage("model"):
        asked = problem.with_gangs(tuple(_refuse_unmodelled(problem)))
        answerable = resolve_standing(resolve_affinity(asked))
        best = answer(answerable)
    # Then write the answer down, with reasons for whoever is not in.
    with stage("results"):
        decision = Decision(
            problem=problem.hash,
            status=best.status,
            objective=best.tiers,
            gangs=tuple(_write_decisions(answerable, best)),
            statistics=best.statistics,
        )
    with stage("judge"):
        violations = judge(answerable, decision)
    if violations:
        raise JudgedWrongError(violations)
    return decision


_WRITTEN_WELL = (
    Rule.CLAIM_SHARED,
    Rule.RESOURCE_QUOTA,
    Rule.QUOTA,
    Rule.QUEUE_CLOSED,
)
"""Who waits for the claim of another, or for quota, is written as it should be."""


def _refuse_unmodelled(problem: Problem) -> Iterator[GangPart]:
    """Yield the gangs; those that no engine can decide are refused, for now."""
    for gang in problem.gangs:
        reason = None if gang.refused else find_unmodelled(gang, problem)
        if reason is None:
            yield gang
        else:
            yield structs.replace(gang, refused=(reason,), rejected=False)


def _write_decisions(problem: Problem, best: Answer) -> Iterator[GangDecision]:
    """Write down each gang's devices, or why it has none."""
    # Engines number the gangs that were not refused beforehand.
    asking = [gang for gang in problem.gangs if not gang.refused]
    placements_by_gang = {
        asking[placement.gang].key: placement for placement in best.placements
    }
    hopeless = {asking[gang].key for gang in best.hopeless}
    cluster = Cluster(problem.pages, problem.parameters.features)
    results = Results(problem, cluster, narrow=True)
    placed = [gang for gang in problem.gangs if gang.key in placements_by_gang]
    funnel = Funnel(problem, placed, AloneSearch(problem).fits)
    layouts = SharedClaimLayouts(problem)
    for gang in problem.gangs:
        undecided = GangDecision(uid=gang.uid, namespace=gang.namespace, name=gang.name)
        if gang.refused:
            failed = any(each.rule not in _WRITTEN_WELL for each in gang.refused)
            yield structs.replace(
                undecided, reasons=gang.refused, rejected=gang.rejected, failed=failed
            )
        elif any(_pods_of(placements_by_gang, gang)):
            members = results.of_gang(gang, placements_by_gang[gang.key])
            yield structs.replace(undecided, members=members)
        elif best.status is Status.NOT_PROVEN and gang.key not in hopeless:
            message = "no answer within the work limit"
            reason = Reason(rule=Rule.NOT_PROVEN, message=message)
            yield structs.replace(undecided, reasons=(reason,))
        elif gang.is_in:
            reason = Reason(rule=Rule.GROWING, message=NO_MORE)
            yield structs.replace(undecided, reasons=(reason,))
        else:
            reasons = funnel.explain(layouts.as_decided(gang).core)
            is_faulty = any(reason.rule is Rule.SELECTOR_ERROR for reason in reasons)
            yield structs.replace(undecided, reasons=reasons, failed=is_faulty)


def _pods_of(
    placements: Mapping[GangKey, GangPlacement], gang: GangPart
) -> tuple[tuple[PodPlacement, ...], ...]:
    """List the pods of a gang that were placed, by member."""
    placement = placements.get(gang.key)
    return () if placement is None else placement.members
