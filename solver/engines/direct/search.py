"""The direct model as one call: small models first, then the complete one.

A model over enough nodes that asks for everything: if it has a solution, no more gangs
can be in, nor with better alternatives. Else the complete model, one goal after the
other. What is left over and the nodes touched are pursued last, and proven only where
the nodes are few. Limits are work units.
"""

from __future__ import annotations

from solver.decision import Status
from solver.engines import cpsat
from solver.engines.direct.build import build, demand_everything
from solver.engines.direct.extract import extract
from solver.engines.direct.objective import first_choices_only, gain_of
from solver.engines.direct.restrict import all_needed, enough, fewest_nodes
from solver.engines.direct.variables import Placements
from solver.engines.goals import (
    RANKS,
    SLACK,
    TOUCHED,
    Effort,
    EngineResult,
    Goal,
    goals_of,
)
from solver.kinds.demand import Demand
from solver.kinds.nodes import NodeKind, NodeView
from solver.problem.problem import Parameters

SPARES = (1, 4)
"""How many times the batch the small models can hold by count."""
SMALL_WORK = 0.5
"""Deterministic time that a small model may take."""
LATER_WORK = {SLACK: 0.5, TOUCHED: 0.1}
"""Likewise the goals after the second tier."""
LATER_NODES = 128
"""Over more nodes the complete model does not pursue them."""
Best = tuple[Placements, cpsat.Solved]


class DirectSearch:
    """One run over the models; counts what they cost."""

    def __init__(
        self, demand: Demand, kinds: tuple[NodeKind, ...], parameters: Parameters
    ) -> None:
        self._demand = demand
        self._kinds = kinds
        self._parameters = parameters
        goals = goals_of(demand, parameters.tiers)
        self._first = [goal for goal in goals if goal[0] <= RANKS]
        self._later = [goal for goal in goals if goal[0] > RANKS]
        self._bounds: dict[Goal, int | None] = {}
        self._work = 0.0
        self._models = self._variables = self._constraints = 0

    def run(self) -> EngineResult:
        """Try the small models, then the complete one."""
        everything = all_needed(self._kinds, self._demand)
        for spare in SPARES:
            nodes = enough(self._kinds, self._demand, spare=spare)
            if len(nodes) >= len(everything):
                break
            best = self._everything_on(nodes)
            if best is not None:
                best = self._everything_better(best, everything)
                return self._found(best, proven=True)
        return self._best_on(everything)

    def _found(self, best: Best | None, *, proven: bool) -> EngineResult:
        effort = self._effort()
        if best is None:
            return EngineResult(
                status=Status.NOT_PROVEN, bounds=self._bounds, effort=effort
            )
        return EngineResult(
            status=Status.OPTIMAL if proven else Status.FEASIBLE,
            placements=extract(*best),
            bounds=self._bounds,
            effort=effort,
        )

    def _effort(self) -> Effort:
        return Effort(
            models=self._models,
            variables=self._variables,
            constraints=self._constraints,
            work=round(self._work, 6),
        )

    def _built(self, nodes: tuple[NodeView, ...]) -> Placements:
        placements = build(self._demand, nodes)
        self._models += 1
        self._variables = max(self._variables, len(placements.model.proto.variables))
        self._constraints = max(
            self._constraints, len(placements.model.proto.constraints)
        )
        return placements

    def _solve(
        self, placements: Placements, limit: float, *, feasibility: bool
    ) -> cpsat.Outcome:
        outcome = cpsat.solve(
            placements.model,
            work_limit=min(limit, self._parameters.work_limit - self._work),
            seed=self._parameters.seed,
            feasibility=feasibility,
        )
        self._work += outcome.work
        return outcome

    def _everything_on(self, nodes: tuple[NodeView, ...]) -> Best | None:
        """Place all gangs with their first choices on these nodes, if it can be."""
        placements = self._built(nodes)
        demand_everything(placements)
        first_choices_only(placements)
        outcome = self._solve(placements, SMALL_WORK, feasibility=True)
        return (placements, outcome) if isinstance(outcome, cpsat.Solved) else None

    def _everything_better(self, best: Best, everything: tuple[NodeView, ...]) -> Best:
        """Pursue the later goals from an answer that has everything."""
        least = fewest_nodes(self._kinds, self._demand)
        only_nodes = self._later == [(TOUCHED, None)]
        if only_nodes and _touched(best) == least:
            self._bounds[TOUCHED, None] = least
            return best
        placements, complete = best[0], len(everything) <= LATER_NODES
        if complete:
            known = {view.name for view in placements.nodes}
            others = (view for view in everything if view.name not in known)
            placements = self._built((*placements.nodes, *others))
            demand_everything(placements)
            first_choices_only(placements)
        found, _ = self._pursue(placements, self._later, best, proven=complete)
        if only_nodes and found is not None and _touched(found) == least:
            self._bounds[TOUCHED, None] = least
        return found or best

    def _best_on(self, nodes: tuple[NodeView, ...]) -> EngineResult:
        """Pursue one goal after the other on all nodes."""
        placements = self._built(nodes)
        best, proven = self._pursue(placements, self._first, None, proven=True)
        if best is not None and len(nodes) <= LATER_NODES:
            best, _ = self._pursue(placements, self._later, best, proven=proven)
        return self._found(best, proven=proven)

    def _pursue(
        self,
        placements: Placements,
        goals: list[Goal],
        best: Best | None,
        *,
        proven: bool,
    ) -> tuple[Best | None, bool]:
        """Pursue goals; each keeps what was reached before. Says if all are proven.

        `proven`: whether all goals before were, on all nodes that matter.
        """
        for goal in goals:
            self._bounds[goal] = None
            gain = gain_of(placements, goal)
            if gain is None:
                proven = False
                continue
            placements.model.maximize(gain)
            _hint(placements, best)
            limit = LATER_WORK.get(goal[0], self._parameters.work_limit)
            outcome = self._solve(placements, limit, feasibility=False)
            if isinstance(outcome, cpsat.Solved):
                best = (placements, outcome)
                if proven:
                    self._bounds[goal] = abs(outcome.whole_bound)
                proven = proven and outcome.optimal
                placements.model.add(gain >= outcome.value_reached)
            else:
                proven = False
        return best, proven


def _hint(placements: Placements, best: Best | None) -> None:
    """Start from what was found, in this model or in one over its first nodes."""
    placements.model.clear_hints()  # type: ignore[no-untyped-call]  # ships no types for it
    if best is None:
        return
    known, solved = best
    names = known.model.proto.variables
    values = {names[i].name: value for i, value in enumerate(solved.values)}
    for index, variable in enumerate(placements.model.proto.variables):
        value = values.get(variable.name)
        if variable.name and value is not None:
            placements.model.add_hint(
                placements.model.get_int_var_from_proto_index(index), value
            )


def _touched(best: Best) -> int:
    """Count the nodes that pods are on."""
    placements, solved = best
    return len({lot.node for lot in placements.lots if solved.value(lot.pods)})
