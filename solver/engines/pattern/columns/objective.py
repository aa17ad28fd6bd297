"""What is better than what, over gangs and patterns: one objective for each goal.

An objective is linear in how often each gang kind is in and each pattern is used, so
every goal of the batch is priced, bounded and decided by the same code.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from solver.engines.goals import Goal
from solver.engines.pattern.columns.pricing import Pattern
from solver.kinds.demand import Demand
from solver.tiers import Tier


class Objective(Struct, frozen=True):
    """sum(gangs * in) - rank * ranks + slack * (slack value) - touched * nodes."""

    gangs: tuple[int, ...]
    """Worth of a gang, by gang kind."""
    rank: int = 0
    slack: int = 0
    touched: int = 0


class Floor(Struct, frozen=True):
    """The objective of an earlier goal, and what later answers must keep of it."""

    objective: Objective
    value: int


def weigh_pattern(objective: Objective, pattern: Pattern) -> int:
    """Weigh one node that uses a pattern."""
    touched = objective.touched if pattern.steps else 0
    return objective.slack * pattern.slack - objective.rank * pattern.rank - touched


def bound_trivially(objective: Objective, available: Sequence[int]) -> int:
    """Bound an objective by all gangs for nothing; `available`: gangs of each kind.

    Ranks and nodes only cost, and of what is left there is never more than before.
    """
    pairs = zip(objective.gangs, available, strict=True)
    return sum(max(0, worth) * gangs for worth, gangs in pairs)


def add_up(
    current: Objective, scale: int, earlier: Sequence[tuple[int, Objective]]
) -> Objective:
    """Add objectives up: the current one times `scale`, earlier ones times theirs."""
    parts = [(scale, current), *earlier]
    return Objective(
        gangs=tuple(
            sum(factor * objective.gangs[g] for factor, objective in parts)
            for g in range(len(current.gangs))
        ),
        rank=sum(factor * objective.rank for factor, objective in parts),
        slack=sum(factor * objective.slack for factor, objective in parts),
        touched=sum(factor * objective.touched for factor, objective in parts),
    )


def objective_of(demand: Demand, goal: Goal) -> Objective:
    """Write a goal of the batch as an objective, to be maximised."""
    tier, priority = goal
    if tier is Tier.GANGS:
        return Objective(
            tuple(
                kind.weight if kind.priority == priority else 0
                for kind in demand.gang_kinds
            )
        )
    return Objective(
        (0,) * len(demand.gang_kinds),
        rank=int(tier is Tier.ALTERNATIVES),
        slack=int(tier is Tier.LEFTOVER),
        touched=int(tier is Tier.NODES),
    )
