"""The goals of a batch, in order, and the answer of an engine to them.

Gangs are a goal once for each priority, highest first, and so are the pods that some
may have besides; what is left over is one where something is expected.
"""

from __future__ import annotations

from msgspec import Struct

from solver.decision import Status
from solver.kinds.demand import Demand
from solver.placement import GangPlacement
from solver.tiers import Tier

Goal = tuple[Tier, int | None]
"""(tier, priority)."""


class Effort(Struct, frozen=True, kw_only=True):
    """How large the models of a search were, and what they cost."""

    models: int = 0
    variables: int = 0
    constraints: int = 0
    patterns: int = 0
    work: float = 0.0
    """Deterministic time."""

    def plus(self, other: Effort) -> Effort:
        """Add what another search cost; the size is that of the largest model."""
        return Effort(
            models=self.models + other.models,
            variables=max(self.variables, other.variables),
            constraints=max(self.constraints, other.constraints),
            patterns=self.patterns + other.patterns,
            work=round(self.work + other.work, 6),
        )


class EngineResult(Struct, frozen=True, kw_only=True):
    """The answer of one engine to one batch."""

    status: Status
    placements: tuple[GangPlacement, ...] = ()
    bounds: dict[Goal, int | None] = {}
    """By goal; None: not proven. Gangs or alternatives that are left out are
    reached, a later goal was not pursued."""
    effort: Effort = Effort()


def goals_of(demand: Demand, last: Tier) -> list[Goal]:
    """List the goals of a batch up to a tier, in order."""
    priorities = {kind.priority for kind in demand.gang_kinds}
    goals: list[Goal] = [
        (Tier.GANGS, priority) for priority in sorted(priorities, reverse=True)
    ]
    elastic = {kind.priority for kind in demand.gang_kinds if kind.extra}
    goals += [(Tier.EXTRA, priority) for priority in sorted(elastic, reverse=True)]
    later = {
        Tier.ALTERNATIVES: demand.has_alternatives,
        Tier.LEFTOVER: bool(demand.expected),
        Tier.TOPOLOGY: any(rules.has_preferences for rules in demand.gang_rules),
        Tier.NODES: True,
    }
    goals += [(tier, None) for tier, is_pursued in later.items() if is_pursued]
    return [goal for goal in goals if goal[0].place <= last.place]
