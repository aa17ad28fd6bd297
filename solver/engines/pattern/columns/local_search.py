"""One local search: propose a part of an answer, decide it anew, keep what is as good.

CP-SAT is good at small parts of an answer and lost in large ones (large neighborhood
search). What is proposed, and when to give up, is a matter of the neighborhoods. An
answer may be short of places where these have a cost: one that misses a place for a
single pod is worth a whole gang less otherwise, and small steps lead nowhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from solver.engines.pattern.columns.budget import Budget
from solver.engines.pattern.columns.incumbent import Incumbent, keeps_floors
from solver.engines.pattern.columns.integer_master import (
    IntegerMaster,
    Solution,
    count_short,
    evaluate,
)
from solver.engines.pattern.columns.master_data import MasterData
from solver.engines.pattern.columns.objective import Floor, Objective
from solver.engines.pattern.columns.pricing import Pattern

BELOW_FLOORS = 1 << 60
"""The shortage of an answer that is worth too little."""


class Neighborhood(Struct, frozen=True):
    """What is decided anew."""

    patterns_by_class: dict[int, list[Pattern]]
    gangs: frozenset[int]
    """Gang kinds."""
    work: float
    """What this may take."""
    is_whole: bool = False
    """True if it is of all gangs and of all patterns that are known."""


class PartialSolution(Struct, frozen=True):
    """A solution but for some pods that may have no place."""

    solution: Solution
    shortage: int = 0
    """What the pods without a place cost."""
    value: int = 0
    """What is made larger."""
    short_gangs: tuple[int, ...] = ()
    """Gang kinds with pods of those kinds."""


class Neighborhoods(Protocol):
    """Proposes what is decided anew."""

    def propose(self, current: PartialSolution) -> Neighborhood | None:
        """Propose the next part of an answer; None: give up."""
        ...

    def report(
        self, current: PartialSolution, *, is_better: bool, spent: float
    ) -> None:
        """Hear what came of it; `spent`: share of the work that it might take."""
        ...


class NeighborhoodSearch:
    """What is better than what, for `run`."""

    def __init__(
        self,
        data: MasterData,
        incumbent: Incumbent,
        *,
        costs: Sequence[int] = (),
        worth: int | None = None,
    ) -> None:
        """`incumbent`: gets every answer that is short of no place.

        `costs`: of a pod without a place, by member kind, in half-units; empty: every
        pod has one. `worth`: what is kept, so that only the shortage is made less.
        """
        self._data = data
        self._incumbent = incumbent
        self._costs = tuple(costs)
        self._floors = incumbent.floors
        self._objective: Objective | None = incumbent.objective
        self._unit = 2 if costs else 1
        self._most = self._unit * incumbent.bound
        """What no answer exceeds."""
        if worth is not None:
            self._floors = (*self._floors, Floor(incumbent.objective, worth))
            self._objective, self._most = None, 0

    def run(
        self,
        start: Solution,
        neighborhoods: Neighborhoods,
        budget: Budget,
        until: float,
    ) -> PartialSolution:
        """Improve until nothing can be better, or so little of the budget remains."""
        current = self._offer(self.measure(start))
        while current.value < self._most and (before := budget.remaining) > until:
            neighborhood = neighborhoods.propose(current)
            if neighborhood is None:
                break
            limit = min(neighborhood.work, before - until)
            found, bound = self._decide(current, neighborhood, budget, limit)
            is_better = found.value > current.value
            # What is only as good is kept, too: the next part may gain by it.
            if found.value >= current.value:
                current = self._offer(found)
            if neighborhood.is_whole and bound <= current.value:
                break
            spent = (before - budget.remaining) / limit
            neighborhoods.report(current, is_better=is_better, spent=spent)
        return current

    def _offer(self, found: PartialSolution) -> PartialSolution:
        if not found.shortage:
            self._incumbent.offer(found.solution)
        return found

    def measure(self, solution: Solution) -> PartialSolution:
        """Measure what a solution is short of, and what it is worth in all."""
        short = count_short(self._data, solution)
        shortage = sum(c * pods for c, pods in zip(self._costs, short, strict=False))
        if not keeps_floors(solution, self._floors):
            shortage = BELOW_FLOORS
        value = -shortage
        if self._objective is not None:
            value += self._unit * evaluate(self._objective, solution)
        short_gangs = tuple(
            g
            for g, kind in enumerate(self._data.gangs)
            if any(short[member] > 0 for member, _ in kind.members)
        )
        return PartialSolution(solution, shortage, value, short_gangs)

    def _decide(
        self,
        current: PartialSolution,
        neighborhood: Neighborhood,
        budget: Budget,
        limit: float,
    ) -> tuple[PartialSolution, int]:
        """Decide a neighborhood anew, with a bound on what it can come to."""
        master = IntegerMaster(
            self._data,
            neighborhood.patterns_by_class,
            current.solution,
            free_gangs=neighborhood.gangs,
            shortage_costs=self._costs,
        )
        master.add_floors(self._floors)
        result = master.solve(self._objective, self._incumbent.bound, budget, limit)
        if result.solution is None:
            return current, result.bound
        return self.measure(result.solution), result.bound
