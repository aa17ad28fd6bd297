"""The integer master: which patterns, how often, and which gangs, by CP-SAT."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence

from msgspec import Struct

from solver.engines import cp_model
from solver.engines.cpsat import Solved, Term, total
from solver.engines.pattern.columns.budget import Budget
from solver.engines.pattern.columns.master_data import (
    MasterData,
    PatternUse,
    count_pods,
)
from solver.engines.pattern.columns.objective import Floor, Objective, weigh_pattern
from solver.engines.pattern.columns.pricing import Pattern


class Solution(Struct, frozen=True):
    """An answer in whole numbers."""

    gangs: tuple[int, ...]
    """How many of each kind are in."""
    uses: tuple[PatternUse, ...]
    """Patterns by class; nodes without pods are left out."""


class IntegerResult(Struct, frozen=True):
    """What CP-SAT found over the patterns that it could choose from."""

    solution: Solution | None
    value: int
    bound: int
    """Over these patterns."""


class IntegerMaster:
    """One model: some classes may use any of their patterns, the others stay.

    Call `add_floors`, then `solve` once.
    """

    def __init__(
        self,
        data: MasterData,
        patterns_by_class: Mapping[int, Sequence[Pattern]],
        start: Solution | None = None,
        *,
        free_gangs: Container[int] | None = None,
        shortage_costs: Sequence[int] = (),
    ) -> None:
        """`start`: where to begin, and what classes without patterns here keep.

        `free_gangs`: gang kinds that may change; None: all. `shortage_costs`: of a pod
        without a place, by member kind; empty: every pod must have one.
        """
        self._data = data
        uses = () if start is None else start.uses
        self._fixed = tuple(use for use in uses if use[0] not in patterns_by_class)
        self._model = cp_model.CpModel()
        self._gangs: list[cp_model.IntVar] = []
        for g, available in enumerate(data.available):
            least, most = 0, available
            if start is not None and free_gangs is not None and g not in free_gangs:
                least = most = start.gangs[g]
            self._gangs.append(self._model.new_int_var(least, most, f"in[{g}]"))
        self._uses: list[tuple[int, Pattern, cp_model.IntVar]] = []
        """(class, pattern, how many of its nodes use it)."""
        for owner, patterns in patterns_by_class.items():
            variables = []
            for number, pattern in enumerate(patterns):
                name = f"uses[{owner},{number}]"
                variable = self._model.new_int_var(0, data.sizes[owner], name)
                self._uses.append((owner, pattern, variable))
                variables.append(variable)
            if variables:
                self._model.add(sum(variables) <= data.sizes[owner])
        self._shortage: list[Term] = [
            (self._model.new_int_var(0, most, f"short[{member}]"), cost)
            for member, (cost, most) in enumerate(
                zip(shortage_costs, count_pods(data, data.available), strict=False)
            )
        ]
        """(pods without a place, cost of each) by member kind."""
        self._link_gangs_to_patterns()
        if start is not None:
            self._hint(start)

    def _link_gangs_to_patterns(self) -> None:
        """For each member kind: pods of gangs <= pods of patterns + pods short.

        The last only where a shortage has a cost.
        """
        terms: list[list[Term]] = [[] for _ in range(self._data.members)]
        for _, pattern, variable in self._uses:
            for member, pods in pattern.counts:
                terms[member].append((variable, pods))
        constants = [0] * self._data.members
        for _, pattern, nodes in self._fixed:
            for member, pods in pattern.counts:
                constants[member] += pods * nodes
        for g, kind in enumerate(self._data.gangs):
            for member, pods in kind.members:
                terms[member].append((self._gangs[g], -pods))
        for member, (pods_short, _) in enumerate(self._shortage):
            terms[member].append((pods_short, 1))
        for member_terms, constant in zip(terms, constants, strict=True):
            self._model.add(total(member_terms) >= -constant)

    def to_expression(self, objective: Objective) -> cp_model.LinearExprT:
        """Write an objective as an expression."""
        terms = [
            (gang, worth)
            for gang, worth in zip(self._gangs, objective.gangs, strict=True)
            if worth
        ]
        terms.extend(
            (variable, weigh_pattern(objective, pattern))
            for _, pattern, variable in self._uses
        )
        constant = sum(
            weigh_pattern(objective, pattern) * nodes
            for _, pattern, nodes in self._fixed
        )
        return total(terms) + constant

    def add_floors(self, floors: Sequence[Floor]) -> None:
        """Keep what earlier goals reached."""
        for floor in floors:
            self._model.add(self.to_expression(floor.objective) >= floor.value)

    def _hint(self, solution: Solution) -> None:
        """Tell CP-SAT where to begin."""
        nodes_by_use = {
            (owner, pattern): nodes for owner, pattern, nodes in solution.uses
        }
        for variable, value in zip(self._gangs, solution.gangs, strict=True):
            self._model.add_hint(variable, value)
        for owner, pattern, variable in self._uses:
            self._model.add_hint(variable, nodes_by_use.get((owner, pattern), 0))
        if self._shortage:
            short = count_short(self._data, solution)
            for (variable, _), pods in zip(self._shortage, short, strict=True):
                self._model.add_hint(variable, pods)

    def solve(
        self, objective: Objective | None, bound: int, budget: Budget, limit: float
    ) -> IntegerResult:
        """Maximise an objective that is known to be at most `bound`.

        Where pods may lack a place, they cost their part of half a unit of it, and
        value and bound are of the difference, in half-units. None: these costs alone.
        """
        if objective is None:
            gain, bound = -total(self._shortage), 0
        else:
            gain = self.to_expression(objective)
            self._model.add(gain <= bound)
            if self._shortage:
                bound *= 2
                gain = cp_model.LinearExpr.sum([2 * gain, -1 * total(self._shortage)])
        self._model.maximize(gain)
        outcome = budget.solve(self._model, limit)
        if outcome is None:
            return IntegerResult(None, 0, bound)
        bound = min(bound, outcome.whole_bound)
        return IntegerResult(self._read(outcome), outcome.value_reached, bound)

    def _read(self, outcome: Solved) -> Solution:
        uses = [
            (owner, pattern, outcome.value(variable))
            for owner, pattern, variable in self._uses
            if outcome.value(variable)
        ]
        gangs = tuple(map(outcome.value, self._gangs))
        return Solution(gangs, (*self._fixed, *uses))


def count_short(data: MasterData, solution: Solution) -> list[int]:
    """Count the pods of an answer that have no place, by member kind."""
    return [max(0, -places) for places in count_spare_places(data, solution)]


def count_spare_places(data: MasterData, solution: Solution) -> list[int]:
    """Count the places that no pod takes, by member kind; below 0: pods without."""
    spare = [-pods for pods in count_pods(data, solution.gangs)]
    for _, pattern, nodes in solution.uses:
        for member, pods in pattern.counts:
            spare[member] += pods * nodes
    return spare


def evaluate(objective: Objective, solution: Solution) -> int:
    """Weigh an answer."""
    pairs = zip(objective.gangs, solution.gangs, strict=True)
    worth = sum(weight * gangs for weight, gangs in pairs)
    return worth + sum(
        weigh_pattern(objective, pattern) * nodes for _, pattern, nodes in solution.uses
    )
