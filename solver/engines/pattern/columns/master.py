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

from msgspec import Struct, structs

from solver.engines.glop import Program
from solver.engines.pattern.columns.objective import (
    Floor,
    Objective,
    add_up,
)
from solver.engines.pattern.columns.pricing import Pattern, Prices, Pricing
from solver.engines.pseudo_random import LinearCongruential
from solver.kinds.demand import GangKind
from solver.stopping import is_stopped

SCALE = 1 << 12
"""Prices are multiples of 1 / SCALE."""
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


class MasterData(Struct, frozen=True):
    """The batch and the nodes as the master programs see them."""

    gangs: tuple[GangKind, ...]
    available: tuple[int, ...]
    """Gangs of each kind."""
    members: int
    """How many kinds of member there are."""
    sizes: tuple[int, ...]
    """Nodes of each class."""
    clusters: tuple[tuple[int, ...], ...]
    """Classes whose nodes are in the same columns."""


PatternUse = tuple[int, Pattern, int]
"""(class, pattern, nodes that use it)."""


class MasterColumn(Struct, frozen=True):
    """Patterns for all nodes of a cluster, and how much of the cluster uses them."""

    cluster: int
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
    """Those that the last program uses."""
    patterns: tuple[tuple[Pattern, ...], ...]
    """The patterns that were best for each class at some prices, latest first."""
    cuts: tuple[Cut, ...]
    prices: Prices
    """Those of the bound."""
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
        # The rows: a cluster's columns are used once in all; gangs have no more pods
        # than columns supply; earlier goals keep their floors.
        clusters, members = len(data.clusters), data.members
        self._first_member_row, self._first_floor_row = clusters, clusters + members
        self._program = Program(
            [
                *((None, 1.0) for _ in range(clusters)),
                *((0.0, None) for _ in range(members)),
                *((float(floor.value), None) for floor in floors),
            ]
        )
        # The columns: gangs now, in their order; those of clusters later.
        for g, kind in enumerate(data.gangs):
            entries = [
                (self._first_member_row + m, -float(pods)) for m, pods in kind.members
            ]
            for number, floor in enumerate(self._floors):
                if floor.objective.gangs[g]:
                    worth = float(floor.objective.gangs[g])
                    entries.append((self._first_floor_row + number, worth))
            most = float(data.available[g])
            self._program.add(float(objective.gangs[g]), entries, most)
        self._columns: dict[tuple[int, tuple[PatternUse, ...]], None] = {}
        """(cluster, uses), in the order of the program."""
        self._patterns: list[dict[Pattern, None]] = [{} for _ in data.sizes]
        self._cuts: list[Cut] = []

    def add_columns(self, uses: Sequence[PatternUse]) -> bool:
        """Add patterns for all nodes, a column a cluster; whether any is new."""
        cluster_of = {
            owner: number
            for number, cluster in enumerate(self._data.clusters)
            for owner in cluster
        }
        uses_by_cluster: list[list[PatternUse]] = [[] for _ in self._data.clusters]
        for use in uses:
            owner, pattern, _ = use
            if pattern.steps:
                uses_by_cluster[cluster_of[owner]].append(use)
        is_any_new = False
        for cluster, uses_of_cluster in enumerate(uses_by_cluster):
            column = (cluster, tuple(uses_of_cluster))
            if uses_of_cluster and column not in self._columns:
                self._columns[column] = None
                self._add_to_program(cluster, uses_of_cluster)
                is_any_new = True
        return is_any_new

    def _add_to_program(self, cluster: int, uses: Sequence[PatternUse]) -> None:
        """Add a column: what its patterns supply of pods, and what they are worth."""
        supply: dict[int, int] = {}
        rank = slack = touched = 0
        for _, pattern, nodes in uses:
            for member, pods in pattern.counts:
                supply[member] = supply.get(member, 0) + pods * nodes
            rank += pattern.rank * nodes
            slack += pattern.slack * nodes
            touched += nodes

        def weigh(objective: Objective) -> float:
            costs = objective.rank * rank + objective.touched * touched
            return float(objective.slack * slack - costs)

        entries = [(cluster, 1.0)]
        entries.extend(
            (self._first_member_row + m, float(n)) for m, n in supply.items()
        )
        for number, floor in enumerate(self._floors):
            entries.append((self._first_floor_row + number, weigh(floor.objective)))
        self._program.add(weigh(self._objective), entries, None)

    def run(
        self, pricing: Pricing, bound_pricing: Pricing, first_prices: Sequence[int]
    ) -> MasterResult:
        """Generate columns until none is better; `first_prices`: times SCALE.

        `bound_pricing` prices what no answer exceeds, where `pricing` leaves
        something out.
        """
        multipliers = [0] * len(self._floors)
        prices = self._round_prices([p / SCALE for p in first_prices], multipliers)
        return self._generate(pricing, bound_pricing, prices, multipliers)

    def run_again(
        self, pricing: Pricing, bound_pricing: Pricing, available: Sequence[int]
    ) -> MasterResult | None:
        """Generate columns for other numbers of gangs, by kind; None: GLOP gave up.

        The columns so far are kept, and the first prices are those that they lead to:
        a few rounds are enough. The result has the cuts of this run alone.
        """
        self._data = structs.replace(self._data, available=tuple(available))
        for g, most in enumerate(available):
            self._program.limit(g, 0.0, float(most))
        solved = self._program.solve()
        if solved is None:
            return None
        prices, multipliers = self._to_prices(solved.prices)
        return self._generate(pricing, bound_pricing, prices, multipliers, again=True)

    def _generate(
        self,
        pricing: Pricing,
        bound_pricing: Pricing,
        prices: Prices,
        multipliers: list[int],
        *,
        again: bool = False,
    ) -> MasterResult:
        """Generate columns from these prices on.

        Multipliers (what a unit of each floor is worth) and bounds are times SCALE.
        """
        self._cuts = []
        best_prices, best_multipliers = prices, multipliers
        bound: int | None = None
        values: list[float] = []
        rounds = min(MAX_ROUNDS, MAX_PRICED_STEPS // pricing.work)
        for _ in range(max(1, rounds)):
            # First price: the best pattern of each class, and what a node earns by it.
            # Any prices give a bound, and a cut that says what all nodes can take.
            patterns, earned = self._price(pricing, prices)
            if bound_pricing is not pricing:
                earned = bound_pricing.find_best(prices)[0].tolist()
            self._add_cut(prices, earned)
            new_bound = self._compute_bound(prices, multipliers, earned)
            if bound is None or new_bound < bound:
                bound = new_bound
                best_prices, best_multipliers = prices, multipliers
            # Then let the program choose, now between more columns.
            uses = zip(range(len(patterns)), patterns, self._data.sizes, strict=True)
            is_any_new = self.add_columns(list(uses))
            solved = self._program.solve()
            if solved is None:
                break
            # Read now: a later round may end without a solution.
            values = self._program.read_values()
            # Stop where nothing new came, or nothing more can: value and bound meet.
            value = solved.worth
            if not is_any_new or bound / SCALE - value < GAP * max(1.0, abs(value)):
                break
            if is_stopped():
                break
            # Finally take its duals as the next prices.
            prices, multipliers = self._to_prices(solved.prices)
        is_short = again and (bound or 0) // SCALE < self._weigh_all_gangs()
        count = FEW_PERTURBATIONS if is_short else PERTURBATIONS
        self._price_nearby(best_prices, min(count, rounds), pricing, bound_pricing)
        return MasterResult(
            bound=(bound or 0) // SCALE,
            columns=self._find_columns_in_use(values[len(self._data.gangs) :]),
            patterns=tuple(tuple(reversed(of_class)) for of_class in self._patterns),
            cuts=tuple(self._cuts),
            prices=best_prices,
            gains=self._weigh_gangs(best_prices, best_multipliers),
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

    def _to_prices(self, duals: Sequence[float]) -> tuple[Prices, list[int]]:
        """Round the program's dual prices: of pods, and the floors' multipliers.

        These rows are at least something, so their duals are negative.
        """
        members = duals[self._first_member_row : self._first_floor_row]
        floors = duals[self._first_floor_row :]
        multipliers = [max(0, round(-dual * SCALE)) for dual in floors]
        return self._round_prices([-dual for dual in members], multipliers), multipliers

    def _price(
        self, pricing: Pricing, prices: Prices
    ) -> tuple[list[Pattern], list[int]]:
        """Price patterns once: the best of each class, and what a node earns by it."""
        earned, patterns = pricing.find_best(prices)
        for patterns_of_class, pattern in zip(self._patterns, patterns, strict=True):
            patterns_of_class[pattern] = None
        return patterns, earned.tolist()

    def _add_cut(self, prices: Prices, earned: Sequence[int]) -> None:
        """Note what all nodes earn at most at these prices."""
        self._cuts.append(Cut(prices.members, self._sum_over_nodes(earned)))

    def _find_columns_in_use(self, shares: Sequence[float]) -> tuple[MasterColumn, ...]:
        """Find the columns that the program uses.

        Those that came after its last answer are beyond `shares` and not in use.
        """
        return tuple(
            MasterColumn(cluster, uses, share)
            for (cluster, uses), share in zip(self._columns, shares, strict=False)
            if share > IN_USE
        )

    def _round_prices(
        self, members: Sequence[float], multipliers: Sequence[int]
    ) -> Prices:
        """Round the prices of pods to the grid; goals count by their multipliers."""
        objective = self._add_objectives(multipliers)
        return Prices(
            members=tuple(max(0, round(price * SCALE)) for price in members),
            rank=objective.rank,
            slack=objective.slack,
            touched=objective.touched,
        )

    def _sum_over_nodes(self, earned: Sequence[int]) -> int:
        """Add up what all nodes earn; `earned`: by class."""
        pairs = zip(self._data.sizes, earned, strict=True)
        return sum(nodes * value for nodes, value in pairs)

    def _add_objectives(self, multipliers: Sequence[int]) -> Objective:
        """Add the floors' objectives to the current one, by their multipliers."""
        earlier = [
            (factor, floor.objective)
            for factor, floor in zip(multipliers, self._floors, strict=True)
        ]
        return add_up(self._objective, SCALE, earlier)

    def _compute_bound(
        self, prices: Prices, multipliers: Sequence[int], earned: Sequence[int]
    ) -> int:
        """Bound the objective from above, times SCALE (Lagrange).

        What nodes earn, and what gangs are worth beyond the price of their pods, less
        what the floors demand anyway.
        """
        total = self._sum_over_nodes(earned)
        gains = self._weigh_gangs(prices, multipliers)
        for gain, available in zip(gains, self._data.available, strict=True):
            total += available * max(0, gain)
        demanded = sum(
            factor * floor.value
            for factor, floor in zip(multipliers, self._floors, strict=True)
        )
        return total - demanded

    def _weigh_gangs(
        self, prices: Prices, multipliers: Sequence[int]
    ) -> tuple[int, ...]:
        """Weigh a gang of each kind by the objective and, as they count, the floors."""
        worth = self._add_objectives(multipliers).gangs
        return weigh_gangs(self._data, worth, prices)


def weigh_gangs(
    data: MasterData, worth: Sequence[int], prices: Prices
) -> tuple[int, ...]:
    """Weigh a gang of each kind: its worth less the price of its pods."""
    return tuple(
        worth[g] - sum(prices.members[m] * pods for m, pods in kind.members)
        for g, kind in enumerate(data.gangs)
    )


def count_pods(data: MasterData, gangs: Sequence[int]) -> tuple[int, ...]:
    """Count the pods of some gangs by member kind; `gangs`: how many of each kind."""
    pods = [0] * data.members
    for kind, count in zip(data.gangs, gangs, strict=True):
        for member, each in kind.members:
            pods[member] += each * count
    return tuple(pods)


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
