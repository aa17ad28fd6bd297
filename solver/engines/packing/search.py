"""Packing as one call: construct, bound, improve; proven where value and bound meet."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property
from math import comb, prod

from solver.decision import Status
from solver.engines.goals import Effort, EngineResult, Goal
from solver.engines.packing.batch import PackingBatch
from solver.engines.packing.bound import Bounds
from solver.engines.packing.construct import (
    Density,
    construct,
    costs_at,
    devices_scale,
    even_scale,
    first_of,
    list_orders,
)
from solver.engines.packing.counting import GangRow
from solver.engines.packing.extract import extract
from solver.engines.packing.improve import PLACE_WORK, LocalSearch
from solver.engines.packing.loads import Floats, Loads, Scale
from solver.engines.packing.work import UNIT, Work
from solver.kinds.demand import Demand
from solver.kinds.shapes import NodeKind
from solver.problem.problem import Parameters
from solver.tiers import Tier

FIRST_WORK, SIZE_WORK, MOST_WORK = 12.0, 0.006, 60.0
"""Units of work at least, for each node and gang, and at most."""
DEFAULT_LIMIT = 8.0
"""`Parameters.work_limit` by which units are as they are."""
CONSTRUCT_SHARE = 0.15
"""Of the work, what goes to constructed answers at most, beyond the first."""
WHOLE_SHARE = 0.3
"""And to the model of the whole."""
FIRST_SHARE = 1.0
"""Units for constructed answers where another search goes on."""
MOST_STATES, MOST_SHARED_STATES = 6_000, 200
"""States that one node comes to, by counting, at most; the second where devices are
shared: naming those takes longer."""
MOST_ALIKE = 8
"""Kinds of pod with the same slots, on average: with more of them amounts decide."""
MOST_LATE_KINDS = 100
"""Kinds of pod, and states of parts, with which patterns are tried after packing."""
EVEN_SHARE = 0.05
"""Of what a pod takes, how much counts evenly beside prices: none is free."""


class PackingSearch:
    """One batch; `run` it once. `PackingBatch` says what is raised when it is made."""

    def __init__(
        self,
        demand: Demand,
        kinds: Sequence[NodeKind],
        parameters: Parameters,
    ) -> None:
        self.batch = PackingBatch(demand, kinds)
        size = len(self.batch.nodes) + len(demand.gangs)
        limit = min(FIRST_WORK + SIZE_WORK * size, MOST_WORK)
        self.work = Work(limit * parameters.work_limit / DEFAULT_LIMIT)
        self._limit = self.work.left
        self._even = even_scale(self.batch)

    def run(self) -> EngineResult:
        """Decide which gangs are in, and where."""
        self.construct(self._limit * CONSTRUCT_SHARE)
        return self.improve()

    def construct(self, most: float = FIRST_SHARE) -> EngineResult:
        """Construct answers and bound them; `most`: units of work for it."""
        batch, everybody = self.batch, self._everybody()
        order = list_orders(batch, self._density(None))["weight for what is scarce"]
        gangs = range(len(batch.sort_of))
        self._best = construct(batch, order, self._even, gangs)
        self._limits = everybody
        if self._best.worth() < everybody:
            self._limits = self._bound_levels()
            self._best = self._construct(self._best, self._limits, most)
        return self._to_result(self._best, self._limits)

    def improve(self) -> EngineResult:
        """Improve what was constructed until the bound is met or the work is spent."""
        self._limits = self._improve(self._best, self._limits)
        return self._to_result(self._best, self._limits)

    @property
    def lists_nodes(self) -> bool:
        """True if nodes as a whole may come to few states, by counting those of parts.

        Then patterns of nodes can be listed, which bound more tightly than parts.
        """
        batch = self.batch
        needs = {pod.slots for pod in batch.pods}
        if len(batch.pods) > MOST_ALIKE * len(needs):
            return False
        states = max(
            prod(
                comb(batch.states.reachable(start) + count - 1, count)
                for start, count in Counter(parts).items()
            )
            for parts in {tuple(sorted(own)) for own in batch.starts}
        )
        return states <= (MOST_SHARED_STATES if batch.has_shares else MOST_STATES)

    @property
    def has_few_kinds(self) -> bool:
        """True if patterns may still prove what packing leaves open.

        Amounts decide then, but of few kinds of pod, on parts that serve few slots.
        """
        return (
            not self.batch.has_shares
            and len(self.batch.pods) <= MOST_LATE_KINDS
            and len(self.batch.states) <= MOST_LATE_KINDS
        )

    def _everybody(self) -> tuple[int, ...]:
        """Add up the weight of all gangs, by priority."""
        return tuple(
            sum(
                weights[sort] * len(own) for sort, own in enumerate(self.batch.gangs_of)
            )
            for weights in map(self._weights_of, self.batch.priorities)
        )

    def _weights_of(self, priority: int) -> list[int]:
        return [
            sort.weight if sort.priority == priority else 0 for sort in self.batch.sorts
        ]

    @cached_property
    def _bounds(self) -> Bounds:
        """Made where something is left to bound: not where all gangs fit."""
        return Bounds(self.batch, self.work)

    # --- bound -----------------------------------------------------------------------

    def _bound_levels(self) -> tuple[int, ...]:
        """Bound the worth of each priority, as if those above it reach their bound."""
        limits: list[int] = []
        floors: list[GangRow] = []
        self.target: list[int] | None = None
        for priority in self.batch.priorities:
            weights = self._weights_of(priority)
            bound = self._bounds.relax(weights, floors)
            bound, chosen = self._bounds.choose(weights, floors, bound)
            limits.append(bound)
            if chosen is not None:
                self.target = chosen
                reached = sum(w * n for w, n in zip(weights, chosen, strict=True))
                floors.append(GangRow(tuple(-w for w in weights), -reached))
        return tuple(limits)

    # --- construct -------------------------------------------------------------------

    def _density(self, scale: Scale | None) -> Density:
        """Weigh what gangs take at prices, and a little of it evenly."""
        even = costs_at(self.batch, self._even)
        if scale is None:
            return Density(self.batch, even)
        costs = costs_at(self.batch, scale)
        factor = EVEN_SHARE * max(float(costs.sum()), 1.0) / max(float(even.sum()), 1.0)
        mixed: Floats = costs + factor * even
        return Density(self.batch, mixed)

    def _construct(self, best: Loads, limits: tuple[int, ...], most: float) -> Loads:
        """Try further orders and ways to choose nodes; return the best answer."""
        pods = sum(self.batch.demand.pods)
        for loads in self._list_constructed():
            self.work.spend(pods * PLACE_WORK)
            if loads.worth() > best.worth():
                best = loads
            if best.worth() >= limits or self.work.spent > most or self.work.is_spent:
                break
        return best

    def _list_constructed(self) -> Iterator[Loads]:
        """Go through orders and scales, those that aim at whole gangs first."""
        batch, gangs = self.batch, range(len(self.batch.sort_of))
        priced = self._bounds.scale()
        scales = [self._even, devices_scale(batch)]
        if priced is not None:
            scales.insert(0, priced)
        orders = list_orders(batch, self._density(priced))
        if self.target is not None:
            aimed = self._aim(self.target)
            for name in ("largest first", "hardest first"):
                order = first_of(batch, aimed, orders[name])
                for scale in scales:
                    yield construct(batch, order, scale, gangs)
        for order in orders.values():
            for scale in scales:
                yield construct(batch, order, scale, gangs)

    def _aim(self, target: Sequence[int]) -> frozenset[int]:
        """Choose the oldest gangs of each sort, as many as a target has."""
        pairs = zip(self.batch.gangs_of, target, strict=True)
        return frozenset(gang for own, count in pairs for gang in own[:count])

    # --- improve ---------------------------------------------------------------------

    def _improve(self, best: Loads, limits: tuple[int, ...]) -> tuple[int, ...]:
        if best.worth() >= limits or self.work.is_spent:
            return limits
        priced = self._bounds.scale()
        if priced is not None:
            best.set_scale(priced)
        density = self._density(priced)
        search = LocalSearch(self.batch, best, density, limits, self.work)
        found = search.decide_whole(self.work.left * WHOLE_SHARE / UNIT)
        if found is not None:
            limits = (min(limits[0], found),)
            search.limit(limits)
        search.run()
        return limits

    # --- result ----------------------------------------------------------------------

    def _to_result(self, best: Loads, limits: tuple[int, ...]) -> EngineResult:
        bounds: dict[Goal, int | None] = {}
        is_proven = True
        for priority, value, limit in zip(
            self.batch.priorities, best.worth(), limits, strict=True
        ):
            # A bound holds beside priorities above that reach what they reached.
            bounds[Tier.GANGS, priority] = limit if is_proven else None
            is_proven = is_proven and value == limit
        return EngineResult(
            status=Status.OPTIMAL if is_proven else Status.FEASIBLE,
            placements=extract(self.batch, best),
            bounds=bounds,
            effort=Effort(models=self.work.models, work=self.work.deterministic),
        )
