"""A batch laid out for the scale model: graph, grids, prices; made once."""

from __future__ import annotations

from collections.abc import Sequence

from solver.engines.pattern.columns.grid import counted_steps
from solver.engines.pattern.columns.master import SCALE, Side
from solver.engines.pattern.columns.pricing import Prices, Pricing
from solver.engines.pattern.columns.slack_value import kept_values
from solver.engines.pattern.states.graph import Graph
from solver.kinds.demand import Demand
from solver.kinds.nodes import NodeKind

CLUSTERS = 64
"""Groups of node classes that the master tells apart at most."""


class Layout:
    """What all goals of one batch share; `keeps`: what is left over counts.

    `coarser`: how coarsely node resources are counted at first; 1: exactly.

    Raises, when it is made:
        GraphTooLargeError: another model must decide.
        TooManyWaysError: the same.
        TooManyStepsError: the same.
    """

    def __init__(
        self,
        demand: Demand,
        kinds: Sequence[NodeKind],
        *,
        keeps: bool = False,
        coarser: int = 1,
    ) -> None:
        self.demand = demand
        self.graph = Graph(demand, kinds, keeps=keeps)
        counted = counted_steps(demand, self.graph, keeps=keeps, coarser=coarser)
        self.steps = counted.steps
        self.is_exact = counted.outer is counted.steps
        """Whether node resources are counted as finely as need be."""
        self.kept = kept_values(demand, self.graph, counted) if keeps else None
        """What is left over at each point is worth."""
        self.pricing = self.bounding = Pricing(self.steps, self.kept)
        """`bounding` prices what no answer exceeds."""
        if not self.is_exact:
            self.bounding = Pricing(counted.outer)
        self.first = first_prices(demand)
        """Prices to begin with, by member kind, times SCALE."""
        self.side = self._side()

    def _side(self) -> Side:
        """Number the gangs, and put classes that earn alike into clusters."""
        classes, demand = self.graph.classes, self.demand
        earned = self.pricing.best(Prices(self.first))[0].tolist()
        order = sorted(range(len(classes)), key=lambda c: (earned[c], c))
        size = -(-len(order) // CLUSTERS) or 1
        return Side(
            gangs=tuple(demand.gang_kinds),
            available=tuple(map(len, demand.gang_kinds.values())),
            members=len(demand.member_kinds),
            sizes=tuple(item.size for item in classes),
            clusters=tuple(
                tuple(order[first : first + size])
                for first in range(0, len(order), size)
            ),
        )


def first_prices(demand: Demand) -> tuple[int, ...]:
    """Spread what gangs are worth over their pods by devices asked for."""
    sums = [0] * len(demand.member_kinds)
    pods = [0] * len(demand.member_kinds)
    for kind, gangs in demand.gang_kinds.items():
        asked = sum(asked_by(demand, m) * count for m, count in kind.members)
        for m, count in kind.members:
            worth = kind.weight * asked_by(demand, m) * SCALE // asked
            sums[m] += worth * count * len(gangs)
            pods[m] += count * len(gangs)
    return tuple(total // (n or 1) for total, n in zip(sums, pods, strict=True))


def asked_by(demand: Demand, member: int) -> int:
    """Count the devices that a pod asks for; at least 1, so that it has a price."""
    return max(1, demand.member_kinds[member].asked)
