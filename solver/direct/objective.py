"""What is better than what: the tiers, as expressions over the direct model.

Tier 1: for each priority, highest first, the weight of the gangs that are in. Tier 2:
the ranks of the alternatives that pods take, the fewer the better.
"""

from __future__ import annotations

from ortools.sat.python import cp_model

from solver.direct.variables import Placements, Term, total

Goal = tuple[int, int | None]
"""(tier, priority)."""


def priorities(x: Placements) -> list[int]:
    """List the priorities of the batch, highest first."""
    return sorted({kind.priority for kind in x.gangs}, reverse=True)


def weight_in(x: Placements, priority: int) -> cp_model.LinearExprT:
    """Weigh the gangs of a priority that are in."""
    chosen = [kind for kind in x.gangs if kind.priority == priority]
    return cp_model.LinearExpr.weighted_sum(
        [x.gangs[kind] for kind in chosen], [kind.weight for kind in chosen]
    )


def goals(x: Placements) -> list[tuple[Goal, cp_model.LinearExprT]]:
    """List what is to be maximised, one goal after the other."""
    found: list[tuple[Goal, cp_model.LinearExprT]] = [
        ((1, priority), weight_in(x, priority)) for priority in priorities(x)
    ]
    worse = ranks(x)
    if worse:
        found.append(((2, None), -total(worse)))
    return found


def first_choices_only(x: Placements) -> None:
    """Rule out all alternatives but the first."""
    worse = ranks(x)
    if worse:
        x.model.add(total(worse) == 0)


def ranks(x: Placements) -> list[Term]:
    """Count the ranks of the chosen alternatives over all pods; 0 is the first."""
    return [
        (pick, x.member_of(lot).asks[a].rank)
        for lot in x.lots
        for a, pick in lot.picks.items()
        if x.member_of(lot).asks[a].rank
    ]
