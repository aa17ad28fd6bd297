"""Whether an objective is what trying everything found, and proven where it must be."""

from __future__ import annotations

from solver.decision import TierValue
from solver.tiers import Tier

LATER = (Tier.LEFTOVER, Tier.NODES)
"""What need not be proven."""


def disagreement(
    said: tuple[TierValue, ...], tiers: list[Tier], best: tuple[int, ...]
) -> str:
    """Compare an objective with the best value, number by number, until one is open."""
    left = list(said)
    for tier, value in zip(tiers, best, strict=True):
        if not left or left[0].tier != tier:
            if value:
                return f"tier {tier}: brute {value}, not reported"
            continue
        found = left.pop(0)
        sign = 1 if tier in (Tier.GANGS, Tier.EXTRA) else -1
        if sign * found.value > value:
            return f"tier {tier}: brute {value}, model {found.value}"
        if found.bound != found.value:
            is_valid = found.bound is None or sign * found.bound >= value
            return "" if tier in LATER and is_valid else f"tier {tier} is not proven"
        if sign * found.value != value:
            return f"tier {tier}: brute {value}, model {found.value}, said proven"
    return ""
