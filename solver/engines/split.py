"""Large batches in which some gangs have rules that span pods, decided in parts.

What all gangs would be worth without such rules is a bound, and says who should be in.
Priority by priority, those with such rules are placed first: at once where the rules
are about labels of nodes (`domains/`), else one by one by the direct model. Whoever
finds no place is left out, and it is decided anew who should be in. The engine that is
made for the rest decides it on what is left. Where that does not reach the bound, the
rest goes first as well; the better order counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from solver.engines.choose import (
    PATTERN,
    Decide,
    Decided,
    EngineChoice,
    choose_engine,
    is_small,
)
from solver.engines.direct.part import place_part
from solver.engines.domains.search import place_in_domains
from solver.engines.goals import Effort, EngineResult, Goal
from solver.engines.pattern.search import PatternSearch
from solver.engines.taking import take
from solver.engines.tier_values import join_parts, weight_in
from solver.errors import PatternLimitError
from solver.kinds.demand import Demand
from solver.kinds.gang_rules import spans_pods, without_spanning_rules
from solver.kinds.nodes import find_node_kinds
from solver.kinds.shapes import NodeKind
from solver.placement import GangPlacement
from solver.problem.problem import Problem
from solver.stopping import is_stopped
from solver.tiers import Tier

SPLIT = "split"
REASON = "rules of gangs that span pods, beside others"
PACKING_WORK = 2.0
"""Deterministic time for all that are placed at once."""
MOST_ALONE = 64
"""Gangs that are placed one by one though they found no place at once."""
ROUNDS = 4
"""How often it is decided who should be in."""


def is_split(demand: Demand, kinds: tuple[NodeKind, ...]) -> bool:
    """Whether a batch is decided in parts: it is large, and patterns know the rest."""
    if not demand.gang_rules or len(demand.gangs) < 2:
        return False
    if demand.query.domains or demand.query.counted:
        return False
    return not is_small(demand, kinds)


class _Step(Struct, frozen=True):
    """What was decided so far, and the cluster as it is then."""

    problem: Problem
    placements: tuple[GangPlacement, ...] = ()
    pending: int = 0
    """Placements at the end that the cluster does not count yet."""


class _Bound(Struct, frozen=True):
    """What gangs without rules that span pods come to."""

    weights: Mapping[int, int]
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
        everybody = range(len(self._gangs))
        bound = self._decide_without_rules(self._problem, everybody)
        step, bounds = _Step(self._problem), dict[Goal, int | None]()
        is_bound = bound is not None
        priorities = sorted({gang.priority for gang in self._gangs}, reverse=True)
        for priority in priorities:
            goal: Goal = (Tier.GANGS, priority)
            # No answer has more in than all gangs.
            weights = (g.weight for g in self._gangs if g.priority == priority)
            most: int | None = sum(weights)
            if bound is not None and is_bound and bound.bounds.get(goal) is not None:
                most = bound.bounds[goal]
            step = self._place_level(step, priority, most, bound)
            bounds[goal] = most
            # A bound below holds for answers that reach what was reached above it.
            reached = self._weigh(step.placements, priority)
            is_kept = bound is not None and bound.weights.get(priority, 0) == reached
            is_bound = is_bound and is_kept
        kinds = find_node_kinds(self._problem, self._demand.query)
        return EngineChoice(SPLIT, REASON), join_parts(
            self._demand, kinds, step.placements, bounds, self._effort
        )

    def _decide_without_rules(
        self, problem: Problem, gangs: Sequence[int]
    ) -> _Bound | None:
        """Decide as if no gang had rules that span pods; None: that takes long."""
        demand = Demand(without_spanning_rules(self._gangs[gang]) for gang in gangs)
        kinds = find_node_kinds(problem, demand.query)
        if choose_engine(demand, kinds).engine != PATTERN:
            return None
        try:
            result = PatternSearch(demand, kinds, problem.parameters).run()
        except PatternLimitError:
            return None
        self._effort = self._effort.plus(result.effort)
        gangs_in = frozenset(gangs[placement.gang] for placement in result.placements)
        weights = Counter[int]()
        for gang in gangs_in:
            weights[self._gangs[gang].priority] += self._gangs[gang].weight
        return _Bound(weights, result.bounds, gangs_in)

    def _place_level(
        self, step: _Step, priority: int, most: int | None, bound: _Bound | None
    ) -> _Step:
        """Place the gangs of one priority: those with rules first, then last."""
        level = [i for i, gang in enumerate(self._gangs) if gang.priority == priority]
        spanning = [gang for gang in level if spans_pods(self._gangs[gang])]
        rest = [gang for gang in level if not spans_pods(self._gangs[gang])]
        enough = (most, sum(self._gangs[gang].weight for gang in level))
        chosen, has_all = self._place_chosen(step, spanning, rest, bound)
        answers = [self._place_others(chosen, spanning, rest)]
        if self._weigh(answers[0].placements, priority) in enough:
            return answers[0]
        if spanning and rest and not has_all:
            after = self._place_rest(step, rest)
            answers.append(self._place_spanning(after, spanning, work=0))
        return max(answers, key=lambda s: self._weigh(s.placements, priority))

    def _place_others(self, step: _Step, spanning: list[int], rest: list[int]) -> _Step:
        """Place those without rules that span pods, then whoever found no place yet."""
        gangs_in = {placement.gang for placement in step.placements}
        left = [gang for gang in spanning if gang not in gangs_in]
        return self._place_spanning(self._place_rest(step, rest), left, work=0)

    def _place_chosen(
        self, step: _Step, spanning: list[int], rest: list[int], bound: _Bound | None
    ) -> tuple[_Step, bool]:
        """Place those with rules that should be in; whether all found a place at once.

        Whoever finds none is left out, and who should be in is decided anew.
        """
        candidates, best = list(spanning), step
        if bound is None:
            return self._place_spanning(step, spanning), False
        for number in range(ROUNDS):
            if number and is_stopped():
                break
            if number:
                settled = self._settle(step)
                bound = self._decide_without_rules(settled.problem, candidates + rest)
            if bound is None:
                break
            wanted = [gang for gang in candidates if gang in bound.gangs_in]
            best = self._place_spanning(step, wanted)
            gangs_in = {placement.gang for placement in best.placements}
            without = set(wanted) - gangs_in
            if not without:
                return best, not number
            candidates = [gang for gang in candidates if gang not in without]
        return best, False

    def _place_spanning(
        self, step: _Step, gangs: list[int], *, work: float = PACKING_WORK
    ) -> _Step:
        """Place gangs with rules: at once, then those left over one by one.

        `work` may be spent on choosing domains; with none, no gang is tried again.
        """
        if not gangs:
            return step
        step = self._settle(step)
        asked = [self._gangs[gang] for gang in gangs]
        placed = place_in_domains(step.problem, asked, work_limit=work)
        self._effort = self._effort.plus(Effort(work=placed.work))
        step = self._add(step, gangs, placed.placements)
        others = {gangs[number] for number in placed.others}
        gangs_in = {placement.gang for placement in step.placements}
        order = sorted(gangs, key=lambda gang: (-self._gangs[gang].weight, gang))
        missing = [gang for gang in order if gang not in gangs_in | others]
        alone = [gang for gang in order if gang in others]
        return self._place_in_turn(step, alone + missing[: MOST_ALONE if work else 0])

    def _place_in_turn(self, step: _Step, order: Iterable[int]) -> _Step:
        """Place gangs one by one, each where the direct model finds a place."""
        for gang in order:
            if is_stopped():
                break
            step = self._settle(step)
            found = place_part(step.problem, (self._gangs[gang],))
            step = self._take(step, [gang], found)
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
        return self._add(step, gangs, result.placements)

    def _add(
        self, step: _Step, gangs: list[int], found: tuple[GangPlacement, ...]
    ) -> _Step:
        if not found:
            return step
        placements = tuple(
            GangPlacement(gangs[item.gang], item.members) for item in found
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
