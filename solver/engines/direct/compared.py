"""How much the constraints of gangs add to a direct model.

Each has a term for each group of devices that it is about, on each node: so many rules
over many nodes are a large model, though there are few kinds of pod.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from solver.kinds.demand import Demand
from solver.kinds.shapes import NodeView


def count_compared(demand: Demand, nodes: Iterable[NodeView]) -> int:
    """Count the terms of constraints across pods in a model over these nodes."""
    rules_by_ask = Counter(
        demand.member_kinds[kind].asks[ask].kind
        for rules in demand.gang_rules
        for rule in rules.sets
        for kind, ask, _ in rule.uses
    )
    if not rules_by_ask:
        return 0
    shapes = Counter(view.shape for view in nodes)
    return sum(
        count * rules * (group.mask >> ask & 1)
        for shape, count in shapes.items()
        for group in shape.groups
        for ask, rules in rules_by_ask.items()
    )
