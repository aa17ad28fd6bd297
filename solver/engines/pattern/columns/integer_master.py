"""Which patterns, how often, and which gangs: the integer step, by CP-SAT."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct
from ortools.sat.python import cp_model

from solver.engines.cpsat import total
from solver.engines.pattern.columns.budget import Budget
from solver.engines.pattern.columns.master import Side, Used
from solver.engines.pattern.columns.objective import Measure, Reached, worth_of
from solver.engines.pattern.columns.pricing import Pattern


class Choice(Struct, frozen=True):
    """An integer answer."""

    gangs: tuple[int, ...]
    """How many of each kind are in."""
    used: tuple[Used, ...]
    """Patterns by class; nodes without pods are left out."""


class Chosen(Struct, frozen=True):
    """What CP-SAT found over the patterns that it was offered."""

    choice: Choice | None
    value: int
    bound: int
    """Over these patterns."""


class Choosing:
    """One model: some classes are free to use any of their patterns, others fixed."""

    def __init__(
        self,
        side: Side,
        offers: Mapping[int, Sequence[Pattern]],
        fixed: Sequence[Used] = (),
    ) -> None:
        self._side = side
        self._fixed = tuple(fixed)
        self._model = cp_model.CpModel()
        self._gangs = [
            self._model.new_int_var(0, most, f"in[{g}]")
            for g, most in enumerate(side.available)
        ]
        self._uses: list[tuple[int, Pattern, cp_model.IntVar]] = []
        for owner, patterns in offers.items():
            mine = []
            for number, pattern in enumerate(patterns):
                name = f"uses[{owner},{number}]"
                variable = self._model.new_int_var(0, side.sizes[owner], name)
                self._uses.append((owner, pattern, variable))
                mine.append(variable)
            if mine:
                self._model.add(sum(mine) <= side.sizes[owner])
        self._supply_demand()

    def _supply_demand(self) -> None:
        """Of each member kind: pods of the gangs that are in <= pods of patterns."""
        supply: list[list[tuple[cp_model.IntVar, int]]] = [
            [] for _ in range(self._side.members)
        ]
        for _, pattern, variable in self._uses:
            for member, pods in pattern.counts:
                supply[member].append((variable, pods))
        constant = [0] * self._side.members
        for _, pattern, nodes in self._fixed:
            for member, pods in pattern.counts:
                constant[member] += pods * nodes
        for g, kind in enumerate(self._side.gangs):
            for member, pods in kind.members:
                supply[member].append((self._gangs[g], -pods))
        for member, terms in enumerate(supply):
            self._model.add(total(terms) >= -constant[member])

    def measured(self, measure: Measure) -> cp_model.LinearExprT:
        """Write a measure as an expression."""
        terms = [
            (gang, worth)
            for gang, worth in zip(self._gangs, measure.gangs, strict=True)
            if worth
        ]
        terms.extend((v, worth_of(measure, pattern)) for _, pattern, v in self._uses)
        constant = sum(
            worth_of(measure, pattern) * nodes for _, pattern, nodes in self._fixed
        )
        return total(terms) + constant

    def keep(self, reached: Sequence[Reached]) -> None:
        """Keep what earlier goals reached."""
        for item in reached:
            self._model.add(self.measured(item.measure) >= item.value)

    def hint(self, choice: Choice) -> None:
        """Say where to begin."""
        used = {(owner, pattern): nodes for owner, pattern, nodes in choice.used}
        for variable, value in zip(self._gangs, choice.gangs, strict=True):
            self._model.add_hint(variable, value)
        for owner, pattern, variable in self._uses:
            self._model.add_hint(variable, used.get((owner, pattern), 0))

    def solve(
        self, measure: Measure, bound: int, budget: Budget, limit: float
    ) -> Chosen:
        """Maximise a measure; `bound`: what is known to be out of reach beyond."""
        gain = self.measured(measure)
        self._model.add(gain <= bound)
        self._model.maximize(gain)
        outcome = budget.solve(self._model, limit)
        if outcome is None:
            return Chosen(None, 0, bound)
        used = [
            (owner, pattern, outcome.value(variable))
            for owner, pattern, variable in self._uses
            if outcome.value(variable)
        ]
        choice = Choice(
            gangs=tuple(map(outcome.value, self._gangs)), used=(*self._fixed, *used)
        )
        return Chosen(choice, outcome.value_reached, min(bound, outcome.whole_bound))
