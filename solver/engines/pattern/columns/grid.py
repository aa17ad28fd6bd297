"""The steps of a batch with its node resources, as finely as there is room for."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import Struct

from solver.engines.pattern.columns.pricing import Prices, Pricing
from solver.engines.pattern.states.graph import Graph
from solver.engines.pattern.states.resources import (
    Levels,
    Resource,
    all_limited,
    levels_of,
    scarce,
)
from solver.engines.pattern.states.steps import Steps
from solver.errors import TooManyStepsError
from solver.kinds.demand import Demand

COARSEST = 1 << 12
"""How much coarser than need be node resources are counted at most."""
FINE, COARSER = 4, 16
"""Up to the first each try counts twice as coarsely, then so many times."""


class Counted(Struct, frozen=True):
    """Steps, and the resources that their levels are of."""

    steps: Steps
    """Of answers."""
    outer: Steps
    """Of bounds; the same where levels are as fine as need be."""
    resources: tuple[Resource, ...]
    """With the unit of a level."""


def counted_steps(
    demand: Demand, graph: Graph, *, keeps: bool, coarser: int = 1
) -> Counted:
    """Lay out the steps, in coarser levels where they are too many.

    `keeps`: what is left over counts, so no amount is capped; nor is one where pods
    without devices may use it. `coarser`: how coarsely at first.

    Raises:
        TooManyStepsError: even in the coarsest.
    """
    members, classes = demand.member_kinds, graph.classes
    free, roots = [item.free for item in classes], [item.state for item in classes]
    needs = [member.needs for member in members]
    endless = keeps or graph.has_loops
    if endless:
        coming = [kind.member.needs for kind in demand.expected]
        resources = all_limited(free, len(graph.states), [*needs, *coming])
    else:
        resources = scarce(free, roots, needs, _most(demand, graph))

    def counted(coarser: int, *, up: bool) -> Steps:
        levels = levels_of(
            resources, free, roots, needs, coarser=coarser, up=up, endless=endless
        )
        return Steps(graph, members, levels, roots)

    while True:
        try:
            steps = counted(coarser, up=True)
            outer = steps if coarser == 1 else counted(coarser, up=False)
        except TooManyStepsError:
            coarser *= 2 if coarser < FINE else COARSER
            if coarser > COARSEST:
                raise
            continue
        units = tuple(
            Resource(item.number, item.unit * coarser, item.most) for item in resources
        )
        return Counted(steps, outer, units)


def _most(demand: Demand, graph: Graph) -> Callable[[int], Sequence[int]]:
    """Say what the devices of each state could ever use of a resource."""
    members, states = demand.member_kinds, range(len(graph.states))
    nothing = Levels(((),) * len(members), ((),) * len(states), ())
    alone = Steps(graph, members, nothing, list(states))

    def most(resource: int) -> Sequence[int]:
        needs = Prices(tuple(member.needs[resource] for member in members))
        used: list[int] = Pricing(alone).values(needs)[alone.roots].tolist()
        return used

    return most
