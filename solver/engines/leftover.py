"""Batches for which pods are expected later: what is left over has a value.

A gang alone that needs domains is placed in those where least is lost. Else first all
gangs go one after the other, which costs little and leaves much. Where that is not the
best answer for certain, the engine that is made for the batch says which gangs are in;
they are placed one after the other again, and where that cannot be, as it did.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from msgspec import structs

from solver.decision import Status, TierValue
from solver.engines.choose import DIRECT, Decide, Decided, EngineChoice, choose_engine
from solver.engines.domains import place_alone
from solver.engines.goals import EngineResult
from solver.engines.greedy.search import GreedySearch
from solver.engines.tier_values import tier_values_of
from solver.errors import PatternLimitError
from solver.kinds.counting import bound_weight, is_one_to_a_node
from solver.kinds.demand import Demand, MemberKind
from solver.kinds.nodes import find_node_kinds
from solver.kinds.shapes import NodeKind
from solver.problem.expected import MOST_PODS
from solver.problem.problem import Problem
from solver.stopping import is_stopped
from solver.tiers import Tier

GREEDY = "greedy"
TINY = 64
"""Pods times nodes of a batch whose leftover value is proven, too."""
MOST_COMPARED = 512
"""Pods of a batch that is placed in both orders, though all fit in one."""


class LeftoverSearch:
    """Decides a batch beside which expected pods want room; `run` it once."""

    def __init__(
        self,
        problem: Problem,
        demand: Demand,
        kinds: tuple[NodeKind, ...],
        decide: Decide,
    ) -> None:
        self._problem = problem
        self._demand = demand
        self._kinds = kinds
        self._decide = decide

    def run(self) -> Decided:
        """Decide the batch."""
        demand, kinds = self._demand, self._kinds
        pods = sum(demand.pods)
        is_tiny = pods * sum(len(kind.nodes) for kind in kinds) <= TINY
        # Fewer domains for even parts are worth more than what is left over.
        is_divided = any(rules.even for rules in demand.gang_rules)
        if is_tiny and pods > 1 and not is_divided:
            return self._decide(demand, kinds)
        if pods > MOST_PODS:
            return self._decide_without_value()
        if choose_engine(demand, kinds).engine == DIRECT:
            return self._place_alone() or self._decide_without_value()
        try:
            return self._place_in_turn()
        except PatternLimitError:
            return self._decide_without_value()

    def _decide_without_value(self, last: Tier | None = None) -> Decided:
        """Ask an engine as if nothing were expected; `last`: see `Decide`."""
        plain = Demand(self._demand.gangs)
        return self._decide(plain, find_node_kinds(self._problem, plain.query), last)

    def _place_alone(self) -> Decided | None:
        """Place the only gang in the domains that it asks for, all of it, if found."""
        placements = place_alone(self._problem, self._demand)
        best = EngineResult(status=Status.OPTIMAL, placements=placements)
        if not self._is_everything(best):
            return None
        return EngineChoice(GREEDY, "a gang alone, in its domains"), self._prove(best)

    def _place_in_turn(self) -> Decided:
        """Place gangs where least is lost; if some are out, let another engine choose.

        Raises:
            PatternLimitError: there is too much to count.
        """
        search = GreedySearch(self._demand, self._kinds)
        gangs = range(len(self._demand.gangs))
        best = None
        if not (self._is_large and self._is_beyond_devices()):
            best = self._place_best(search, gangs)
            proven = self._prove(best) if search.is_exact else best
            if len(gangs) == 1 and sum(self._demand.pods) == 1:
                return EngineChoice(GREEDY, "a single pod"), proven
            if self._is_everything(best):
                reason = "all gangs fit one after the other"
                return EngineChoice(GREEDY, reason), proven
        choice, result = self._decide_without_value(Tier.ALTERNATIVES)
        if best is None and result.status is not Status.OPTIMAL:
            best = self._place_best(search, gangs)
        if best is None or self._first_tiers(result) > self._first_tiers(best):
            gangs_in = [placement.gang for placement in result.placements]
            again = self._place_best(search, gangs_in)
            is_as_good = self._first_tiers(again) >= self._first_tiers(result)
            best = again if is_as_good else result
        return choice, structs.replace(result, placements=best.placements)

    def _place_best(self, search: GreedySearch, gangs: Iterable[int]) -> EngineResult:
        """Place the largest gangs first, and by age; return what is worth more.

        Of a large batch that fits, the first answer is taken.
        """
        by_age = sorted(gangs)
        by_size = sorted(by_age, key=self._size_of, reverse=True)
        results: list[EngineResult] = []
        for order in dict.fromkeys((tuple(by_size), tuple(by_age))):
            placements = search.run(order)
            results.append(EngineResult(status=Status.OPTIMAL, placements=placements))
            is_enough = len(placements) == len(by_age) and self._is_large
            if is_enough or is_stopped():
                return results[-1]
        if len(results) == 1:
            return results[0]
        return max(results, key=lambda r: [_gain_of(tier) for tier in self._tiers(r)])

    @property
    def _is_large(self) -> bool:
        return sum(self._demand.pods) > MOST_COMPARED

    def _is_beyond_devices(self) -> bool:
        """True if there are too few devices for all gangs, by counting."""
        demand = self._demand
        weights = Counter[int]()
        for gang in demand.gangs:
            weights[gang.priority] += gang.weight
        return any(
            bound_weight(demand, self._kinds, priority) < weight
            for priority, weight in weights.items()
        )

    def _size_of(self, gang: int) -> tuple[int, tuple[tuple[int, ...], ...]]:
        """Return how large a gang is: by its priority, then by its largest pods."""
        kinds = (
            self._demand.member_kinds[cells[0].kind]
            for cells in self._demand.cells_of[gang]
        )
        sizes = sorted((self._amounts_of_pod(kind) for kind in kinds), reverse=True)
        return self._demand.gangs[gang].priority, tuple(sizes)

    def _amounts_of_pod(self, kind: MemberKind) -> tuple[int, ...]:
        """Return what a pod takes: devices, their capacity, resources of nodes."""
        requests = self._demand.query.requests
        shares = sum(
            amount
            for ask in kind.asks
            if not ask.rank
            for _, amount in requests[ask.kind].capacity
        )
        return (kind.asked, shares, *kind.needs)

    def _prove(self, result: EngineResult) -> EngineResult:
        """Mark placements as optimal where every place was looked at.

        So it is of a single pod, and of a gang whose pods are alike and can share no
        node: what they lose adds up.
        """
        demand = self._demand
        if len(demand.gangs) != 1 or not is_one_to_a_node(demand, self._kinds):
            return result
        bounds = {
            (tier.tier, tier.priority): tier.value for tier in self._tiers(result)
        }
        later = (Tier.LEFTOVER, Tier.NODES)
        return structs.replace(
            result, bounds={goal: v for goal, v in bounds.items() if goal[0] in later}
        )

    def _is_everything(self, result: EngineResult) -> bool:
        """True if all gangs are in, with their first choices."""
        return len(result.placements) == len(self._demand.gangs) and not any(
            any(pod.alternatives)
            for gang in result.placements
            for pods in gang.members
            for pod in pods
        )

    def _first_tiers(self, result: EngineResult) -> list[int]:
        return [_gain_of(tier) for tier in self._tiers(result, Tier.ALTERNATIVES)]

    def _tiers(
        self, result: EngineResult, last: Tier | None = None
    ) -> tuple[TierValue, ...]:
        last = last or self._problem.parameters.last_tier
        return tier_values_of(self._demand, self._demand, self._kinds, result, last)


def _gain_of(tier: TierValue) -> int:
    """Return what is better where it is more."""
    return tier.value if tier.tier is Tier.GANGS else -tier.value
