"""The steps of a batch with its node resources, as finely as there is room for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from msgspec import Struct, structs

from solver.engines.pattern.columns.pricing import Prices, Pricing
from solver.engines.pattern.states.graph import Graph, NodeClass
from solver.engines.pattern.states.resources import (
    LimitedResource,
    ResourceLevels,
    find_limited_resources,
    find_scarce_resources,
    to_levels,
)
from solver.engines.pattern.states.steps import Steps
from solver.errors import TooManyStepsError
from solver.kinds.demand import Demand

COARSEST = 1 << 12
"""How much coarser than need be node resources are counted at most."""
FINE, COARSER = 4, 16
"""Up to the first each try counts twice as coarsely, then so many times."""


class Grid(Struct, frozen=True):
    """Steps, and the resources that their levels are of."""

    classes: tuple[NodeClass, ...]
    """Node classes of the graph; classes that begin in one point are merged."""
    steps: Steps
    """Of answers."""
    bound_steps: Steps
    """Of bounds; the same where levels are as fine as need be."""
    resources: tuple[LimitedResource, ...]
    """With the unit of a level."""


def build_grid(
    demand: Demand, graph: Graph, *, keeps_all: bool, coarseness: int = 1
) -> Grid:
    """Lay out the steps, in coarser levels where they are too many.

    `keeps_all`: what is left over has a value, so no amount is capped; nor is one where
    pods without devices may use it. `coarseness`: how coarsely at first.

    Raises:
        TooManyStepsError: even in the coarsest.
    """
    members, classes = demand.member_kinds, graph.classes
    free = [node_class.free for node_class in classes]
    roots = [node_class.state for node_class in classes]
    needs = [member.needs for member in members]
    cap_is_endless = keeps_all or graph.has_loops
    # The resources that matter are those that limit what devices could use. Where more
    # than devices use them, or what is left over has a value, any limit counts.
    if cap_is_endless:
        expected = [kind.member.needs for kind in demand.expected]
        states = len(graph.states)
        resources = find_limited_resources(free, states, [*needs, *expected])
    else:
        caps_of = _bound_use_by_state(demand, graph)
        resources = find_scarce_resources(free, roots, needs, caps_of)

    def make_steps(coarseness: int, *, round_up: bool) -> Steps:
        levels = to_levels(
            resources,
            free,
            roots,
            needs,
            coarseness=coarseness,
            round_up=round_up,
            cap_is_endless=cap_is_endless,
        )
        return Steps(graph, members, levels, roots)

    coarseness, steps, bound_steps = _make_as_fine_as_possible(make_steps, coarseness)
    coarse_resources = tuple(
        LimitedResource(resource.index, resource.unit * coarseness, resource.caps)
        for resource in resources
    )
    merged = _merge_equal_classes(classes, steps, bound_steps)
    return Grid(merged, steps, bound_steps, coarse_resources)


class _MakeSteps(Protocol):
    """Makes the steps of a batch at a coarseness."""

    def __call__(self, coarseness: int, *, round_up: bool) -> Steps: ...


def _make_as_fine_as_possible(
    make_steps: _MakeSteps, coarseness: int
) -> tuple[int, Steps, Steps]:
    """Count ever more coarsely until there is room for all steps.

    Returns the coarseness, the steps of answers and those of bounds. Coarse levels need
    both: pods are rounded up for answers and down for bounds.
    """
    while True:
        try:
            steps = make_steps(coarseness, round_up=True)
            if coarseness == 1:
                return coarseness, steps, steps
            return coarseness, steps, make_steps(coarseness, round_up=False)
        except TooManyStepsError:
            coarseness *= 2 if coarseness < FINE else COARSER
            if coarseness > COARSEST:
                raise


def _merge_equal_classes(
    classes: Sequence[NodeClass], steps: Steps, bound_steps: Steps
) -> tuple[NodeClass, ...]:
    """Merge classes whose nodes can come to the same, and so the roots of the steps."""
    pairs = zip(steps.roots.tolist(), bound_steps.roots.tolist(), strict=True)
    equal: dict[tuple[int, int], list[int]] = {}
    for owner, roots in enumerate(pairs):
        equal.setdefault(roots, []).append(owner)
    firsts = [owners[0] for owners in equal.values()]
    steps.roots = steps.roots[firsts]
    if bound_steps is not steps:
        bound_steps.roots = bound_steps.roots[firsts]
    return tuple(
        structs.replace(
            classes[owners[0]],
            kinds=tuple(kind for owner in owners for kind in classes[owner].kinds),
        )
        for owners in equal.values()
    )


def _bound_use_by_state(demand: Demand, graph: Graph) -> Callable[[int], Sequence[int]]:
    """Make a function that bounds how much of a resource each state could ever use.

    It prices pods by what they need of it: the most that all devices of a state earn.
    """
    members, states = demand.member_kinds, range(len(graph.states))
    no_levels = ResourceLevels(((),) * len(members), ((),) * len(states), ())
    steps = Steps(graph, members, no_levels, list(states))

    def bound_use(resource: int) -> Sequence[int]:
        prices = Prices(tuple(member.needs[resource] for member in members))
        used: list[int] = Pricing(steps).compute_values(prices)[steps.roots].tolist()
        return used

    return bound_use
