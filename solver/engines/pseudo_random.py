"""Pseudo-random numbers: the same on every machine and in every version of Python."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

MULTIPLIER, INCREMENT = 6364136223846793005, 1442695040888963407
"""Of Knuth's generator for MMIX (TAOCP 2, 3.3.4)."""
MODULUS = 1 << 64
GOLDEN = 0x9E3779B97F4A7C15
"""The increment of SplitMix64 (Steele, Lea and Flood, 2014)."""
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


def draw_fractions(seed: int, count: int) -> NDArray[np.float64]:
    """Draw numbers from 0 to 1, as many at once (SplitMix64)."""
    numbers = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(GOLDEN)
    numbers += np.uint64(seed * GOLDEN % MODULUS)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        numbers = (numbers ^ (numbers >> np.uint64(shift))) * np.uint64(factor)
    numbers ^= numbers >> np.uint64(31)
    return (numbers >> np.uint64(11)).astype(np.float64) / float(1 << 53)


def shuffled(items: Sequence[int], seed: int) -> list[int]:
    """Put items into an order of the seed's own (Fisher-Yates)."""
    result, numbers = list(items), LinearCongruential(seed)
    for last in range(len(result) - 1, 0, -1):
        other = numbers.below(last + 1)
        result[last], result[other] = result[other], result[last]
    return result
