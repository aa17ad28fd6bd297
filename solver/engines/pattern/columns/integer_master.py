"""The integer master: which patterns, how often, and which gangs, by CP-SAT."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct
from ortools.sat.python import cp_model

from solver.engines.cpsat import total
from solver.engines.pattern.columns.budget import Budget
from solver.engines.pattern.columns.master import MasterData, PatternUse
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
    """One model: some classes are free to use any of their patterns, others fixed.

    Call `add_floors` and `hint`, then `solve` once.
    """

    def __init__(
        self,
        data: MasterData,
        patterns_by_class: Mapping[int, Sequence[Pattern]],
        fixed: Sequence[PatternUse] = (),
    ) -> None:
        """`fixed`: what the classes that are not free use."""
        self._data = data
        self._fixed = tuple(fixed)
        self._model = cp_model.CpModel()
        self._gangs = [
            self._model.new_int_var(0, most, f"in[{g}]")
            for g, most in enumerate(data.available)
        ]
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
        self._link_gangs_to_patterns()

    def _link_gangs_to_patterns(self) -> None:
        """Of each member kind: pods of the gangs that are in <= pods of patterns."""
        terms: list[list[tuple[cp_model.IntVar, int]]] = [
            [] for _ in range(self._data.members)
        ]
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

    def hint(self, solution: Solution) -> None:
        """Tell CP-SAT where to begin."""
        nodes_by_use = {
            (owner, pattern): nodes for owner, pattern, nodes in solution.uses
        }
        for variable, value in zip(self._gangs, solution.gangs, strict=True):
            self._model.add_hint(variable, value)
        for owner, pattern, variable in self._uses:
            self._model.add_hint(variable, nodes_by_use.get((owner, pattern), 0))

    def solve(
        self, objective: Objective, bound: int, budget: Budget, limit: float
    ) -> IntegerResult:
        """Maximise an objective that is known to be at most `bound`."""
        gain = self.to_expression(objective)
        self._model.add(gain <= bound)
        self._model.maximize(gain)
        outcome = budget.solve(self._model, limit)
        if outcome is None:
            return IntegerResult(None, 0, bound)
        uses = [
            (owner, pattern, outcome.value(variable))
            for owner, pattern, variable in self._uses
            if outcome.value(variable)
        ]
        solution = Solution(
            gangs=tuple(map(outcome.value, self._gangs)), uses=(*self._fixed, *uses)
        )
        bound = min(bound, outcome.whole_bound)
        return IntegerResult(solution, outcome.value_reached, bound)


def evaluate(objective: Objective, solution: Solution) -> int:
    """Weigh an answer."""
    pairs = zip(objective.gangs, solution.gangs, strict=True)
    worth = sum(weight * gangs for weight, gangs in pairs)
    return worth + sum(
        weigh_pattern(objective, pattern) * nodes for _, pattern, nodes in solution.uses
    )
