"""The direct model as one call: small models first, then the complete one.

A model over enough nodes that asks for everything: if it has a solution, no more gangs
can be in, nor with better alternatives. Else the complete model, one goal after the
other. Slack value and the nodes touched are pursued last, and proven only where
the nodes are few. Limits are work units.
"""

from __future__ import annotations

from msgspec import structs

from contracts.ids import NodeName
from solver.decision import Status
from solver.engines import cpsat
from solver.engines.construct.floor import complete, raise_to
from solver.engines.construct.search import Constructed, construct
from solver.engines.direct.build import build, require_all_gangs
from solver.engines.direct.compared import count_compared
from solver.engines.direct.extract import extract
from solver.engines.direct.objective import allow_first_choices_only, gain_of
from solver.engines.direct.places import Places, choose_places
from solver.engines.direct.restrict import (
    all_needed_nodes,
    count_fewest_nodes,
    enough_nodes,
)
from solver.engines.direct.start import hint_placements
from solver.engines.direct.variables import Placements
from solver.engines.goals import Effort, EngineResult, Goal, goals_of
from solver.engines.topology_cost import count_preference_cost
from solver.kinds.demand import Demand
from solver.kinds.shapes import NodeKind, NodeView
from solver.problem.problem import Parameters
from solver.stopping import is_stopped
from solver.tiers import Tier

SPARES = (1, 4)
"""How many times the batch the small models can hold by count."""
SMALL_WORK = 0.5
"""Deterministic time that a small model may take."""
LATER_WORK = {Tier.LEFTOVER: 0.5, Tier.NODES: 0.1}
"""Deterministic time of each goal after the alternatives."""
MOST_CELLS, MOST_KINDS = 30_000, 60_000
"""Cells, or where no gang is split into any, kinds of pod, times nodes of a model; a
larger one is not built."""
MOST_COMPARED = 30_000
"""Terms of constraints across pods beyond which gangs are constructed before any model
is built."""
LATER_NODES = 128
"""Over more nodes the complete model does not pursue them."""
Best = tuple[Placements, cpsat.Solved]
"""A model and its best solution so far."""


