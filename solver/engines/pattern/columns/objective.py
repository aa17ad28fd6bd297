"""What is better than what, over gangs and patterns: one measure a goal.

A measure is linear in how often each gang kind is in and each pattern is used, so every
goal of the objective is priced, bounded and decided by the same code.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from solver.engines.goals import IN, RANKS, SLACK, TOUCHED, Goal
from solver.engines.pattern.columns.pricing import Pattern
from solver.kinds.demand import Demand


class Measure(Struct, frozen=True):
    """sum(gangs * in) - rank * ranks + kept * (value kept) - touched * nodes."""

    gangs: tuple[int, ...]
    """Worth of a gang, by gang kind."""
    rank: int = 0
    kept: int = 0
    touched: int = 0


class Reached(Struct, frozen=True):
    """A measure of an earlier goal, and what must be kept of it."""

    measure: Measure
    value: int


def worth_of(measure: Measure, pattern: Pattern) -> int:
    """Weigh one node that uses a pattern."""
    touched = measure.touched if pattern.steps else 0
    return measure.kept * pattern.kept - measure.rank * pattern.rank - touched


def worth_at_most(measure: Measure, available: Sequence[int]) -> int:
    """Bound a measure by all gangs for nothing; `available`: gangs of each kind.

    Ranks and nodes only cost, and of what is left there is never more than before.
    """
    pairs = zip(measure.gangs, available, strict=True)
    return sum(max(0, worth) * gangs for worth, gangs in pairs)


def combined(
    current: Measure, scale: int, earlier: Sequence[tuple[int, Measure]]
) -> Measure:
    """Add measures up: the current one times `scale`, earlier ones times theirs."""
    parts = [(scale, current), *earlier]
    return Measure(
        gangs=tuple(
            sum(factor * measure.gangs[g] for factor, measure in parts)
            for g in range(len(current.gangs))
        ),
        rank=sum(factor * measure.rank for factor, measure in parts),
        kept=sum(factor * measure.kept for factor, measure in parts),
        touched=sum(factor * measure.touched for factor, measure in parts),
    )


def measure_of(demand: Demand, goal: Goal) -> Measure:
    """Say what is to be maximised for a goal."""
    tier, priority = goal
    if tier == IN:
        return Measure(
            tuple(
                kind.weight if kind.priority == priority else 0
                for kind in demand.gang_kinds
            )
        )
    return Measure(
        (0,) * len(demand.gang_kinds),
        rank=int(tier == RANKS),
        kept=int(tier == SLACK),
        touched=int(tier == TOUCHED),
    )
