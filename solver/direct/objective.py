"""What is better than what: the goals as expressions over the direct model."""

from __future__ import annotations

from ortools.sat.python import cp_model

from solver.direct.variables import Placements, Term, total
from solver.goals import IN, Goal


def gain_of(x: Placements, goal: Goal) -> cp_model.LinearExprT:
    """Say what is to be maximised for a goal."""
    tier, priority = goal
    if tier == IN and priority is not None:
        return weight_in(x, priority)
    return -total(ranks(x))


def weight_in(x: Placements, priority: int) -> cp_model.LinearExprT:
    """Weigh the gangs of a priority that are in."""
    chosen = [kind for kind in x.gangs if kind.priority == priority]
    return cp_model.LinearExpr.weighted_sum(
        [x.gangs[kind] for kind in chosen], [kind.weight for kind in chosen]
    )


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
