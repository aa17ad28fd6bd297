"""Pseudo-random numbers: the same on every machine and in every version of Python."""

from __future__ import annotations

from collections.abc import Sequence

MULTIPLIER, INCREMENT = 6364136223846793005, 1442695040888963407
"""Of Knuth's generator for MMIX (TAOCP 2, 3.3.4)."""
MODULUS = 1 << 64
UPPER_BITS = 33
"""The low bits of such a generator have short periods and are left out."""


class LinearCongruential:
    """Numbers that depend on the seed alone."""

    def __init__(self, seed: int) -> None:
        self._state = seed

    def below(self, end: int) -> int:
        """Draw one of 0 to `end` - 1."""
        self._state = (self._state * MULTIPLIER + INCREMENT) % MODULUS
        return (self._state >> UPPER_BITS) % end


def shuffled(items: Sequence[int], seed: int) -> list[int]:
    """Put items into an order of the seed's own (Fisher-Yates)."""
    result, numbers = list(items), LinearCongruential(seed)
    for last in range(len(result) - 1, 0, -1):
        other = numbers.below(last + 1)
        result[last], result[other] = result[other], result[last]
    return result
