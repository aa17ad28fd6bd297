"""What is better than what: the goals as expressions over the direct model."""

from __future__ import annotations

from ortools.sat.python import cp_model

from solver.engines.cpsat import Term, total
from solver.engines.direct.slack import value_kept
from solver.engines.direct.variables import Placements
from solver.engines.goals import IN, RANKS, SLACK, Goal


def gain_of(placements: Placements, goal: Goal) -> cp_model.LinearExprT | None:
    """Say what is to be maximised for a goal; None: the model cannot express it.

    May add variables; those that the goal does not need stay as they are.
    """
    tier, priority = goal
    if tier == IN and priority is not None:
        return weight_in(placements, priority)
    if tier == RANKS:
        return -total(ranks(placements))
    return value_kept(placements) if tier == SLACK else -total(touched(placements))


def weight_in(placements: Placements, priority: int) -> cp_model.LinearExprT:
    """Weigh the gangs of a priority that are in."""
    chosen = [kind for kind in placements.gangs if kind.priority == priority]
    return cp_model.LinearExpr.weighted_sum(
        [placements.gangs[kind] for kind in chosen], [kind.weight for kind in chosen]
    )


def first_choices_only(placements: Placements) -> None:
    """Rule out all alternatives but the first."""
    worse = ranks(placements)
    if worse:
        placements.model.add(total(worse) == 0)


def ranks(placements: Placements) -> list[Term]:
    """Count the ranks of the chosen alternatives over all pods; 0 is the first."""
    return [
        (pick, placements.member_of(lot).asks[a].rank)
        for lot in placements.lots
        for a, pick in lot.picks.items()
        if placements.member_of(lot).asks[a].rank
    ]


def touched(placements: Placements) -> list[Term]:
    """Count the nodes that any pod is placed on: pods[lot] <= most * touched[node]."""
    found: dict[int, cp_model.IntVar] = {}
    for lot in placements.lots:
        if lot.node not in found:
            found[lot.node] = placements.model.new_bool_var(f"touched[{lot.node}]")
        placements.model.add(lot.pods <= lot.most * found[lot.node])
    return [(node, 1) for node in found.values()]
