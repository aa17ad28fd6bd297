"""Random choices of one case, and the names of what was chosen.

A case is about a few traits: everything else stays plain, so that pairs of traits meet
often and most worlds can serve somebody. Knows nothing of devices or claims.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any, TypeVar

T = TypeVar("T")
Json = dict[str, Any]

TRAITS = (
    "admin",
    "alternatives",
    "all",
    "binding",
    "config",
    "counters",
    "derived",
    "distinct",
    "gates",
    "generations",
    "groups",
    "large",
    "lists",
    "match",
    "odd",
    "order",
    "pools",
    "selectors",
    "shares",
    "skip",
    "sparse",
    "state",
    "taints",
    "where",
)
"""What a case can be about."""

_WEIGHTS = {"odd": 3, "gates": 3, "large": 1, "generations": 5}
_USUAL = 6
_COUNTS = (1, 2, 2, 3, 3, 3, 4, 4, 5, 6)


class Draw:
    """The choices of one seed; asked in the same order it answers the same."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        self.tags: set[str] = set()
        self.traits: set[str] = set()
        wanted = self.one(_COUNTS)
        weights = [_WEIGHTS.get(trait, _USUAL) for trait in TRAITS]
        while len(self.traits) < wanted:
            self.traits.add(self._random.choices(TRAITS, weights)[0])
        if "groups" in self.traits:
            self.traits.add("counters")

    def about(self, trait: str) -> bool:
        """Whether this case is about that trait."""
        return trait in self.traits

    def tag(self, name: str) -> None:
        """Remember that the case has this in it."""
        self.tags.add(name)

    def chance(self, probability: float) -> bool:
        """Say yes that often."""
        return self._random.random() < probability

    def says(self, trait: str, probability: float) -> bool:
        """Say yes that often in a case about the trait, and never in another."""
        return trait in self.traits and self.chance(probability)

    def one(self, choices: Sequence[T]) -> T:
        """Choose one."""
        return self._random.choice(choices)

    def number(self, low: int, high: int) -> int:
        """Choose a number, both ends included."""
        return self._random.randint(low, high)

    def some(self, choices: Sequence[T], low: int, high: int) -> list[T]:
        """Choose that many different ones, in random order."""
        count = min(self.number(low, high), len(choices))
        return self._random.sample(choices, count)

    def shuffled(self, values: Sequence[T]) -> list[T]:
        """Give the same values in another order."""
        return self._random.sample(values, len(values))
