"""Batches in which some gangs are for the direct model alone, decided apart from them.

Admin access, devices that several nodes see and pods that use nothing up are beyond
patterns. Gangs that ask for such are placed by the direct model, as many together as it
decides soon, the rest by the engine that is made for it, each on what the other left.
Both orders are tried where not all are in; the better one counts.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence

from solver.decision import Status
from solver.engines.choose import Decided, EngineChoice, count_pairs, is_small
from solver.engines.direct.part import ONE_WORK, place_part
from solver.engines.goals import Goal
from solver.engines.progress import Progress
from solver.engines.tier_values import join_parts, weight_in
from solver.kinds.demand import Demand
from solver.kinds.nodes import find_node_kinds
from solver.kinds.shapes import NodeKind
from solver.problem.gangs import GangPart
from solver.problem.problem import Problem
from solver.stopping import is_stopped
from solver.tiers import Tier

APART = "apart"
REASON = "some gangs are for the direct model alone"
MOST_ALIKE = 200_000
"""Pods times nodes of a batch that the direct model decides as a whole, where all gangs
are for it."""
TOGETHER = 50_000
"""The same of gangs for the direct model that it decides together."""
PART_WORK = 2.0
"""Deterministic time for several together, at most."""
MOST_WORK = 8.0
"""And for all gangs that the direct model is asked about in one order."""
NODE_WORK = 5e-5
"""So much of it is spent on each node each time."""
DecideRest = Callable[[Problem, Demand, tuple[NodeKind, ...]], Decided]
"""Decides gangs that are not beyond patterns."""


def is_apart(
    demand: Demand, kinds: tuple[NodeKind, ...], beyond: frozenset[int]
) -> bool:
    """Whether the gangs beyond patterns are decided apart: the batch is large."""
    if not beyond or len(demand.gangs) < 2 or is_small(demand, kinds):
        return False
    if len(beyond) == len(demand.gangs) and count_pairs(demand, kinds) <= MOST_ALIKE:
        return False
    return can_be_apart(demand)


def can_be_apart(demand: Demand) -> bool:
    """Whether gangs may be decided one after the other.

    Not where pods have rules about each other: what was placed is no pod yet. Nor where
    gangs may have extra pods, which come after all gangs.
    """
    rules = demand.query.domains or demand.query.counted
    return not rules and not demand.is_elastic


def place_in_turn(progress: Progress, order: Iterable[int], nodes: int) -> Progress:
    """Place gangs one by one, each where the direct model finds a place."""
    return _place_parts(progress, ((gang,) for gang in order), nodes)


def place_in_parts(progress: Progress, order: Iterable[int], nodes: int) -> Progress:
    """Place gangs, as many together as the direct model decides soon."""
    return _place_parts(progress, _cut(progress.gangs, order, nodes), nodes)


def _place_parts(
    progress: Progress, parts: Iterable[tuple[int, ...]], nodes: int
) -> Progress:
    """Place some gangs after the others, until `MOST_WORK` is spent.

    Whoever is left out without a proof is asked alone.
    """
    waiting = deque(parts)
    most = progress.effort.work + MOST_WORK
    while waiting and progress.effort.work < most and not is_stopped():
        part = waiting.popleft()
        progress, is_proven = _place_together(progress, part)
        # What is given may change what all nodes see: they are read anew each time.
        most -= NODE_WORK * nodes
        if not is_proven and len(part) > 1:
            gangs_in = progress.gangs_in
            missing = [(gang,) for gang in part if gang not in gangs_in]
            waiting.extendleft(reversed(missing))
    return progress


def _cut(
    gangs: Sequence[GangPart], order: Iterable[int], nodes: int
) -> Iterator[tuple[int, ...]]:
    """Cut gangs into parts that follow each other, each small enough or one gang."""
    part: list[int] = []
    pods = 0
    for gang in order:
        pods += gangs[gang].pods
        if part and pods * nodes > TOGETHER:
            yield tuple(part)
            part, pods = [], gangs[gang].pods
        part.append(gang)
    if part:
        yield tuple(part)


def _place_together(progress: Progress, part: Sequence[int]) -> tuple[Progress, bool]:
    """Place some gangs by one direct model; and whether no more could be in."""
    progress = progress.occupy()
    work_limit = min(ONE_WORK * len(part), PART_WORK)
    asked = (progress.gangs[gang] for gang in part)
    result = place_part(progress.problem, asked, work_limit)
    return progress.add(part, result), result.status is Status.OPTIMAL


class ApartSearch:
    """One batch; `run` it once."""

    def __init__(
        self,
        problem: Problem,
        demand: Demand,
        kinds: tuple[NodeKind, ...],
        beyond: frozenset[int],
        decide: DecideRest,
    ) -> None:
        """`beyond`: the gangs that the direct model places."""
        self._problem = problem
        self._demand = demand
        self._gangs = demand.gangs
        self._kinds = kinds
        self._nodes = sum(len(kind.nodes) for kind in kinds)
        self._beyond = beyond
        self._decide = decide

    def run(self) -> Decided:
        """Decide some levels after the other, each time down to one with such gangs."""
        priorities = sorted({gang.priority for gang in self._gangs}, reverse=True)
        mixed = {self._gangs[gang].priority for gang in self._beyond}
        progress = Progress(self._problem, self._gangs)
        bounds = dict[Goal, int | None]()
        levels: list[int] = []
        for priority in priorities:
            levels.append(priority)
            if priority in mixed or priority == priorities[-1]:
                progress, bounds_of_levels = self._place_levels(progress, levels)
                bounds |= bounds_of_levels
                levels = []
        return EngineChoice(APART, REASON), join_parts(
            self._demand, self._kinds, progress.placements, bounds, progress.effort
        )

    def _place_levels(
        self, before: Progress, priorities: Sequence[int]
    ) -> tuple[Progress, dict[Goal, int | None]]:
        """Place the gangs of some priorities, and say what no answer exceeds.

        Those beyond patterns are all of the last one.
        """
        gangs = [i for i, g in enumerate(self._gangs) if g.priority in priorities]
        beyond = [gang for gang in gangs if gang in self._beyond]
        beyond.sort(key=lambda gang: (-self._gangs[gang].weight, gang))
        rest = [gang for gang in gangs if gang not in self._beyond]
        after_rest, bounds = self._place_rest(before, rest)
        best = place_in_parts(after_rest, beyond, self._nodes)
        everybody = len(before.placements) + len(gangs)
        if beyond and rest and len(best.placements) < everybody:
            # The other order: they come before the rest of their own priority.
            last = priorities[-1]
            above = [gang for gang in rest if self._gangs[gang].priority > last]
            beside = [gang for gang in rest if self._gangs[gang].priority == last]
            other, _ = self._place_rest(best.back_to(before), above)
            other = place_in_parts(other, beyond, self._nodes)
            other, _ = self._place_rest(other, beside)
            best = max((best, other), key=lambda p: self._weigh(p, priorities))
            best = other.back_to(best)
        weights = {p: self._weight_of(gangs, p) for p in priorities}
        if before.placements:
            # What is left by one answer bounds no other.
            return best, {(Tier.GANGS, p): weights[p] for p in priorities}
        return best, {
            (Tier.GANGS, p): min(
                weights[p],
                bounds.get((Tier.GANGS, p), weights[p]) + self._weight_of(beyond, p),
            )
            for p in priorities
        }

    def _place_rest(
        self, progress: Progress, gangs: Sequence[int]
    ) -> tuple[Progress, dict[Goal, int]]:
        """Let the engine that is made for them decide gangs on what is left."""
        if not gangs:
            return progress, {}
        progress = progress.occupy()
        demand = Demand(
            (self._gangs[gang] for gang in gangs), expected=self._problem.expected
        )
        kinds = find_node_kinds(progress.problem, demand.query)
        _, result = self._decide(progress.problem, demand, kinds)
        known = {goal: b for goal, b in result.bounds.items() if b is not None}
        return progress.add(gangs, result), known

    def _weigh(self, progress: Progress, priorities: Iterable[int]) -> list[int]:
        return [weight_in(self._demand, progress.placements, p) for p in priorities]

    def _weight_of(self, gangs: Iterable[int], priority: int) -> int:
        asked = (self._gangs[gang] for gang in gangs)
        return sum(gang.weight for gang in asked if gang.priority == priority)
