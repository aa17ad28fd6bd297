"""A batch as the pattern engine sees it: graph, grid, pricing, master; made once."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import structs

from solver.engines.pattern.columns.grid import build_grid
from solver.engines.pattern.columns.master_data import SCALE, MasterData
from solver.engines.pattern.columns.pricing import Prices, Pricing
from solver.engines.pattern.columns.slack_value import compute_slack_values
from solver.engines.pattern.states.graph import Graph, build_graph
from solver.kinds.demand import Demand
from solver.kinds.shapes import NodeKind

WITHOUT_PLACE = 10.0
"""What a pod without a place costs, by what it is worth."""
CLUSTERS = 64
"""Groups of node classes that the master tells apart at most."""


class PatternModel:
    """What all goals of one batch share.

    Raises, when it is made:
        GraphTooLargeError: another model must decide.
        TooManyPlacementsError: the same.
        TooManyStepsError: the same.
    """

    def __init__(
        self,
        demand: Demand,
        kinds: Sequence[NodeKind],
        *,
        values_slack: bool = False,
        coarseness: int = 1,
        graph: Graph | None = None,
    ) -> None:
        """`values_slack`: what is left over has a value, so nothing is left out.

        `coarseness`: how coarsely node resources are counted at first; 1: exactly.
        `graph`: what to choose from; None: all that nodes can come to.
        """
        self.demand = demand
        # First the graph of states, then its steps with the levels of resources.
        graph = graph or build_graph(demand, kinds, keeps_all=values_slack)
        grid = build_grid(demand, graph, keeps_all=values_slack, coarseness=coarseness)
        self.graph = structs.replace(graph, classes=grid.classes)
        self.steps = grid.steps
        self.is_exact = grid.bound_steps is grid.steps
        """True if node resources are counted as finely as need be."""
        self.slack_values = (
            compute_slack_values(demand, self.graph, grid) if values_slack else None
        )
        """What is left over at each point is worth."""
        # Then what prices the steps, and the master data that rests on first prices.
        self.pricing = self.bound_pricing = Pricing(self.steps, self.slack_values)
        """`bound_pricing` prices what no answer exceeds."""
        if not self.is_exact:
            self.bound_pricing = Pricing(grid.bound_steps)
        self.first_prices = spread_weights(demand)
        """Prices to begin with, by member kind, times SCALE."""
        self.costs_without_place = tuple(
            WITHOUT_PLACE * max(1.0, price / SCALE) for price in self.first_prices
        )
        """Of a pod, by member kind, where a program lets pods lack one."""
        self.devices = tuple(
            count_devices(demand, member) for member in range(len(demand.member_kinds))
        )
        """Devices of a pod, by member kind."""
        self.data = self._make_data()

    def _make_data(self) -> MasterData:
        """Number the gangs, and put classes that earn alike into clusters."""
        classes, demand = self.graph.classes, self.demand
        earned = self.pricing.find_best(Prices(self.first_prices))[0].tolist()
        order = sorted(range(len(classes)), key=lambda c: (earned[c], c))
        size = -(-len(order) // CLUSTERS) or 1
        return MasterData(
            gangs=tuple(demand.gang_kinds),
            available=tuple(map(len, demand.gang_kinds.values())),
            members=len(demand.member_kinds),
            sizes=tuple(node_class.size for node_class in classes),
            clusters=tuple(
                tuple(order[first : first + size])
                for first in range(0, len(order), size)
            ),
        )


def spread_weights(demand: Demand) -> tuple[int, ...]:
    """Spread what gangs are worth over their pods, by the devices these ask for."""
    worth_of = [0] * len(demand.member_kinds)
    pods_of = [0] * len(demand.member_kinds)
    for kind, gangs in demand.gang_kinds.items():
        devices = sum(count_devices(demand, m) * pods for m, pods in kind.members)
        for m, pods in kind.members:
            worth = kind.weight * count_devices(demand, m) * SCALE // devices
            worth_of[m] += worth * pods * len(gangs)
            pods_of[m] += pods * len(gangs)
    pairs = zip(worth_of, pods_of, strict=True)
    return tuple(worth // (pods or 1) for worth, pods in pairs)


def count_devices(demand: Demand, member: int) -> int:
    """Count the devices that a pod asks for; at least 1, so that it has a price."""
    return demand.member_kinds[member].worth
