"""Numbers that look random and never change."""

from __future__ import annotations

from collections import Counter

from solver.engines.pseudo_random import LinearCongruential, shuffled


def test_a_seed_gives_the_same_numbers_for_ever() -> None:
    """Answers depend on them: these were drawn when this was written."""
    numbers = LinearCongruential(1)
    assert [numbers.below(100) for _ in range(8)] == [74, 53, 96, 70, 34, 95, 30, 2]


def test_numbers_are_spread_evenly() -> None:
    """Each of ten comes about as often."""
    numbers = LinearCongruential(7)
    counts = Counter(numbers.below(10) for _ in range(10_000))
    assert sorted(counts) == list(range(10))
    assert all(900 < count < 1100 for count in counts.values())


def test_a_shuffle_keeps_all_items_in_an_order_of_its_seed() -> None:
    """Another seed is another order."""
    orders = {tuple(shuffled(range(20), seed)) for seed in range(50)}
    assert len(orders) == 50
    assert all(sorted(order) == list(range(20)) for order in orders)
    assert shuffled(range(20), 3) == shuffled(range(20), 3)
    assert shuffled((), 3) == []