class DirectSearch:
    """One search over the models; counts what they cost. `run` it once."""

    def __init__(
        self, demand: Demand, kinds: tuple[NodeKind, ...], parameters: Parameters
    ) -> None:
        self._demand = demand
        self._kinds = kinds
        self._parameters = parameters
        goals = goals_of(demand, parameters.last_tier)
        self._first = [g for g in goals if g[0].place < Tier.LEFTOVER.place]
        self._later = [g for g in goals if g[0].place >= Tier.LEFTOVER.place]
        self._prefers = (Tier.TOPOLOGY, None) in goals
        self._bounds: dict[Goal, int | None] = {}
        self._constructed = Constructed()
        self._work = 0.0
        self._models = self._variables = self._constraints = 0

    def run(self) -> EngineResult:
        """Try the small models, then the complete one."""
        all_nodes = all_needed_nodes(self._kinds, self._demand)
        best = self._place_by_topology(all_nodes)
        if best is not None:
            return self._result(self._pursue_later(best, all_nodes), proven=True)
        if self._is_constructed(all_nodes):
            return self._result(None, proven=True)
        for spare in SPARES:
            nodes = enough_nodes(self._kinds, self._demand, spare=spare)
            if len(nodes) >= len(all_nodes) or self._is_too_large(nodes):
                break
            best = self._place_all_on(nodes)
            if best is not None:
                # Everything is in with its first choices: only later goals are open.
                best = self._pursue_later(best, all_nodes)
                return self._result(best, proven=True)
        # What is constructed is the first solution, and what no answer is below.
        self._construct()
        if self._is_too_large(all_nodes):
            # Nothing was asked, so nothing is known: no bound, rather than the value.
            self._bounds |= dict.fromkeys((*self._first, *self._later))
            return self._result(None, proven=False)
        return self._place_best_on(all_nodes)

    def _construct(self) -> None:
        if not self._constructed.value:
            self._constructed = construct(self._demand, self._kinds)

    def _is_constructed(self, nodes: tuple[NodeView, ...]) -> bool:
        """True if nothing is left to ask of large models, since all gangs are in."""
        is_open = self._later or self._prefers
        if is_open or count_compared(self._demand, nodes) <= MOST_COMPARED:
            return False
        self._construct()
        placements = self._constructed.placements
        return len(placements) == len(self._demand.gangs) and not any(
            any(pod.alternatives)
            for placement in placements
            for pods in placement.members
            for pod in pods
        )

    def _is_too_large(self, nodes: tuple[NodeView, ...]) -> bool:
        """True if a model is better not built; none is once the search is to end."""
        most = MOST_CELLS if self._demand.gang_rules else MOST_KINDS
        return len(self._demand.member_kinds) * len(nodes) > most or is_stopped()

    def _place_by_topology(self, all_nodes: tuple[NodeView, ...]) -> Best | None:
        """Place a gang on nodes that its topology lets it be on, if that can be."""
        if len(self._demand.gangs) != 1 or not self._demand.gang_rules or is_stopped():
            return None
        places = choose_places(self._demand, self._kinds)
        if places is None:
            return None
        names = frozenset[NodeName]().union(*places.values())
        nodes = tuple(view for view in all_nodes if view.name in names)
        return self._place_all_on(nodes, places)

    def _result(self, best: Best | None, *, proven: bool) -> EngineResult:
        effort = Effort(
            models=self._models,
            variables=self._variables,
            constraints=self._constraints,
            work=round(self._work, 6),
        )
        last = self._parameters.last_tier
        if best is None:
            nothing = EngineResult(
                status=Status.NOT_PROVEN, bounds=self._bounds, effort=effort
            )
            result = raise_to(self._demand, nothing, self._constructed, last)
            status = Status.OPTIMAL if proven else result.status
            return structs.replace(result, status=status)
        placements = extract(*best)
        if self._prefers:
            cost = count_preference_cost(self._demand, self._kinds, placements)
            least = self._bounds.get((Tier.TOPOLOGY, None)) or 0
            proven = proven and cost == least
        result = EngineResult(
            status=Status.OPTIMAL if proven else Status.FEASIBLE,
            placements=placements,
            bounds=self._bounds,
            effort=effort,
        )
        result = raise_to(self._demand, result, self._constructed, last)
        return complete(self._demand, self._kinds, result, last)

    def _build(
        self, nodes: tuple[NodeView, ...], places: Places | None = None
    ) -> Placements:
        placements = build(self._demand, nodes, places)
        proto = placements.model.proto
        self._models += 1
        self._variables = max(self._variables, len(proto.variables))
        self._constraints = max(self._constraints, len(proto.constraints))
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

    def _build_all_in(
        self, nodes: tuple[NodeView, ...], places: Places | None = None
    ) -> Placements:
        """Build a model in which all gangs are in, with their first choices."""
        placements = self._build(nodes, places)
        require_all_gangs(placements)
        allow_first_choices_only(placements)
        return placements

    def _place_all_on(
        self, nodes: tuple[NodeView, ...], places: Places | None = None
    ) -> Best | None:
        """Place all gangs with their first choices on these nodes, if it can be."""
        placements = self._build_all_in(nodes, places)
        outcome = self._solve(placements, SMALL_WORK, feasibility=True)
        return (placements, outcome) if isinstance(outcome, cpsat.Solved) else None

    def _pursue_later(self, best: Best, all_nodes: tuple[NodeView, ...]) -> Best:
        """Pursue the later goals from an answer that has everything."""
        if not self._later:
            return best
        fewest = count_fewest_nodes(self._kinds, self._demand)
        only_touched = self._later == [(Tier.NODES, None)]
        if only_touched and _count_touched(best) == fewest:
            self._bounds[Tier.NODES, None] = fewest
            return best
        # On all nodes, if they are few: else what is reached cannot be proven.
        placements, complete = best[0], self._pursues_on(all_nodes)
        if complete:
            names = {view.name for view in placements.nodes}
            others = (view for view in all_nodes if view.name not in names)
            placements = self._build_all_in((*placements.nodes, *others))
        goals = self._goals_on(all_nodes) if complete else self._later
        better, _ = self._pursue(placements, goals, best, proven=complete)
        if only_touched and better is not None and _count_touched(better) == fewest:
            self._bounds[Tier.NODES, None] = fewest
        return better or best

    def _place_best_on(self, nodes: tuple[NodeView, ...]) -> EngineResult:
        """Pursue one goal after the other on all nodes."""
        placements = self._build(nodes)
        best, proven = self._pursue(placements, self._first, None, proven=True)
        if best is not None and self._pursues_on(nodes):
            goals = self._goals_on(nodes)
            best, _ = self._pursue(placements, goals, best, proven=proven)
        return self._result(best, proven=proven)

    def _pursues_on(self, nodes: tuple[NodeView, ...]) -> bool:
        """True if the complete model pursues any later goal."""
        if self._is_too_large(nodes):
            return False
        return self._prefers or len(nodes) <= LATER_NODES

    def _goals_on(self, nodes: tuple[NodeView, ...]) -> list[Goal]:
        """List the later goals that the complete model pursues: on many nodes one."""
        if len(nodes) <= LATER_NODES:
            return self._later
        return [goal for goal in self._later if goal[0] is Tier.TOPOLOGY]

    def _pursue(
        self,
        placements: Placements,
        goals: list[Goal],
        best: Best | None,
        *,
        proven: bool,
    ) -> tuple[Best | None, bool]:
        """Pursue goals; each keeps what was reached before. Returns if all are proven.

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
            if best is None and self._constructed.placements:
                hint_placements(placements, self._constructed.placements)
            limit = LATER_WORK.get(goal[0], self._share_of(goal))
            outcome = self._solve(placements, limit, feasibility=False)
            if isinstance(outcome, cpsat.Solved):
                best = (placements, outcome)
                if proven:
                    self._bounds[goal] = abs(outcome.whole_bound)
                proven = proven and outcome.optimal
                # The goals that follow must not give this one up again.
                placements.model.add(gain >= outcome.value_reached)
            else:
                proven = False
        return best, proven

    def _share_of(self, goal: Goal) -> float:
        """Return the work that a goal may take; some is left for the next ones."""
        left = self._parameters.work_limit - self._work
        return left / 2 if goal in self._first[:-1] else left


def _hint(placements: Placements, best: Best | None) -> None:
    """Start from the best so far, of this model or of one over its first nodes."""
    model = placements.model
    model.clear_hints()
    if best is None:
        return
    solved_placements, solved = best
    variables = solved_placements.model.proto.variables
    values = {variables[i].name: value for i, value in enumerate(solved.values)}
    for index, variable in enumerate(model.proto.variables):
        value = values.get(variable.name)
        if variable.name and value is not None:
            model.add_hint(model.get_int_var_from_proto_index(index), value)


def _count_touched(best: Best) -> int:
    """Count the nodes that pods are on."""
    placements, solved = best
    return len({lot.node for lot in placements.lots if solved.value(lot.pods)})
