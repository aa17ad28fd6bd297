"""Linear programs are solved, and their bounds hold."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest

from tests.oracles.simplex import bound_above


def knapsack(worth: list[int], uses: list[int], there: int) -> Fraction:
    """Fill a knapsack by parts: what is worth most for its size first."""
    total = sum(
        (Fraction(w) for w, u in zip(worth, uses, strict=True) if not u), Fraction()
    )
    left = Fraction(there)
    pairs = [(w, u) for w, u in zip(worth, uses, strict=True) if u]
    for value, use in sorted(pairs, key=lambda pair: Fraction(-pair[0], pair[1])):
        part = min(Fraction(1), left / use)
        total += part * value
        left -= part * use
    return total


@pytest.mark.parametrize("seed", range(20))
def test_one_row_is_a_knapsack_by_parts(seed: int) -> None:
    draw = random.Random(seed)
    worth = [draw.randint(0, 20) for _ in range(draw.randint(1, 40))]
    uses = [draw.choice((0, 1, 2, 5, 9)) for _ in worth]
    there = draw.choice((0, 3, 10, 40))
    found = bound_above(worth, [(uses, there)])
    assert float(found) == pytest.approx(float(knapsack(worth, uses, there)))


def test_two_rows_trade_off() -> None:
    """A half of each variable is best: 2 a + b <= 1.5 and a + 2 b <= 1.5."""
    found = bound_above([3, 3], [([2, 1], 1.5), ([1, 2], 1.5)])
    assert float(found) == pytest.approx(3.0)


def test_without_rows_all_is_had() -> None:
    assert bound_above([3, 4], []) == 7


@pytest.mark.parametrize("seed", range(20))
def test_no_whole_choice_is_above_the_bound(seed: int) -> None:
    draw = random.Random(seed)
    worth = [draw.randint(0, 9) for _ in range(8)]
    rows = [
        ([draw.randint(0, 5) for _ in worth], draw.randint(0, 15)) for _ in range(3)
    ]
    best = 0
    for chosen in range(1 << len(worth)):
        own = [chosen >> number & 1 for number in range(len(worth))]
        if all(
            sum(u for u, is_in in zip(uses, own, strict=True) if is_in) <= there
            for uses, there in rows
        ):
            best = max(best, sum(w for w, i in zip(worth, own, strict=True) if i))
    assert bound_above(worth, rows) >= best
