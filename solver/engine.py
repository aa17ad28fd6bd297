"""Which models are tried in which order, and one answer from them.

First counting alone: gangs that no node set could hold are out. Then a model over
enough nodes that asks for everything else; if it has a solution, nothing can be
better. Else the complete model, one priority after the other. Limits are work units,
so the answer is a function of the Problem alone.
"""

from __future__ import annotations

from math import floor

from msgspec import Struct

from solver import cpsat
from solver.decision import Statistics, Status, TierValue
from solver.direct.build import build, demand_everything
from solver.direct.extract import extract
from solver.direct.objective import Goal, first_choices_only, goals
from solver.direct.restrict import all_needed, enough
from solver.direct.variables import Placements
from solver.places import Placed
from solver.problem.capacity import pods_at_most
from solver.problem.demand import Demand
from solver.problem.nodes import NodeKind, NodeView, node_kinds
from solver.problem.problem import Parameters, Problem

SPARES = (1, 4)
"""How many times the batch the small models can hold by count."""
SMALL_WORK = 0.5
"""Deterministic time that a small model may take."""


class Answer(Struct, frozen=True, kw_only=True):
    """What was found for the gangs of a demand."""

    status: Status
    placed: tuple[Placed, ...]
    hopeless: tuple[int, ...]
    """Gangs that do not fit even alone, by counting; indices into the demand."""
    tiers: tuple[TierValue, ...]
    statistics: Statistics


def answer(problem: Problem) -> Answer:
    """Decide the batch."""
    demand = Demand(problem.gangs)
    kinds = node_kinds(problem, demand.query)
    hopeless = _hopeless(demand, kinds)
    left_out = set(hopeless)
    hopeful = Demand(
        gang for index, gang in enumerate(demand.gangs) if index not in left_out
    )
    names = [index for index in range(len(demand.gangs)) if index not in left_out]
    if hopeless and hopeful.gangs and hopeful.query != demand.query:
        kinds = node_kinds(problem, hopeful.query)
    search = _Search(hopeful, kinds, problem.parameters)
    status, placed, reached = search.run() if hopeful.gangs else _NOTHING
    return Answer(
        status=status,
        placed=tuple(Placed(names[item.gang], item.members) for item in placed),
        hopeless=hopeless,
        tiers=_tiers(demand, hopeful, placed, reached),
        statistics=search.statistics(kinds),
    )


Reached = dict[Goal, int | None]
"""The proven bound of each goal; None: not proven."""
_NOTHING: tuple[Status, tuple[Placed, ...], Reached] = (Status.OPTIMAL, (), {})


def _hopeless(demand: Demand, kinds: tuple[NodeKind, ...]) -> tuple[int, ...]:
    """Find the gangs that all nodes together cannot hold, by counting."""
    room = [
        sum(pods_at_most(member, kind.shape) * len(kind.nodes) for kind in kinds)
        for member in demand.member_kinds
    ]
    return tuple(
        sorted(
            gang
            for gang_kind, gangs in demand.gang_kinds.items()
            if any(pods > room[m] for m, pods in gang_kind.members)
            for gang in gangs
        )
    )


def _tiers(
    demand: Demand, hopeful: Demand, placed: tuple[Placed, ...], reached: Reached
) -> tuple[TierValue, ...]:
    """Report what the placed gangs are worth, goal by goal."""
    admitted = [hopeful.gangs[item.gang] for item in placed]
    tiers = []
    for priority in sorted({gang.priority for gang in demand.gangs}, reverse=True):
        value = sum(gang.weight for gang in admitted if gang.priority == priority)
        bound = reached.get((1, priority), value)
        tiers.append(TierValue(tier=1, priority=priority, value=value, bound=bound))
    if demand.has_alternatives:
        value = sum(
            rank
            for item in placed
            for places in item.members
            for place in places
            for rank in place.alternatives
        )
        tiers.append(
            TierValue(tier=2, value=value, bound=reached.get((2, None), value))
        )
    return tuple(tiers)


class _Search:
    """One run over the models; counts what they cost."""

    def __init__(
        self, demand: Demand, kinds: tuple[NodeKind, ...], parameters: Parameters
    ) -> None:
        self._demand = demand
        self._kinds = kinds
        self._parameters = parameters
        self._work = 0.0
        self._models = self._variables = self._constraints = 0

    def run(self) -> tuple[Status, tuple[Placed, ...], Reached]:
        """Try the small models, then the complete one."""
        everything = all_needed(self._kinds, self._demand)
        for spare in SPARES:
            nodes = enough(self._kinds, self._demand, spare=spare)
            if len(nodes) >= len(everything):
                break
            found = self._everything_on(nodes)
            if found is not None:
                return Status.OPTIMAL, found, {}
        return self._best_on(everything)

    def statistics(self, kinds: tuple[NodeKind, ...]) -> Statistics:
        """Report sizes and cost."""
        groups = {(g.mask, g.values) for kind in kinds for g in kind.shape.groups}
        return Statistics(
            node_kinds=len(kinds),
            device_kinds=len(groups),
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

    def _best_on(
        self, nodes: tuple[NodeView, ...]
    ) -> tuple[Status, tuple[Placed, ...], Reached]:
        """Pursue one goal after the other; each keeps what was reached before."""
        x = self._built(nodes)
        best: cpsat.Solved | None = None
        reached: Reached = {}
        proven = True
        for goal, gain in goals(x):
            x.model.maximize(gain)
            self._hint(x, best)
            outcome = self._solve(x, self._parameters.work_limit, feasibility=False)
            match outcome:
                case cpsat.Solved():
                    best = outcome
                    value = outcome.value_reached
                    bound = value if outcome.optimal else floor(outcome.bound + 1e-6)
                    reached[goal] = abs(bound) if proven else None
                    proven = proven and outcome.optimal
                    x.model.add(gain >= value)
                case cpsat.Infeasible() | cpsat.Unknown():
                    reached[goal] = None
                    proven = False
        if best is None:
            return Status.NOT_PROVEN, (), reached
        status = Status.OPTIMAL if proven else Status.FEASIBLE
        return status, extract(x, best), reached

    def _hint(self, x: Placements, best: cpsat.Solved | None) -> None:
        x.model.clear_hints()  # type: ignore[no-untyped-call]  # ships no types for it
        if best is None:
            return
        for index, value in enumerate(best.values):
            x.model.add_hint(x.model.get_int_var_from_proto_index(index), value)
