"""The restricted master: one linear program over the patterns that are known so far.

Rows are the nodes of classes, the pods of each kind and the floors of earlier goals.
Columns are gangs, which take pods, and patterns, which supply them; pods without a
place are columns where a pod may lack one. Whoever solves it prices further patterns by
its duals and adds them: for all nodes, below a branch, for some classes, in a dive.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from solver.engines.glop import Program
from solver.engines.pattern.columns.master_data import SCALE, MasterData, PatternUse
from solver.engines.pattern.columns.objective import (
    Floor,
    Objective,
    add_up,
    weigh_pattern,
)
from solver.engines.pattern.columns.pricing import Pattern, Prices

ENOUGH = 1e-4
"""What a pattern must earn beyond its node to be of use."""
WHOLE = 1e-6
"""Numbers that are this close to whole ones are."""


class RestrictedSolution(Struct, frozen=True):
    """What the program is worth with fractions, and the dual prices of its rows."""

    worth: float
    nodes: list[float]
    """By row of nodes."""
    pods: list[float]
    """By member kind."""
    floors: list[float]


class RoundedPrices(Struct, frozen=True):
    """Prices in whole numbers, times SCALE: what a bound is computed from."""

    prices: Prices
    floors: tuple[int, ...]
    """What a unit of each floor is worth."""


class RestrictedMaster:
    """Chooses gangs and patterns in fractions; grows by `add`."""

    def __init__(
        self,
        data: MasterData,
        objective: Objective,
        floors: Sequence[Floor],
        rows: Mapping[tuple[int, ...], int],
        *,
        supply: Sequence[int] = (),
        without_place: Sequence[float] = (),
        node_cost: float = 0.0,
    ) -> None:
        """`rows`: how often columns of these classes may be used in all.

        `supply`: places that pods have elsewhere, by member kind. `without_place`: what
        a pod costs that has none; empty: all must have one. `node_cost`: of each use
        of a column.
        """
        self._data, self._objective, self._floors = data, objective, tuple(floors)
        self._node_cost = node_cost
        self._row_of = {
            owner: row for row, owners in enumerate(rows) for owner in owners
        }
        self._first_member_row = len(rows)
        self._first_floor_row = len(rows) + data.members
        self.rows = self._first_floor_row + len(self._floors)
        self._program = Program(
            [
                *((None, float(most)) for most in rows.values()),
                *((-float(n), None) for n in supply or (0,) * data.members),
                *((float(floor.value), None) for floor in floors),
            ]
        )
        self._columns: dict[tuple[PatternUse, ...], None] = {}
        """In the order of the program."""
        for g, kind in enumerate(data.gangs):
            entries = [
                (self._first_member_row + m, -float(pods)) for m, pods in kind.members
            ]
            entries += self._floor_entries([f.objective.gangs[g] for f in self._floors])
            most = float(data.available[g])
            self._program.add(float(objective.gangs[g]), entries, most)
        for member, cost in enumerate(without_place):
            self._program.add(-cost, [(self._first_member_row + member, 1.0)], None)
        self._first_column = len(data.gangs) + len(without_place)

    def _floor_entries(self, worths: Sequence[int]) -> list[tuple[int, float]]:
        return [
            (self._first_floor_row + number, float(worth))
            for number, worth in enumerate(worths)
            if worth
        ]

    @property
    def columns(self) -> Iterable[tuple[PatternUse, ...]]:
        """List the columns of patterns, in the order in which they came."""
        return self._columns.keys()

    def add(self, uses: Sequence[PatternUse]) -> bool:
        """Add patterns that are used together, of the classes of one row.

        Whether they are new.
        """
        column = tuple(use for use in uses if use[1].steps)
        if not column or column in self._columns:
            return False
        self._columns[column] = None
        supply: dict[int, int] = {}
        for _, pattern, nodes in column:
            for member, pods in pattern.counts:
                supply[member] = supply.get(member, 0) + pods * nodes

        def weigh(objective: Objective) -> int:
            return sum(weigh_pattern(objective, use[1]) * use[2] for use in column)

        entries = [(self._row_of[column[0][0]], 1.0)]
        entries += ((self._first_member_row + m, float(n)) for m, n in supply.items())
        entries += self._floor_entries([weigh(f.objective) for f in self._floors])
        self._program.add(weigh(self._objective) - self._node_cost, entries, None)
        return True

    def add_patterns(self, patterns_by_class: Mapping[int, Iterable[Pattern]]) -> None:
        """Add a column for a node of each of these patterns."""
        for owner, patterns in patterns_by_class.items():
            for pattern in patterns:
                self.add(((owner, pattern, 1),))

    def add_better(
        self,
        priced: Iterable[tuple[int, int, Pattern]],
        solved: RestrictedSolution,
    ) -> bool:
        """Add patterns that earn enough more than their nodes cost; whether any is new.

        `priced`: (class, what a node earns, times SCALE, by which pattern).
        """
        is_any_new = False
        for owner, earned, pattern in priced:
            cost = solved.nodes[self._row_of[owner]] + self._node_cost
            if earned > (cost + ENOUGH) * SCALE:
                is_any_new |= self.add(((owner, pattern, 1),))
        return is_any_new

    def limit_gangs(self, least: Sequence[int], most: Sequence[int]) -> None:
        """Change how many gangs of each kind are in, at least and at most."""
        for g, limits in enumerate(zip(least, most, strict=True)):
            self._program.limit(g, float(limits[0]), float(limits[1]))

    def limit_row(self, owner: int, most: int) -> None:
        """Change how often the columns of a class may be used."""
        self._program.limit_row(self._row_of[owner], float(most))

    def solve(self) -> RestrictedSolution | None:
        """Solve with fractions; None: GLOP gave up."""
        solved = self._program.solve()
        if solved is None:
            return None
        # Rows of pods and floors are at least something, so their duals are negative.
        first, last = self._first_member_row, self._first_floor_row
        return RestrictedSolution(
            worth=solved.worth,
            nodes=solved.prices[:first],
            pods=[-dual for dual in solved.prices[first:last]],
            floors=[-dual for dual in solved.prices[last:]],
        )

    def read_gangs(self) -> tuple[float, ...]:
        """Read how many gangs of each kind are in, as solved last."""
        return tuple(self._program.read_values(len(self._data.gangs)))

    def read_columns(self) -> list[tuple[tuple[PatternUse, ...], float]]:
        """Read how often each column is used, as solved last."""
        values = self._program.read_values()[self._first_column :]
        return list(zip(self._columns, values, strict=True))

    def round(self, pods: Sequence[float], floors: Sequence[float]) -> RoundedPrices:
        """Round prices to the grid; ranks and the like count as goals do."""
        factors = tuple(max(0, round(price * SCALE)) for price in floors)
        goal = self._add_goals(factors)
        members = tuple(max(0, round(price * SCALE)) for price in pods)
        prices = Prices(members, goal.rank, goal.slack, goal.touched)
        return RoundedPrices(prices, factors)

    def weigh_gangs(self, rounded: RoundedPrices) -> tuple[int, ...]:
        """Weigh a gang of each kind by all goals, less the price of its pods."""
        worth, prices = self._add_goals(rounded.floors).gangs, rounded.prices.members
        return tuple(
            worth[g] - sum(prices[m] * pods for m, pods in kind.members)
            for g, kind in enumerate(self._data.gangs)
        )

    def bound(
        self,
        rounded: RoundedPrices,
        earned: int,
        least: Sequence[int],
        most: Sequence[int],
    ) -> int:
        """Bound the objective from above, times SCALE (Lagrange).

        What all nodes earn, and what gangs are worth beyond the price of their pods,
        less what the floors demand anyway. `least`, `most`: gangs of each kind.
        """
        pairs = zip(rounded.floors, self._floors, strict=True)
        total = earned - sum(factor * floor.value for factor, floor in pairs)
        for g, gain in enumerate(self.weigh_gangs(rounded)):
            total += gain * (most[g] if gain > 0 else least[g])
        return total

    def _add_goals(self, factors: Sequence[int]) -> Objective:
        """Add the floors' objectives to the current one, by what they are worth."""
        pairs = zip(factors, self._floors, strict=True)
        earlier = [(factor, floor.objective) for factor, floor in pairs]
        return add_up(self._objective, SCALE, earlier)


def each_alone(sizes: Mapping[int, int]) -> dict[tuple[int, ...], int]:
    """Give each class a row of its own; `sizes`: its nodes."""
    return {(owner,): size for owner, size in sizes.items()}
