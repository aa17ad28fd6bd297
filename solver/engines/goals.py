"""The goals of a batch, in order, and the answer of an engine to them.

Tier 1: for each priority, highest first, the weight of the gangs that are in. Tier 2:
the ranks of the alternatives that pods take, the fewer the better. Tier 3: how much
slack value is lost (what the free devices are worth to expected pods), if something is
expected. Tier 5: nodes touched.
"""

from __future__ import annotations

from msgspec import Struct

from solver.decision import Status
from solver.kinds.demand import Demand
from solver.placement import GangPlacement

Goal = tuple[int, int | None]
"""(tier, priority)."""
IN, RANKS, SLACK, TOUCHED = 1, 2, 3, 5


class Effort(Struct, frozen=True, kw_only=True):
    """How large the models of a search were, and what they cost."""

    models: int = 0
    variables: int = 0
    constraints: int = 0
    patterns: int = 0
    work: float = 0.0
    """Deterministic time."""


class EngineResult(Struct, frozen=True, kw_only=True):
    """The answer of one engine to one batch."""

    status: Status
    placements: tuple[GangPlacement, ...] = ()
    bounds: dict[Goal, int | None] = {}
    """Of each goal; None: not proven. A goal of tier 1 or 2 that is left out is
    reached, a later one was not pursued."""
    effort: Effort = Effort()


def goals_of(demand: Demand, tiers: int) -> list[Goal]:
    """List the goals of a batch up to a tier, in order."""
    priorities = {kind.priority for kind in demand.gang_kinds}
    goals: list[Goal] = [
        (IN, priority) for priority in sorted(priorities, reverse=True)
    ]
    later = {
        RANKS: demand.has_alternatives,
        SLACK: bool(demand.expected),
        TOUCHED: True,
    }
    goals += [(tier, None) for tier, is_pursued in later.items() if is_pursued]
    return [goal for goal in goals if goal[0] <= tiers]
