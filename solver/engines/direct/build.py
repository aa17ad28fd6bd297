"""The direct model of a batch on some nodes, built by its rules and not yet solved."""

from __future__ import annotations

from solver.engines import cp_model
from solver.engines.direct.places import Places
from solver.engines.direct.rules import RULES
from solver.engines.direct.variables import Placements
from solver.kinds.demand import Demand
from solver.kinds.shapes import NodeView


def build(
    demand: Demand, nodes: tuple[NodeView, ...], places: Places | None = None
) -> Placements:
    """Build the model of placing the batch on these nodes; `places`: only there."""
    placements = Placements(cp_model.CpModel(), demand, nodes, places)
    for rule in RULES:
        rule(placements)
    return placements


def require_all_gangs(placements: Placements) -> None:
    """Require all pods of all gangs: infeasible where they do not fit together."""
    for kind, gangs in placements.demand.gang_kinds.items():
        placements.model.add(placements.gangs[kind] == len(gangs))
        for member, pods in kind.extra:
            extra = placements.extra[kind, member]
            placements.model.add(extra == pods * len(gangs))


def fix(placements: Placements, variable: cp_model.IntVar, value: int) -> None:
    """Leave a variable one value."""
    domain = placements.model.proto.variables[variable.index].domain
    domain[0] = domain[1] = value
