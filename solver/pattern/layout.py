"""A batch laid out for the scale model: graph, grids, prices; made once."""

from __future__ import annotations

from collections.abc import Sequence

from solver.pattern.graph import Graph
from solver.pattern.master import SCALE, Side
from solver.pattern.pricing import Prices, Pricing
from solver.pattern.resources import Levels, levels_of, scarce
from solver.pattern.steps import Steps, TooManyStepsError
from solver.problem.demand import Demand
from solver.problem.nodes import NodeKind

CLUSTERS = 64
"""Groups of node classes that the master tells apart at most."""


COARSEST = 1 << 12
"""How much coarser than need be node resources are counted at most."""


class Layout:
    """What all goals of one batch share.

    Raises, when it is made:
        GraphTooLargeError: another model must decide.
        TooManyWaysError: the same.
        TooManyStepsError: the same.
    """

    def __init__(self, demand: Demand, kinds: Sequence[NodeKind]) -> None:
        self.demand = demand
        self.graph = Graph(demand, kinds)
        self.steps, self.outer = self._counted()
        """The steps of answers, and those of bounds: the same where they are exact."""
        self.pricing = Pricing(self.steps)
        self.bounding = self.pricing
        """Prices what no answer exceeds."""
        if not self.is_exact:
            self.bounding = Pricing(self.outer)
        self.first = first_prices(demand)
        """Prices to begin with, by member kind, times SCALE."""
        self.side = self._side()

    @property
    def is_exact(self) -> bool:
        """Whether node resources are counted as finely as need be."""
        return self.outer is self.steps

    def _counted(self) -> tuple[Steps, Steps]:
        """Lay out the steps; what devices alone could use caps node resources."""
        members, classes = self.demand.member_kinds, self.graph.classes
        free, roots = [item.free for item in classes], [item.state for item in classes]
        needs = [member.needs for member in members]
        states = range(len(self.graph.states))
        nothing = Levels(((),) * len(members), ((),) * len(states), ())
        alone = Steps(self.graph, members, nothing, list(states))

        def most(resource: int) -> list[int]:
            values = Pricing(alone).values(Prices(tuple(n[resource] for n in needs)))
            by_state: list[int] = values[alone.roots].tolist()
            return by_state

        resources = scarce(free, roots, needs, most)

        def counted(coarser: int, *, up: bool) -> Steps:
            levels = levels_of(resources, free, roots, needs, coarser=coarser, up=up)
            return Steps(self.graph, members, levels, roots)

        coarser = 1
        while True:
            try:
                steps = counted(coarser, up=True)
                return steps, steps if coarser == 1 else counted(coarser, up=False)
            except TooManyStepsError:
                coarser *= 2
                if coarser > COARSEST:
                    raise

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
        asked = sum(asked_by(demand, m) * count for m, count in kind.members) or 1
        for m, count in kind.members:
            worth = kind.weight * asked_by(demand, m) * SCALE // asked
            sums[m] += worth * count * len(gangs)
            pods[m] += count * len(gangs)
    return tuple(total // (n or 1) for total, n in zip(sums, pods, strict=True))


def asked_by(demand: Demand, member: int) -> int:
    """Count the devices of a pod with its first choices; at least 1."""
    asks = demand.member_kinds[member].asks
    return sum(max(1, ask.count) for ask in asks if not ask.rank)
