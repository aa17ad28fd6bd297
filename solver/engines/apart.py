"""Batches in which some gangs are for the direct model alone, decided apart from them.

Admin access, devices that several nodes see and pods that use nothing up are beyond
patterns. Gangs that ask for such are placed by the direct model, as many together as it
decides soon, the rest by the engine that is made for it, each on what the other left.
Both orders are tried where not all are in; the better one counts.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence

from msgspec import Struct

from solver.decision import Status
from solver.engines.choose import Decided, EngineChoice, count_pairs, is_small
from solver.engines.direct.part import ONE_WORK, place_part
from solver.engines.goals import Effort, EngineResult, Goal
from solver.engines.taking import take
from solver.engines.tier_values import join_parts, weight_in
from solver.kinds.demand import Demand
from solver.kinds.nodes import find_node_kinds
from solver.kinds.shapes import NodeKind
from solver.placement import GangPlacement
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


class PlacedGangs(Struct, frozen=True):
    """What was decided so far, and the cluster as it is then."""

    problem: Problem
    placements: tuple[GangPlacement, ...] = ()
    effort: Effort = Effort()

    def take(
        self, gangs: Sequence[GangPart], numbers: Sequence[int], result: EngineResult
    ) -> PlacedGangs:
        """Count in the cluster what some gangs were given; `numbers`: theirs."""
        effort = self.effort.plus(result.effort)
        placements = tuple(
            GangPlacement(numbers[item.gang], item.members)
            for item in result.placements
        )
        problem = self.problem
        if placements:
            problem = take(problem, ((gangs[item.gang], item) for item in placements))
        return PlacedGangs(problem, (*self.placements, *placements), effort)


def place_in_turn(
    placed: PlacedGangs, gangs: Sequence[GangPart], order: Iterable[int], nodes: int
) -> PlacedGangs:
    """Place gangs one by one, each where the direct model finds a place."""
    return _place_parts(placed, gangs, ((gang,) for gang in order), nodes)


def place_in_parts(
    placed: PlacedGangs, gangs: Sequence[GangPart], order: Iterable[int], nodes: int
) -> PlacedGangs:
    """Place gangs, as many together as the direct model decides soon."""
    return _place_parts(placed, gangs, _cut(gangs, order, nodes), nodes)


def _place_parts(
    placed: PlacedGangs,
    gangs: Sequence[GangPart],
    parts: Iterable[tuple[int, ...]],
    nodes: int,
) -> PlacedGangs:
    """Place some gangs after the others, until `MOST_WORK` is spent.

    Whoever is left out without a proof is asked alone.
    """
    waiting = deque(parts)
    most = placed.effort.work + MOST_WORK
    while waiting and placed.effort.work < most and not is_stopped():
        part = waiting.popleft()
        placed, is_proven = _place_together(placed, gangs, part)
        # What is given may change what all nodes see: they are read anew each time.
        most -= NODE_WORK * nodes
        if not is_proven and len(part) > 1:
            gangs_in = {item.gang for item in placed.placements}
            missing = [(gang,) for gang in part if gang not in gangs_in]
            waiting.extendleft(reversed(missing))
    return placed


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


def _place_together(
    placed: PlacedGangs, gangs: Sequence[GangPart], part: Sequence[int]
) -> tuple[PlacedGangs, bool]:
    """Place some gangs by one direct model; and whether no more could be in."""
    work_limit = min(ONE_WORK * len(part), PART_WORK)
    asked = (gangs[gang] for gang in part)
    result = place_part(placed.problem, asked, work_limit)
    return placed.take(gangs, part, result), result.status is Status.OPTIMAL


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
        placed, bounds = PlacedGangs(self._problem), dict[Goal, int | None]()
        levels: list[int] = []
        for priority in priorities:
            levels.append(priority)
            if priority in mixed or priority == priorities[-1]:
                placed, bounds_of_levels = self._place_levels(placed, levels)
                bounds |= bounds_of_levels
                levels = []
        return EngineChoice(APART, REASON), join_parts(
            self._demand, self._kinds, placed.placements, bounds, placed.effort
        )

    def _place_levels(
        self, placed: PlacedGangs, priorities: Sequence[int]
    ) -> tuple[PlacedGangs, dict[Goal, int | None]]:
        """Place the gangs of some priorities, and say what no answer exceeds.

        Those beyond patterns are all of the last one.
        """
        gangs = [i for i, g in enumerate(self._gangs) if g.priority in priorities]
        beyond = [gang for gang in gangs if gang in self._beyond]
        beyond.sort(key=lambda gang: (-self._gangs[gang].weight, gang))
        rest = [gang for gang in gangs if gang not in self._beyond]
        after_rest, bounds = self._place_rest(placed, rest)
        best = place_in_parts(after_rest, self._gangs, beyond, self._nodes)
        everybody = len(placed.placements) + len(gangs)
        if beyond and rest and len(best.placements) < everybody:
            # The other order: they come before the rest of their own priority.
            last = priorities[-1]
            above = [gang for gang in rest if self._gangs[gang].priority > last]
            beside = [gang for gang in rest if self._gangs[gang].priority == last]
            other, _ = self._place_rest(placed, above)
            other = place_in_parts(other, self._gangs, beyond, self._nodes)
            other, _ = self._place_rest(other, beside)
            best = max((best, other), key=lambda p: self._weigh(p, priorities))
        weights = {p: self._weight_of(gangs, p) for p in priorities}
        if placed.placements:
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
        self, placed: PlacedGangs, gangs: Sequence[int]
    ) -> tuple[PlacedGangs, dict[Goal, int]]:
        """Let the engine that is made for them decide gangs on what is left."""
        if not gangs:
            return placed, {}
        demand = Demand(
            (self._gangs[gang] for gang in gangs), expected=self._problem.expected
        )
        kinds = find_node_kinds(placed.problem, demand.query)
        _, result = self._decide(placed.problem, demand, kinds)
        known = {goal: b for goal, b in result.bounds.items() if b is not None}
        return placed.take(self._gangs, gangs, result), known

    def _weigh(self, placed: PlacedGangs, priorities: Iterable[int]) -> list[int]:
        return [weight_in(self._demand, placed.placements, p) for p in priorities]

    def _weight_of(self, gangs: Iterable[int], priority: int) -> int:
        asked = (self._gangs[gang] for gang in gangs)
        return sum(gang.weight for gang in asked if gang.priority == priority)
