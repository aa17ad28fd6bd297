"""Patterns for a neighborhood: priced with all other nodes as they are.

Prices of all nodes at once find patterns for a cluster that may split every node. Some
classes alone, between others that are settled, need patterns of their own: those that
go with what the others give.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from solver.engines.glop import Program
from solver.engines.pattern.columns.master import SCALE, perturb
from solver.engines.pattern.columns.model import PatternModel
from solver.engines.pattern.columns.objective import Floor, Objective
from solver.engines.pattern.columns.pricing import Pattern, Prices

ROUNDS = 12
"""Times that prices are asked at most."""
PERTURBATIONS, PERTURBED_PERCENT = 6, 15
"""Times that prices are varied afterwards, and by how many percent at most."""
MOST_PRICINGS = ROUNDS + PERTURBATIONS
WITHOUT_PLACE = 10.0
"""What a pod without a place costs, by what it is worth."""
ENOUGH = 1e-3
"""What a pattern must earn beyond its node to be of use."""


class LocalResult(Struct, frozen=True):
    """What some classes could do while all others stay."""

    worth: float
    """Of the gangs that could be in, with fractions, less pods without a place."""
    patterns_by_class: dict[int, list[Pattern]]
    """The most useful first."""


class LocalMaster:
    """Column generation for some classes and all gangs; call `run` once.

    All objectives must be of gangs only.
    """

    def __init__(
        self,
        model: PatternModel,
        objective: Objective,
        floors: Sequence[Floor],
        supply: Sequence[int],
        patterns_by_class: Mapping[int, Sequence[Pattern]],
    ) -> None:
        """`supply`: pods that all other classes have places for, by member kind.

        `patterns_by_class`: of the classes that are free, to begin with.
        """
        data = model.data
        # The rows: nodes of each class, then pods of each member kind, then floors.
        self._row_of = {owner: row for row, owner in enumerate(patterns_by_class)}
        self._first_member_row = len(self._row_of)
        self._first_floor_row = self._first_member_row + data.members
        self._program = Program(
            [
                *((None, float(data.sizes[owner])) for owner in self._row_of),
                *((-float(pods), None) for pods in supply),
                *((float(floor.value), None) for floor in floors),
            ]
        )
        # The columns: gangs, which take pods, and patterns, which supply them. Pods
        # without a place let floors be kept before there are patterns for them.
        for g, kind in enumerate(data.gangs):
            entries = [
                (self._first_member_row + m, -float(pods)) for m, pods in kind.members
            ]
            for number, floor in enumerate(floors):
                worth = float(floor.objective.gangs[g])
                entries.append((self._first_floor_row + number, worth))
            most = float(data.available[g])
            self._program.add(float(objective.gangs[g]), entries, most)
        for member, price in enumerate(model.first_prices):
            cost = WITHOUT_PLACE * max(1.0, price / SCALE)
            self._program.add(-cost, [(self._first_member_row + member, 1.0)], None)
        self._pricing = model.pricing.among(tuple(self._row_of))
        self._columns: dict[tuple[int, Pattern], None] = {}
        for owner, patterns in patterns_by_class.items():
            for pattern in patterns:
                self._add(owner, pattern)

    def run(self) -> LocalResult | None:
        """Price until nothing is better; None: GLOP gave up."""
        worth = 0.0
        duals: list[float] = []
        for _ in range(ROUNDS):
            solved = self._program.solve()
            if solved is None:
                return None
            worth, duals = solved.worth, solved.prices
            if not self._price(self._to_prices(duals), duals):
                break
        # Whole numbers need patterns that are nearly as good, too.
        pool = dict(self._columns)
        prices = self._to_prices(duals)
        for perturbed in perturb(prices, PERTURBATIONS, PERTURBED_PERCENT):
            _, patterns = self._pricing.find_best(perturbed)
            pool.update(
                ((owner, pattern), None)
                for owner, pattern in zip(self._row_of, patterns, strict=True)
                if pattern.steps
            )
        return LocalResult(worth, self._sort(pool, duals))

    def _to_prices(self, duals: Sequence[float]) -> Prices:
        members = duals[self._first_member_row : self._first_floor_row]
        return Prices(tuple(max(0, round(-dual * SCALE)) for dual in members))

    def _price(self, prices: Prices, duals: Sequence[float]) -> bool:
        """Add the best pattern of each class; whether any is new."""
        earned, patterns = self._pricing.find_best(prices)
        best = zip(self._row_of.items(), earned.tolist(), patterns, strict=True)
        is_any_new = False
        for (owner, row), worth, pattern in best:
            if worth > (duals[row] + ENOUGH) * SCALE:
                is_any_new |= self._add(owner, pattern)
        return is_any_new

    def _add(self, owner: int, pattern: Pattern) -> bool:
        if (owner, pattern) in self._columns or not pattern.steps:
            return False
        self._columns[owner, pattern] = None
        entries = [(self._row_of[owner], 1.0)]
        entries.extend(
            (self._first_member_row + member, float(pods))
            for member, pods in pattern.counts
        )
        self._program.add(0.0, entries, None)
        return True

    def _sort(
        self, pool: Mapping[tuple[int, Pattern], None], duals: Sequence[float]
    ) -> dict[int, list[Pattern]]:
        """Sort the patterns of each class by what they earn at these prices."""
        prices = [-dual for dual in duals[self._first_member_row :]]
        ranked: dict[int, list[tuple[float, int, Pattern]]] = {}
        for number, (owner, pattern) in enumerate(pool):
            earned = sum(prices[member] * pods for member, pods in pattern.counts)
            ranked.setdefault(owner, []).append((-earned, number, pattern))
        return {
            owner: [pattern for _, _, pattern in sorted(of_class)]
            for owner, of_class in ranked.items()
        }
