"""Tier 1: for each priority, highest first, the weight of the gangs that are in."""

from __future__ import annotations

from ortools.sat.python import cp_model

from solver.direct.variables import Placements


def priorities(x: Placements) -> list[int]:
    """List the priorities of the batch, highest first."""
    return sorted({kind.priority for kind in x.gangs}, reverse=True)


def weight_in(x: Placements, priority: int) -> cp_model.LinearExprT:
    """Weigh the gangs of a priority that are in."""
    chosen = [kind for kind in x.gangs if kind.priority == priority]
    return cp_model.LinearExpr.weighted_sum(
        [x.gangs[kind] for kind in chosen], [kind.weight for kind in chosen]
    )
