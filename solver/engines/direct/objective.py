"""What is better than what: the goals as expressions over the direct model."""

from __future__ import annotations

from solver.engines import cp_model
from solver.engines.cpsat import Term, total
from solver.engines.direct.gangs import count_preferences
from solver.engines.direct.slack import value_kept
from solver.engines.direct.variables import Placements
from solver.engines.goals import Goal
from solver.tiers import Tier


def gain_of(placements: Placements, goal: Goal) -> cp_model.LinearExprT | None:
    """Build what is to be maximised for a goal; None: the model cannot express it.

    May add variables; those that the goal does not need stay as they are.
    """
    tier, priority = goal
    if tier is Tier.GANGS and priority is not None:
        return weight_in(placements, priority)
    if tier is Tier.EXTRA:
        return total(
            [
                (extra, placements.demand.member_kinds[member].worth)
                for (kind, member), extra in placements.extra.items()
                if kind.priority == priority
            ]
        )
    if tier is Tier.ALTERNATIVES:
        return -total(count_ranks(placements))
    if tier is Tier.LEFTOVER:
        return value_kept(placements)
    if tier is Tier.TOPOLOGY:
        return -total(count_preferences(placements))
    return -total(count_touched(placements))


def weight_in(placements: Placements, priority: int) -> cp_model.LinearExprT:
    """Weigh the gangs of a priority that are in."""
    kinds = [kind for kind in placements.gangs if kind.priority == priority]
    return cp_model.LinearExpr.weighted_sum(
        [placements.gangs[kind] for kind in kinds], [kind.weight for kind in kinds]
    )


def allow_first_choices_only(placements: Placements) -> None:
    """Rule out all alternatives but the first."""
    ranks = count_ranks(placements)
    if ranks:
        placements.model.add(total(ranks) == 0)


def count_ranks(placements: Placements) -> list[Term]:
    """Count the ranks of the chosen alternatives over all pods; 0 is the first."""
    return [
        (pick, rank)
        for lot in placements.lots
        for ask, pick in lot.picks.items()
        if (rank := placements.member_of(lot).asks[ask].rank)
    ]


def count_touched(placements: Placements) -> list[Term]:
    """Count the nodes that any pod is placed on: pods[lot] <= most * touched[node]."""
    model = placements.model
    touched: dict[int, cp_model.IntVar] = {}
    for lot in placements.lots:
        if lot.node not in touched:
            touched[lot.node] = model.new_bool_var(f"touched[{lot.node}]")
        model.add(lot.pods <= lot.most * touched[lot.node])
    return [(node, 1) for node in touched.values()]
