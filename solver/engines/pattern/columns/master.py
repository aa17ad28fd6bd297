"""The master program: prices for pods, until no pattern could earn more.

Column generation. A linear program chooses how much of each cluster of node classes
uses each column (a pattern for every node of the cluster), and which gangs are in. Its
dual prices for pods are rounded to a grid, and every node class answers with its best
pattern: together these are the next columns. Whatever the prices, what the nodes earn
at most plus what gangs are worth beyond their pods bounds every answer from above
(Lagrange), so nothing rests on the program's tolerance.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import mul

from msgspec import Struct, structs

from solver.engines.pattern.columns.master_data import (
    SCALE,
    MasterData,
    PatternUse,
)
from solver.engines.pattern.columns.objective import Floor, Objective
from solver.engines.pattern.columns.pricing import Pattern, Prices, Pricing
from solver.engines.pattern.columns.restricted_master import (
    RestrictedMaster,
    RoundedPrices,
)
from solver.engines.pseudo_random import LinearCongruential
from solver.stopping import is_stopped

MAX_ROUNDS = 200
MAX_PRICED_STEPS = 200_000_000
"""Steps that are looked at in one run."""
PERTURBATIONS = 24
"""Times that prices are varied afterwards, for more patterns to choose from."""
FEW_PERTURBATIONS = 8
"""Where a program that runs again has no room for all gangs: just the cuts are of use.
"""
PERTURBED_PERCENT = 40
"""By how many percent at most."""
GAP = 1e-6
"""The program and its bound are one if they differ by no more than this, relatively."""
IN_USE = 1e-9
"""Columns with a smaller share are not used."""


class MasterColumn(Struct, frozen=True):
    """Patterns for all nodes of a cluster, and how much of the cluster uses them."""

    uses: tuple[PatternUse, ...]
    share: float


class Cut(Struct, frozen=True):
    """At these prices the nodes earn no more: sum(prices * pods) <= earned."""

    prices: tuple[int, ...]
    """By member kind."""
    earned: int


class MasterResult(Struct, frozen=True):
    """What column generation led to for one objective."""

    bound: int
    """No answer is worth more."""
    columns: tuple[MasterColumn, ...]
    """Columns that the last program uses."""
    patterns: tuple[tuple[Pattern, ...], ...]
    """The patterns that were best for each class at some prices, latest first."""
    cuts: tuple[Cut, ...]
    prices: Prices
    """Dual prices at the bound."""
    gains: tuple[int, ...]
    """What a gang of each kind is worth beyond its pods at these prices, times
    SCALE."""


class Master:
    """Column generation for one objective, above the floors of earlier goals.

    Call `add_columns` for answers to begin with, then `run` once; for other numbers of
    the same gangs `run_again` as often as needed.
    """

    def __init__(
        self, data: MasterData, objective: Objective, floors: Sequence[Floor]
    ) -> None:
        self._data = data
        self._objective = objective
        self._floors = tuple(floors)
        # A cluster's columns are used once in all.
        rows = dict.fromkeys(data.clusters, 1)
        self._restricted = RestrictedMaster(data, objective, floors, rows)
        self._cluster_of = {
            owner: number
            for number, cluster in enumerate(data.clusters)
            for owner in cluster
        }
        self._nothing = (0,) * len(data.gangs)
        self._patterns: list[dict[Pattern, None]] = [{} for _ in data.sizes]
        self._cuts: list[Cut] = []

    def add_columns(self, uses: Sequence[PatternUse]) -> bool:
        """Add patterns for all nodes, a column a cluster; whether any is new."""
        uses_by_cluster: list[list[PatternUse]] = [[] for _ in self._data.clusters]
        for use in uses:
            uses_by_cluster[self._cluster_of[use[0]]].append(use)
        added = [self._restricted.add(of_cluster) for of_cluster in uses_by_cluster]
        return any(added)

    def run(
        self, pricing: Pricing, bound_pricing: Pricing, first_prices: Sequence[int]
    ) -> MasterResult:
        """Generate columns until none is better; `first_prices`: times SCALE.

        `bound_pricing` prices what no answer exceeds, where `pricing` leaves
        something out.
        """
        first = [price / SCALE for price in first_prices]
        rounded = self._restricted.round(first, [0.0] * len(self._floors))
        return self._generate(pricing, bound_pricing, rounded)

    def run_again(
        self, pricing: Pricing, bound_pricing: Pricing, available: Sequence[int]
    ) -> MasterResult | None:
        """Generate columns for other numbers of gangs, by kind; None: GLOP gave up.

        The columns so far are kept, and the first prices are those that they lead to:
        a few rounds are enough. The result has the cuts of this run alone.
        """
        self._data = structs.replace(self._data, available=tuple(available))
        self._restricted.limit_gangs(self._nothing, available)
        solved = self._restricted.solve()
        if solved is None:
            return None
        rounded = self._restricted.round(solved.pods, solved.floors)
        return self._generate(pricing, bound_pricing, rounded, again=True)

    def _generate(
        self,
        pricing: Pricing,
        bound_pricing: Pricing,
        rounded: RoundedPrices,
        *,
        again: bool = False,
    ) -> MasterResult:
        """Generate columns from these prices on; bounds are times SCALE."""
        self._cuts = []
        best = rounded
        bound: int | None = None
        shares: list[tuple[tuple[PatternUse, ...], float]] = []
        rounds = min(MAX_ROUNDS, MAX_PRICED_STEPS // pricing.work)
        for _ in range(max(1, rounds)):
            # First price: the best pattern of each class, and what a node earns by it.
            # Any prices give a bound, and a cut that says what all nodes can take.
            patterns, earned = self._price(pricing, rounded.prices)
            if bound_pricing is not pricing:
                earned = bound_pricing.find_best(rounded.prices)[0].tolist()
            total = self._add_cut(rounded.prices, earned)
            available = self._data.available
            new_bound = self._restricted.bound(rounded, total, self._nothing, available)
            if bound is None or new_bound < bound:
                bound, best = new_bound, rounded
            # Then let the program choose, now between more columns.
            uses = zip(range(len(patterns)), patterns, self._data.sizes, strict=True)
            is_any_new = self.add_columns(list(uses))
            solved = self._restricted.solve()
            if solved is None:
                break
            # Read now: a later round may end without a solution.
            shares = self._restricted.read_columns()
            # Stop where nothing new came, or nothing more can: value and bound meet.
            value = solved.worth
            if not is_any_new or bound / SCALE - value < GAP * max(1.0, abs(value)):
                break
            if is_stopped():
                break
            # Finally take its duals as the next prices.
            rounded = self._restricted.round(solved.pods, solved.floors)
        is_short = again and (bound or 0) // SCALE < self._weigh_all_gangs()
        count = FEW_PERTURBATIONS if is_short else PERTURBATIONS
        self._price_nearby(best.prices, min(count, rounds), pricing, bound_pricing)
        return MasterResult(
            bound=(bound or 0) // SCALE,
            columns=tuple(
                MasterColumn(uses, share) for uses, share in shares if share > IN_USE
            ),
            patterns=tuple(tuple(reversed(of_class)) for of_class in self._patterns),
            cuts=tuple(self._cuts),
            prices=best.prices,
            gains=self._restricted.weigh_gangs(best),
        )

    def _weigh_all_gangs(self) -> int:
        """Add up what all gangs would be worth."""
        pairs = zip(self._objective.gangs, self._data.available, strict=True)
        return sum(worth * count for worth, count in pairs)

    def _price_nearby(
        self, prices: Prices, count: int, pricing: Pricing, bound_pricing: Pricing
    ) -> None:
        """Price at slightly different prices, for patterns that are nearly as good.

        Whole numbers need them; and each such price gives one more cut.
        """
        for perturbed in perturb(prices, count, PERTURBED_PERCENT):
            if is_stopped():
                return
            _, earned = self._price(pricing, perturbed)
            if bound_pricing is pricing:
                self._add_cut(perturbed, earned)

    def _price(
        self, pricing: Pricing, prices: Prices
    ) -> tuple[list[Pattern], list[int]]:
        """Price patterns once: the best of each class, and what a node earns by it."""
        earned, patterns = pricing.find_best(prices)
        for patterns_of_class, pattern in zip(self._patterns, patterns, strict=True):
            patterns_of_class[pattern] = None
        return patterns, earned.tolist()

    def _add_cut(self, prices: Prices, earned: Sequence[int]) -> int:
        """Note what all nodes earn at most at these prices; `earned`: by class."""
        total: int = sum(map(mul, self._data.sizes, earned))
        self._cuts.append(Cut(prices.members, total))
        return total


def perturb(prices: Prices, count: int, most: int) -> Iterator[Prices]:
    """Vary prices a little, always in the same ways: for patterns nearly as good.

    `most`: by how many percent at most.
    """
    numbers = LinearCongruential(1)
    for _ in range(count):
        members = []
        for price in prices.members:
            percent = numbers.below(2 * most + 1) - most
            members.append(max(0, price + price * percent // 100))
        yield structs.replace(prices, members=tuple(members))
