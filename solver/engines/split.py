"""Large batches in which some gangs have rules that span pods, decided in parts.

The direct model has those rules, the pattern engine decides what is large. Priority by
priority, gangs with such rules are placed one by one and the rest by the engine that is
made for it, each on what the other left, in both orders; the better one counts. What
all gangs would be worth without such rules is a bound.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct, structs

from solver.decision import Status
from solver.engines.choose import PATTERN, Decide, Decided, EngineChoice, choose_engine
from solver.engines.direct.search import DirectSearch
from solver.engines.goals import Effort, EngineResult, Goal
from solver.engines.pattern.search import PatternSearch
from solver.engines.taking import take
from solver.engines.tier_values import weight_in
from solver.engines.topology_cost import count_preference_cost
from solver.errors import PatternLimitError
from solver.kinds.counting import has_room
from solver.kinds.demand import Demand
from solver.kinds.gang_rules import POD, spans_pods
from solver.kinds.nodes import find_node_kinds
from solver.kinds.shapes import NodeKind
from solver.placement import GangPlacement
from solver.problem.problem import GangPart, Problem
from solver.tiers import Tier

SPLIT = "split"
REASON = "rules of gangs that span pods, beside others"
WHOLE = 5_000
"""Pods times nodes of a batch that the direct model decides as a whole."""
ONE_WORK = 0.5
"""Deterministic time for one gang whose rules span pods."""


def is_split(demand: Demand, kinds: tuple[NodeKind, ...]) -> bool:
    """Whether a batch is decided in parts: it is large, and patterns know the rest."""
    if not demand.gang_rules or len(demand.gangs) < 2:
        return False
    if demand.query.domains or demand.query.counted:
        return False
    return not is_small(demand, kinds)


def is_small(demand: Demand, kinds: tuple[NodeKind, ...]) -> bool:
    """Whether the direct model decides a batch as a whole."""
    nodes = sum(len(kind.nodes) for kind in kinds)
    return sum(demand.pods) * nodes <= WHOLE


class _Step(Struct, frozen=True):
    """What was decided so far, and the cluster as it is then."""

    problem: Problem
    placements: tuple[GangPlacement, ...] = ()
    pending: int = 0
    """Placements at the end that the cluster does not count yet."""


class _Bound(Struct, frozen=True):
    """What gangs without rules that span pods come to."""

    weights: dict[int, int]
    """Reached, by priority."""
    bounds: dict[Goal, int | None]
    gangs_in: frozenset[int]


class SplitSearch:
    """One batch; `run` it once."""

    def __init__(self, problem: Problem, demand: Demand, decide: Decide) -> None:
        self._problem = problem
        self._demand = demand
        self._gangs = demand.gangs
        self._decide = decide
        self._effort = Effort()

    def run(self) -> Decided:
        """Decide one priority after the other."""
        bound = self._decide_without_rules()
        step, bounds = _Step(self._problem), dict[Goal, int | None]()
        is_bound = bound is not None
        priorities = sorted({gang.priority for gang in self._gangs}, reverse=True)
        for priority in priorities:
            goal: Goal = (Tier.GANGS, priority)
            most = bound.bounds.get(goal) if bound is not None and is_bound else None
            step = self._place_level(step, priority, most, bound)
            bounds[goal] = most
            # A bound below holds for answers that reach what was reached above it.
            reached = self._weigh(step.placements, priority)
            is_kept = bound is not None and bound.weights.get(priority) == reached
            is_bound = is_bound and is_kept
        return self._to_result(step, bounds)

    def _to_result(self, step: _Step, bounds: dict[Goal, int | None]) -> Decided:
        """Say what is proven: all that fits in, first choices, nothing given up."""
        placements = tuple(sorted(step.placements, key=lambda item: item.gang))
        kinds = find_node_kinds(self._problem, self._demand.query)
        cost = count_preference_cost(self._demand, kinds, placements)
        pods = [pod for item in placements for pods in item.members for pod in pods]
        ranks = sum(sum(pod.alternatives) for pod in pods)
        bounds[Tier.ALTERNATIVES, None] = 0 if not ranks else None
        is_proven = not ranks and not cost
        for (tier, priority), most in list(bounds.items()):
            if tier is Tier.GANGS and priority is not None:
                is_proven = is_proven and most == self._weigh(placements, priority)
        result = EngineResult(
            status=Status.OPTIMAL if is_proven else Status.FEASIBLE,
            placements=placements,
            bounds=bounds,
            effort=self._effort,
        )
        return EngineChoice(SPLIT, REASON), result

    def _decide_without_rules(self) -> _Bound | None:
        """Decide as if no gang had rules that span pods; None: that takes long."""
        demand = Demand(map(_without_rules, self._gangs))
        kinds = find_node_kinds(self._problem, demand.query)
        if choose_engine(demand, kinds).engine != PATTERN:
            return None
        try:
            result = PatternSearch(demand, kinds, self._problem.parameters).run()
        except PatternLimitError:
            return None
        self._effort = self._effort.plus(result.effort)
        priorities = {gang.priority for gang in self._gangs}
        return _Bound(
            {p: self._weigh(result.placements, p) for p in priorities},
            result.bounds,
            frozenset(placement.gang for placement in result.placements),
        )

    def _place_level(
        self, step: _Step, priority: int, most: int | None, bound: _Bound | None
    ) -> _Step:
        """Place the gangs of one priority: those with rules first, then last."""
        level = [i for i, gang in enumerate(self._gangs) if gang.priority == priority]
        spanning = [gang for gang in level if spans_pods(self._gangs[gang])]
        rest = [gang for gang in level if not spans_pods(self._gangs[gang])]
        gangs_in = frozenset[int]() if bound is None else bound.gangs_in
        order = sorted(spanning, key=lambda gang: self._urgency(gang, gangs_in))
        first = self._place_rest(self._place_in_turn(step, order), rest)
        everything = sum(self._gangs[gang].weight for gang in level)
        reached = self._weigh(first.placements, priority)
        if not (spanning and rest) or reached in (most, everything):
            return first
        last = self._place_in_turn(self._place_rest(step, rest), order)
        return max((first, last), key=lambda s: self._weigh(s.placements, priority))

    def _urgency(self, gang: int, gangs_in: frozenset[int]) -> tuple[bool, int, int]:
        """Rank a gang: those worth it without rules first, then the largest."""
        return (gang not in gangs_in, -self._gangs[gang].weight, gang)

    def _place_in_turn(self, step: _Step, order: Iterable[int]) -> _Step:
        """Place gangs one by one, each where the direct model finds a place."""
        for gang in order:
            step = self._settle(step)
            demand = Demand((self._gangs[gang],))
            kinds = find_node_kinds(step.problem, demand.query)
            if not has_room(demand, kinds):
                continue
            limited = structs.replace(
                self._problem.parameters, work_limit=ONE_WORK, last_tier=Tier.TOPOLOGY
            )
            result = DirectSearch(demand, kinds, limited).run()
            step = self._take(step, [gang], result)
        return step

    def _place_rest(self, step: _Step, gangs: list[int]) -> _Step:
        """Let the engine that is made for them decide gangs on what is left."""
        if not gangs:
            return step
        step = self._settle(step)
        demand = Demand(self._gangs[gang] for gang in gangs)
        kinds = find_node_kinds(step.problem, demand.query)
        _, result = self._decide(demand, kinds)
        return self._take(step, gangs, result)

    def _take(self, step: _Step, gangs: list[int], result: EngineResult) -> _Step:
        self._effort = self._effort.plus(result.effort)
        if not result.placements:
            return step
        placements = tuple(
            GangPlacement(gangs[item.gang], item.members) for item in result.placements
        )
        return _Step(
            step.problem,
            (*step.placements, *placements),
            step.pending + len(placements),
        )

    def _settle(self, step: _Step) -> _Step:
        """Count in the cluster what was given, before others are asked."""
        if not step.pending:
            return step
        given = step.placements[-step.pending :]
        taken = ((self._gangs[item.gang], item) for item in given)
        return _Step(take(step.problem, taken), step.placements)

    def _weigh(self, placements: Iterable[GangPlacement], priority: int) -> int:
        return weight_in(self._demand, placements, priority)


def _without_rules(gang: GangPart) -> GangPart:
    """Leave out the rules of a gang that span pods."""
    own = tuple(c for c in gang.constraints if c.scope == POD)
    gang = structs.replace(gang, constraints=own, topology=())
    if not gang.separated:
        return gang
    # A shared claim is left out, and pods that have nothing else: patterns are of pods
    # that use something up.
    pods = [
        member
        for number, member in enumerate(gang.members)
        if number not in gang.claim_members
    ]
    using = tuple(member for member in pods if member.claims)
    return structs.replace(gang, members=using or tuple(pods), separated=())
