"""Batches whose nodes can come to more states than are listed: a part of them decides.

Gangs are placed one after the other in a few orders: as they came, and by the prices of
a relaxation. The states that nodes were in, with the placements that were weighed
there, are a small graph that holds all of these answers, and the pattern engine mixes
them. Then gangs change places in the best order. No bound of states counts: that of the
relaxation does, which knows none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

from msgspec import structs

from solver.decision import Status
from solver.engines.choose import Decided, EngineChoice
from solver.engines.goals import Effort, EngineResult, Goal, goals_of
from solver.engines.greedy.search import GreedySearch
from solver.engines.pattern.search import PatternSearch
from solver.engines.pattern.states.graph import MAX_STATES
from solver.engines.pseudo_random import LinearCongruential
from solver.engines.relaxation import SCALE, CapacityProgram, cost_of
from solver.engines.tier_values import weight_in
from solver.errors import PatternLimitError
from solver.kinds.demand import Demand, GangKind
from solver.kinds.shapes import NodeKind
from solver.placement import GangPlacement
from solver.problem.problem import Parameters
from solver.tiers import Tier

TRUNCATED = "truncated"
MIX_WORK = 2.0
"""Deterministic time for choosing among the states that were met."""
MOST_TURNS, MOST_PODS_IN_TURN = 64, 20_000
"""Further orders that are tried, and pods that are placed in all of them."""
Placements = tuple[GangPlacement, ...]


class TruncatedSearch:
    """One batch; `run` it once."""

    def __init__(
        self, demand: Demand, kinds: Sequence[NodeKind], parameters: Parameters
    ) -> None:
        self._demand = demand
        self._kinds = kinds
        self._parameters = parameters
        self._priorities = sorted(
            {gang.priority for gang in demand.gangs}, reverse=True
        )
        program = CapacityProgram(demand, kinds)
        self._relaxed = {p: program.relax(p) for p in self._priorities}

    def run(self, reason: str) -> Decided:
        """Decide the batch; `reason`: why not all states are listed.

        Raises:
            TooManyPlacementsError: on some node there are too many ways to place a pod.
            PriceOverflowError: values could leave 64 bits.
        """
        greedy = GreedySearch(self._demand, self._kinds, weighs_all=True)
        orders = list(self._list_orders())
        answers = [(greedy.run(order), order) for order in orders]
        best, effort = max(answers, key=self._rank)[0], Effort()
        if not self._is_best(best):
            mixed = self._mix(greedy)
            effort = mixed.effort
            order = self._put_first(mixed.placements)
            answers.append((greedy.run(order), order))
            improved = self._improve(greedy, *max(answers, key=self._rank))
            best = max(best, mixed.placements, improved, key=self._weigh)
        is_optimal = self._is_best(best) and not self._demand.has_alternatives
        return EngineChoice(TRUNCATED, reason), EngineResult(
            status=Status.OPTIMAL if is_optimal else Status.FEASIBLE,
            placements=best,
            bounds=self._bound_goals(),
            effort=effort,
        )

    def _mix(self, greedy: GreedySearch) -> EngineResult:
        """Choose anew among all states that were met, if they are not too many."""
        graph = greedy.to_graph()
        if len(graph.states) > MAX_STATES:
            return EngineResult(status=Status.NOT_PROVEN)
        last = min(
            self._parameters.last_tier, Tier.ALTERNATIVES, key=lambda tier: tier.place
        )
        work = min(self._parameters.work_limit, MIX_WORK)
        limited = structs.replace(self._parameters, last_tier=last, work_limit=work)
        try:
            search = PatternSearch(self._demand, self._kinds, limited, graph=graph)
            return search.run()
        except PatternLimitError:
            return EngineResult(status=Status.NOT_PROVEN)

    def _improve(
        self, greedy: GreedySearch, best: Placements, order: list[int]
    ) -> Placements:
        """Let a gang that is out change places with one that is in, again and again.

        Which ones is drawn by a fixed generator; an order that is as good is kept.
        """
        gangs, numbers = self._demand.gangs, LinearCongruential(1)
        for _ in range(min(MOST_TURNS, MOST_PODS_IN_TURN // sum(self._demand.pods))):
            gangs_in = {placement.gang for placement in best}
            left_out = [gang for gang in order if gang not in gangs_in]
            if not gangs_in or not left_out or self._is_best(best):
                break
            first = left_out[numbers.below(len(left_out))]
            taken = [gang for gang in order if gang in gangs_in]
            place = numbers.below(len(taken))
            taken[place], last = first, taken[place]
            rest = [gang for gang in left_out if gang != first]
            changed = sorted([*taken, *rest, last], key=lambda g: -gangs[g].priority)
            placements = greedy.run(changed)
            if self._weigh(placements) >= self._weigh(best):
                best, order = placements, changed
        return best

    def _put_first(self, placements: Placements) -> list[int]:
        """List all gangs, of each priority those that are in by an answer first."""
        gangs_in = {placement.gang for placement in placements}
        gangs = self._demand.gangs
        return sorted(
            range(len(gangs)), key=lambda g: (-gangs[g].priority, g not in gangs_in)
        )

    def _list_orders(self) -> Iterator[list[int]]:
        """List orders of all gangs, the most urgent first.

        By age; those that are worth most for what they take; and those that the
        relaxation takes in, the largest pods first, before others.
        """
        demand = self._demand
        kind_of = {g: kind for kind, gangs in demand.gang_kinds.items() for g in gangs}
        by_age = sorted(kind_of, key=lambda g: (-kind_of[g].priority, g))
        yield by_age
        worth_of = {kind: self._rate(kind) for kind in demand.gang_kinds}
        sizes = [(member.asked, member.needs) for member in demand.member_kinds]
        size_of = {
            kind: max(
                (self._relaxed[kind.priority].prices[m], *sizes[m])
                for m, _ in kind.members
            )
            for kind in demand.gang_kinds
        }
        yield sorted(by_age, key=lambda g: worth_of[kind_of[g]])
        by_size = sorted(by_age, key=lambda g: size_of[kind_of[g]], reverse=True)
        yield sorted(
            by_size, key=lambda g: (-kind_of[g].priority, worth_of[kind_of[g]][1] > 1)
        )

    def _rate(self, kind: GangKind) -> tuple[int, Fraction, int]:
        """Rate a gang kind: best are urgent ones that cost least for their weight."""
        cost = cost_of(kind, self._relaxed[kind.priority].prices)
        weight = max(1, kind.weight)
        return -kind.priority, Fraction(cost, SCALE * weight), -weight

    def _is_best(self, placements: Placements) -> bool:
        return self._weigh(placements) == self._bounds()

    def _rank(self, answer: tuple[Placements, list[int]]) -> list[int]:
        return self._weigh(answer[0])

    def _weigh(self, placements: Placements) -> list[int]:
        return [weight_in(self._demand, placements, p) for p in self._priorities]

    def _bounds(self) -> list[int]:
        return [self._relaxed[priority].bound for priority in self._priorities]

    def _bound_goals(self) -> dict[Goal, int | None]:
        goals = goals_of(self._demand, self._parameters.last_tier)
        bounds: dict[Goal, int | None] = dict.fromkeys(goals)
        for priority, relaxed in self._relaxed.items():
            bounds[Tier.GANGS, priority] = relaxed.bound
        return bounds
