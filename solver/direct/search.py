"""The direct model as one call: small models first, then the complete one.

A model over enough nodes that asks for everything: if it has a solution, nothing can be
better. Else the complete model, one goal after the other. Limits are work units.
"""

from __future__ import annotations

from solver import cpsat
from solver.decision import Status
from solver.direct.build import build, demand_everything
from solver.direct.extract import extract
from solver.direct.objective import first_choices_only, gain_of
from solver.direct.restrict import all_needed, enough
from solver.direct.variables import Placements
from solver.goals import RANKS, Effort, Found, Goal, goals_of
from solver.places import Placed
from solver.problem.demand import Demand
from solver.problem.nodes import NodeKind, NodeView
from solver.problem.problem import Parameters

SPARES = (1, 4)
"""How many times the batch the small models can hold by count."""
SMALL_WORK = 0.5
"""Deterministic time that a small model may take."""


class DirectSearch:
    """One run over the models; counts what they cost."""

    def __init__(
        self, demand: Demand, kinds: tuple[NodeKind, ...], parameters: Parameters
    ) -> None:
        self._demand = demand
        self._kinds = kinds
        self._parameters = parameters
        self._work = 0.0
        self._models = self._variables = self._constraints = 0

    def run(self) -> Found:
        """Try the small models, then the complete one."""
        everything = all_needed(self._kinds, self._demand)
        for spare in SPARES:
            nodes = enough(self._kinds, self._demand, spare=spare)
            if len(nodes) >= len(everything):
                break
            placed = self._everything_on(nodes)
            if placed is not None:
                return Found(
                    status=Status.OPTIMAL, placed=placed, effort=self._effort()
                )
        return self._best_on(everything)

    def _effort(self) -> Effort:
        return Effort(
            models=self._models,
            variables=self._variables,
            constraints=self._constraints,
            work=round(self._work, 6),
        )

    def _built(self, nodes: tuple[NodeView, ...]) -> Placements:
        x = build(self._demand, nodes)
        self._models += 1
        self._variables = max(self._variables, len(x.model.proto.variables))
        self._constraints = max(self._constraints, len(x.model.proto.constraints))
        return x

    def _solve(
        self, x: Placements, limit: float, *, feasibility: bool
    ) -> cpsat.Outcome:
        outcome = cpsat.solve(
            x.model,
            work_limit=min(limit, self._parameters.work_limit - self._work),
            seed=self._parameters.seed,
            feasibility=feasibility,
        )
        self._work += outcome.work
        return outcome

    def _everything_on(self, nodes: tuple[NodeView, ...]) -> tuple[Placed, ...] | None:
        """Place all gangs with their first choices on these nodes, if it can be."""
        x = self._built(nodes)
        demand_everything(x)
        first_choices_only(x)
        outcome = self._solve(x, SMALL_WORK, feasibility=True)
        return extract(x, outcome) if isinstance(outcome, cpsat.Solved) else None

    def _best_on(self, nodes: tuple[NodeView, ...]) -> Found:
        """Pursue one goal after the other; each keeps what was reached before."""
        x = self._built(nodes)
        best: cpsat.Solved | None = None
        bounds: dict[Goal, int | None] = {}
        proven = True
        for goal in goals_of(self._demand, RANKS):
            gain = gain_of(x, goal)
            x.model.maximize(gain)
            self._hint(x, best)
            outcome = self._solve(x, self._parameters.work_limit, feasibility=False)
            if isinstance(outcome, cpsat.Solved):
                best = outcome
                bounds[goal] = abs(outcome.whole_bound) if proven else None
                proven = proven and outcome.optimal
                x.model.add(gain >= outcome.value_reached)
            else:
                bounds[goal] = None
                proven = False
        effort = self._effort()
        if best is None:
            return Found(status=Status.NOT_PROVEN, bounds=bounds, effort=effort)
        return Found(
            status=Status.OPTIMAL if proven else Status.FEASIBLE,
            placed=extract(x, best),
            bounds=bounds,
            effort=effort,
        )

    def _hint(self, x: Placements, best: cpsat.Solved | None) -> None:
        x.model.clear_hints()  # type: ignore[no-untyped-call]  # ships no types for it
        if best is None:
            return
        for index, value in enumerate(best.values):
            x.model.add_hint(x.model.get_int_var_from_proto_index(index), value)
