"""Patterns for a neighborhood: priced with all other nodes as they are.

Prices of all nodes at once find patterns for a cluster that may split every node. Some
classes alone, between others that are settled, need patterns of their own: those that
go with what the others give.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from solver.engines.pattern.columns.master import perturb
from solver.engines.pattern.columns.model import PatternModel
from solver.engines.pattern.columns.objective import Floor, Objective
from solver.engines.pattern.columns.pricing import Pattern, Prices
from solver.engines.pattern.columns.restricted_master import (
    RestrictedMaster,
    each_alone,
)

ROUNDS = 12
"""Times that prices are asked at most."""
PERTURBATIONS, PERTURBED_PERCENT = 6, 15
"""Times that prices are varied afterwards, and by how many percent at most."""
MOST_PRICINGS = ROUNDS + PERTURBATIONS


class LocalResult(Struct, frozen=True):
    """What some classes could do while all others stay."""

    worth: float
    """Of the gangs that could be in, with fractions, less pods without a place."""
    patterns_by_class: dict[int, list[Pattern]]
    """The most useful first."""


class LocalMaster:
    """Column generation for some classes and all gangs; call `run` once.

    All objectives must be of gangs only.
    """

    def __init__(
        self,
        model: PatternModel,
        objective: Objective,
        floors: Sequence[Floor],
        supply: Sequence[int],
        patterns_by_class: Mapping[int, Sequence[Pattern]],
    ) -> None:
        """`supply`: pods that all other classes have places for, by member kind.

        `patterns_by_class`: of the classes that are free, to begin with.
        """
        sizes = model.data.sizes
        self._owners = tuple(patterns_by_class)
        # Pods without a place let floors be kept before there are patterns for them.
        self._restricted = RestrictedMaster(
            model.data,
            objective,
            floors,
            each_alone({owner: sizes[owner] for owner in self._owners}),
            supply=supply,
            without_place=model.costs_without_place,
        )
        self._restricted.add_patterns(patterns_by_class)
        self._pricing = model.pricing.among(self._owners)

    def run(self) -> LocalResult | None:
        """Price until nothing is better; None: GLOP gave up."""
        restricted = self._restricted
        for number in range(1, ROUNDS + 1):
            solved = restricted.solve()
            if solved is None:
                return None
            prices = restricted.round(solved.pods, solved.floors).prices
            earned, patterns = self._pricing.find_best(prices)
            priced = zip(self._owners, earned.tolist(), patterns, strict=True)
            is_any_new = restricted.add_better(priced, solved)
            if not is_any_new or number == ROUNDS:
                pool = self._vary(prices)
                return LocalResult(solved.worth, _sort(pool, solved.pods))
        return None

    def _vary(self, prices: Prices) -> Iterable[tuple[int, Pattern]]:
        """Add patterns that are nearly as good, which whole numbers need, too."""
        pool = dict.fromkeys(use[:2] for (use,) in self._restricted.columns)
        for perturbed in perturb(prices, PERTURBATIONS, PERTURBED_PERCENT):
            _, patterns = self._pricing.find_best(perturbed)
            pairs = zip(self._owners, patterns, strict=True)
            pool.update(dict.fromkeys(pair for pair in pairs if pair[1].steps))
        return pool


def _sort(
    pool: Iterable[tuple[int, Pattern]], prices: Sequence[float]
) -> dict[int, list[Pattern]]:
    """Sort the patterns of each class by what they earn at these prices."""
    ranked: dict[int, list[tuple[float, int, Pattern]]] = {}
    for number, (owner, pattern) in enumerate(pool):
        earned = sum(prices[member] * pods for member, pods in pattern.counts)
        ranked.setdefault(owner, []).append((-earned, number, pattern))
    return {
        owner: [pattern for _, _, pattern in sorted(of_class)]
        for owner, of_class in ranked.items()
    }
