"""The goals of a batch, in order, and what an engine found for them.

Tier 1: for each priority, highest first, the weight of the gangs that are in. Tier 2:
the ranks of the alternatives that pods take, the fewer the better. Tier 3: the value of
what is left over that is lost, if something is expected. Tier 5: nodes touched.
"""

from __future__ import annotations

from msgspec import Struct

from solver.decision import Status
from solver.kinds.demand import Demand
from solver.placement import Placed

Goal = tuple[int, int | None]
"""(tier, priority)."""
IN, RANKS, LEFT, TOUCHED = 1, 2, 3, 5


class Effort(Struct, frozen=True, kw_only=True):
    """How large the models of a search were, and what they cost."""

    models: int = 0
    variables: int = 0
    constraints: int = 0
    patterns: int = 0
    work: float = 0.0
    """Deterministic time."""


class Found(Struct, frozen=True, kw_only=True):
    """What one engine found."""

    status: Status
    placed: tuple[Placed, ...] = ()
    bounds: dict[Goal, int | None] = {}
    """Of each goal; None: not proven. A goal of tier 1 or 2 that is left out is
    reached, a later one was not pursued."""
    effort: Effort = Effort()


def goals_of(demand: Demand, tiers: int) -> list[Goal]:
    """List the goals of a batch up to a tier, in order."""
    priorities = {kind.priority for kind in demand.gang_kinds}
    found: list[Goal] = [
        (IN, priority) for priority in sorted(priorities, reverse=True)
    ]
    later = {
        RANKS: demand.has_alternatives,
        LEFT: bool(demand.expected),
        TOUCHED: True,
    }
    found += [(tier, None) for tier, counts in later.items() if counts]
    return [goal for goal in found if goal[0] <= tiers]
