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

from solver.decision import Status
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
from solver.engines.progress import Progress
from solver.engines.tier_values import join_parts, weight_in
from solver.errors import PatternLimitError
from solver.kinds.demand import Demand
from solver.kinds.gang_rules import spans_pods, without_spanning_rules
from solver.kinds.nodes import find_node_kinds
from solver.kinds.shapes import NodeKind
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
        """Of what is decided without rules that span pods."""

    def run(self) -> Decided:
        """Decide one priority after the other."""
        everybody = range(len(self._gangs))
        bound = self._decide_without_rules(self._problem, everybody)
        progress = Progress(self._problem, self._gangs)
        bounds = dict[Goal, int | None]()
        is_bound = bound is not None
        priorities = sorted({gang.priority for gang in self._gangs}, reverse=True)
        for priority in priorities:
            goal: Goal = (Tier.GANGS, priority)
            # No answer has more in than all gangs.
            weights = (g.weight for g in self._gangs if g.priority == priority)
            most: int | None = sum(weights)
            if bound is not None and is_bound and bound.bounds.get(goal) is not None:
                most = bound.bounds[goal]
            progress = self._place_level(progress, priority, most, bound)
            bounds[goal] = most
            # A bound below holds for answers that reach what was reached above it.
            reached = self._weigh(progress, priority)
            is_kept = bound is not None and bound.weights.get(priority, 0) == reached
            is_bound = is_bound and is_kept
        kinds = find_node_kinds(self._problem, self._demand.query)
        effort = self._effort.plus(progress.effort)
        return EngineChoice(SPLIT, REASON), join_parts(
            self._demand, kinds, progress.placements, bounds, effort
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
        self, before: Progress, priority: int, most: int | None, bound: _Bound | None
    ) -> Progress:
        """Place the gangs of one priority: those with rules first, then last."""
        level = [i for i, gang in enumerate(self._gangs) if gang.priority == priority]
        spanning = [gang for gang in level if spans_pods(self._gangs[gang])]
        rest = [gang for gang in level if not spans_pods(self._gangs[gang])]
        enough = (most, sum(self._gangs[gang].weight for gang in level))
        chosen, has_all = self._place_chosen(before, spanning, rest, bound)
        best = self._place_others(chosen, spanning, rest)
        is_enough = self._weigh(best, priority) in enough
        if is_enough or has_all or not (spanning and rest):
            return best
        other = self._place_rest(best.back_to(before), rest)
        other = self._place_spanning(other, spanning, work=0)
        best = max((best, other), key=lambda p: self._weigh(p, priority))
        return other.back_to(best)

    def _place_others(
        self, progress: Progress, spanning: list[int], rest: list[int]
    ) -> Progress:
        """Place those without rules that span pods, then whoever found no place yet."""
        left = [gang for gang in spanning if gang not in progress.gangs_in]
        return self._place_spanning(self._place_rest(progress, rest), left, work=0)

    def _place_chosen(
        self,
        before: Progress,
        spanning: list[int],
        rest: list[int],
        bound: _Bound | None,
    ) -> tuple[Progress, bool]:
        """Place those with rules that should be in; whether all found a place at once.

        Whoever finds none is left out, and who should be in is decided anew.
        """
        before = before.occupy()
        candidates, best = list(spanning), before
        if bound is None:
            return self._place_spanning(before, spanning), False
        for number in range(ROUNDS):
            if number and is_stopped():
                break
            if number:
                asked = candidates + rest
                bound = self._decide_without_rules(before.problem, asked)
            if bound is None:
                break
            wanted = [gang for gang in candidates if gang in bound.gangs_in]
            best = self._place_spanning(best.back_to(before), wanted)
            without = set(wanted) - best.gangs_in
            if not without:
                return best, not number
            candidates = [gang for gang in candidates if gang not in without]
        return best, False

    def _place_spanning(
        self, progress: Progress, gangs: list[int], *, work: float = PACKING_WORK
    ) -> Progress:
        """Place gangs with rules: at once, then those left over one by one.

        `work` may be spent on choosing domains; with none, no gang is tried again.
        """
        if not gangs:
            return progress
        progress = progress.occupy()
        asked = [self._gangs[gang] for gang in gangs]
        placed = place_in_domains(progress.problem, asked, work_limit=work)
        progress = progress.add(
            gangs,
            EngineResult(
                status=Status.FEASIBLE,
                placements=placed.placements,
                effort=Effort(work=placed.work),
            ),
        )
        others = {gangs[number] for number in placed.others}
        order = sorted(gangs, key=lambda gang: (-self._gangs[gang].weight, gang))
        missing = [gang for gang in order if gang not in progress.gangs_in | others]
        alone = [gang for gang in order if gang in others]
        return self._place_in_turn(
            progress, alone + missing[: MOST_ALONE if work else 0]
        )

    def _place_in_turn(self, progress: Progress, order: Iterable[int]) -> Progress:
        """Place gangs one by one, each where the direct model finds a place."""
        for gang in order:
            if is_stopped():
                break
            progress = progress.occupy()
            found = place_part(progress.problem, (self._gangs[gang],))
            progress = progress.add([gang], found)
        return progress

    def _place_rest(self, progress: Progress, gangs: list[int]) -> Progress:
        """Let the engine that is made for them decide gangs on what is left."""
        if not gangs:
            return progress
        progress = progress.occupy()
        demand = Demand(self._gangs[gang] for gang in gangs)
        kinds = find_node_kinds(progress.problem, demand.query)
        _, result = self._decide(demand, kinds)
        return progress.add(gangs, result)

    def _weigh(self, progress: Progress, priority: int) -> int:
        return weight_in(self._demand, progress.placements, priority)
