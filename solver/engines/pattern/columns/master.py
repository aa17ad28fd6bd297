"""Prices for pods: patterns come and go until no node could earn more.

A linear program chooses how often each cluster of node classes plays each round of
patterns, and which gangs are in; its prices are rounded to a grid and every node class
answers with its best pattern. Whatever the prices, what the nodes earn at most plus
what gangs are worth beyond their pods bounds every answer from above (Lagrange), so
nothing rests on the program's tolerance.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct, structs

from solver.engines.glop import Program
from solver.engines.pattern.columns.objective import Measure, Reached, combined
from solver.engines.pattern.columns.pricing import Pattern, Prices, Pricing
from solver.kinds.demand import GangKind

SCALE = 1 << 12
"""Prices are multiples of 1 / SCALE."""
ROUNDS = 200
PRICED = 200_000_000
"""Rows that are looked at in one run."""
SHAKES = 24
"""Times that prices are varied afterwards, for more patterns to choose from."""
SHAKEN = 40
"""By how many percent at most."""


class Side(Struct, frozen=True):
    """The batch and the nodes as the master sees them."""

    gangs: tuple[GangKind, ...]
    available: tuple[int, ...]
    """Gangs of each kind."""
    members: int
    """How many kinds of member there are."""
    sizes: tuple[int, ...]
    """Nodes of each class."""
    clusters: tuple[tuple[int, ...], ...]
    """Classes that play together."""


Used = tuple[int, Pattern, int]
"""(class, pattern, nodes that use it)."""


class Play(Struct, frozen=True):
    """Patterns for all nodes of a cluster, and how much of the cluster plays them."""

    cluster: int
    used: tuple[Used, ...]
    share: float


class Cut(Struct, frozen=True):
    """At these prices the nodes earn no more: sum(prices * pods) <= earned."""

    prices: tuple[int, ...]
    """By member kind."""
    earned: int


class Priced(Struct, frozen=True):
    """What the master found for one measure."""

    bound: int
    """No answer is worth more."""
    plays: tuple[Play, ...]
    seen: tuple[tuple[Pattern, ...], ...]
    """The patterns that were best for each class at some prices, latest first."""
    cuts: tuple[Cut, ...]


class Master:
    """Column generation for one measure, keeping what earlier goals reached."""

    def __init__(
        self, side: Side, measure: Measure, reached: Sequence[Reached]
    ) -> None:
        self._side = side
        self._measure = measure
        self._reached = tuple(reached)
        clusters, members = len(side.clusters), side.members
        self._program = Program(
            [
                *((None, 1.0) for _ in range(clusters)),
                *((0.0, None) for _ in range(members)),
                *((float(item.value), None) for item in reached),
            ]
        )
        self._member_row, self._reached_row = clusters, clusters + members
        for g, kind in enumerate(side.gangs):
            entries = [(self._member_row + m, -float(pods)) for m, pods in kind.members]
            for number, item in enumerate(self._reached):
                if item.measure.gangs[g]:
                    worth = float(item.measure.gangs[g])
                    entries.append((self._reached_row + number, worth))
            most = float(side.available[g])
            self._program.add(float(measure.gangs[g]), entries, most)
        self._plays: dict[tuple[int, tuple[Used, ...]], None] = {}
        self._seen: list[dict[Pattern, None]] = [{} for _ in side.sizes]
        self._cuts: list[Cut] = []

    def offer(self, used: Sequence[Used]) -> bool:
        """Offer patterns for all nodes; gives whether any cluster plays them anew."""
        owners = {
            c: n for n, cluster in enumerate(self._side.clusters) for c in cluster
        }
        sorted_out: list[list[Used]] = [[] for _ in self._side.clusters]
        for item in used:
            if item[1].steps:
                sorted_out[owners[item[0]]].append(item)
        new = False
        for cluster, items in enumerate(sorted_out):
            key = (cluster, tuple(items))
            if items and key not in self._plays:
                self._plays[key] = None
                self._add(cluster, items)
                new = True
        return new

    def _add(self, cluster: int, used: Sequence[Used]) -> None:
        supply: dict[int, int] = {}
        rank = kept = touched = 0
        for _, pattern, nodes in used:
            for member, pods in pattern.counts:
                supply[member] = supply.get(member, 0) + pods * nodes
            rank += pattern.rank * nodes
            kept += pattern.kept * nodes
            touched += nodes

        def worth(measure: Measure) -> float:
            return float(
                measure.kept * kept - measure.rank * rank - measure.touched * touched
            )

        entries = [(cluster, 1.0)]
        entries.extend((self._member_row + m, float(n)) for m, n in supply.items())
        for number, item in enumerate(self._reached):
            entries.append((self._reached_row + number, worth(item.measure)))
        self._program.add(worth(self._measure), entries, None)

    def run(self, pricing: Pricing, bounding: Pricing, first: Sequence[int]) -> Priced:
        """Price patterns until none is better; `first`: prices to begin with.

        `bounding` prices what no answer exceeds, where `pricing` leaves something out.
        """
        multipliers = [0] * len(self._reached)
        best = prices = self._prices([price / SCALE for price in first], multipliers)
        bound: int | None = None
        values: list[float] = []
        rounds = min(ROUNDS, PRICED // pricing.work)
        for _ in range(max(1, rounds)):
            patterns, earned = self._look(pricing, prices)
            if bounding is not pricing:
                earned = bounding.best(prices)[0].tolist()
            self._cut(prices, earned)
            total = self._bound(prices, multipliers, earned)
            if bound is None or total < bound:
                bound, best = total, prices
            used = zip(range(len(patterns)), patterns, self._side.sizes, strict=True)
            new = self.offer(list(used))
            solved = self._program.solve()
            if solved is None:
                break
            values, duals = solved
            reached = self._program.value(values)
            if not new or bound / SCALE - reached < 1e-6 * max(1.0, abs(reached)):
                break
            members = duals[self._member_row : self._reached_row]
            multipliers = [
                max(0, round(-price * SCALE)) for price in duals[self._reached_row :]
            ]
            prices = self._prices([-price for price in members], multipliers)
        for shaken in _shaken(best, min(SHAKES, rounds)):
            _, earned = self._look(pricing, shaken)
            if bounding is pricing:
                self._cut(shaken, earned)
        return Priced(
            bound=(bound or 0) // SCALE,
            plays=self._played(values[len(self._side.gangs) :]),
            seen=tuple(tuple(reversed(mine)) for mine in self._seen),
            cuts=tuple(self._cuts),
        )

    def _look(
        self, pricing: Pricing, prices: Prices
    ) -> tuple[list[Pattern], list[int]]:
        """Price patterns once: the best of each class, and what a node earns by it."""
        earned, patterns = pricing.best(prices)
        for mine, pattern in zip(self._seen, patterns, strict=True):
            mine[pattern] = None
        return patterns, earned.tolist()

    def _cut(self, prices: Prices, earned: Sequence[int]) -> None:
        """Remember what all nodes earn at most at these prices."""
        self._cuts.append(Cut(prices.members, self._over_nodes(earned)))

    def _played(self, shares: Sequence[float]) -> tuple[Play, ...]:
        """Say what the program plays; what came after its last answer has no share."""
        return tuple(
            Play(cluster, used, share)
            for (cluster, used), share in zip(self._plays, shares, strict=False)
            if share > 1e-9
        )

    def _prices(self, members: Sequence[float], multipliers: Sequence[int]) -> Prices:
        """Round the prices of pods to the grid; goals count by their multipliers."""
        sums = self._combined(multipliers)
        return Prices(
            members=tuple(max(0, round(price * SCALE)) for price in members),
            rank=sums.rank,
            kept=sums.kept,
            touched=sums.touched,
        )

    def _over_nodes(self, earned: Sequence[int]) -> int:
        """Add up what all nodes earn; `earned`: by class."""
        pairs = zip(self._side.sizes, earned, strict=True)
        return sum(nodes * value for nodes, value in pairs)

    def _combined(self, multipliers: Sequence[int]) -> Measure:
        earlier = [
            (factor, item.measure)
            for factor, item in zip(multipliers, self._reached, strict=True)
        ]
        return combined(self._measure, SCALE, earlier)

    def _bound(
        self, prices: Prices, multipliers: Sequence[int], earned: Sequence[int]
    ) -> int:
        """Bound the measure from above, times SCALE."""
        sums = self._combined(multipliers)
        total = self._over_nodes(earned)
        for g, kind in enumerate(self._side.gangs):
            cost = sum(prices.members[m] * pods for m, pods in kind.members)
            total += self._side.available[g] * max(0, sums.gangs[g] - cost)
        kept = sum(
            factor * item.value
            for factor, item in zip(multipliers, self._reached, strict=True)
        )
        return total - kept


def _shaken(prices: Prices, count: int) -> Iterator[Prices]:
    """Vary prices a little, always in the same ways: for patterns nearly as good."""
    state = 1
    for _ in range(count):
        members = []
        for price in prices.members:
            state = state * 6364136223846793005 + 1442695040888963407 & (1 << 64) - 1
            share = (state >> 33) % (2 * SHAKEN + 1) - SHAKEN
            members.append(max(0, price + price * share // 100))
        yield structs.replace(prices, members=tuple(members))
