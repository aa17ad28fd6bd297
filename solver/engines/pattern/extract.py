"""From patterns back to names, by a fixed rule.

Of each kind the oldest gangs are in; patterns go to a class's nodes by name; a pod
takes the devices of each group in kube-scheduler's order. One choice means one
allocation.
"""

from __future__ import annotations

from collections.abc import Iterator

from contracts.ids import DeviceID
from solver.engines.pattern.columns.integer_master import Choice
from solver.engines.pattern.columns.pricing import Pattern
from solver.engines.pattern.states.graph import Graph, NodeClass
from solver.engines.pattern.states.placing import Placement
from solver.engines.pattern.states.steps import Steps
from solver.kinds.demand import Demand, MemberKind
from solver.kinds.nodes import NodeView
from solver.placement import GangPlacement, PodPlacement

Named = tuple[int, DeviceID]
"""(position in kube-scheduler's order, device)."""


def extract(
    demand: Demand, graph: Graph, steps: Steps, choice: Choice
) -> tuple[GangPlacement, ...]:
    """Name the devices of every gang that is in, most urgent gang first."""
    places: list[list[tuple[str, PodPlacement]]] = [[] for _ in demand.member_kinds]
    for node, order, pattern in _assigned(graph, choice):
        for member, place in _placed_on(demand, graph, steps, (node, order), pattern):
            places[member].append((node.name, place))
    queues = [iter(sorted(found, key=lambda item: item[0])) for found in places]
    admitted = sorted(
        gang
        for (_, gangs), count in zip(
            demand.gang_kinds.items(), choice.gangs, strict=True
        )
        for gang in gangs[:count]
    )
    return tuple(_placed(demand, gang, queues) for gang in admitted)


def _placed(
    demand: Demand, gang: int, queues: list[Iterator[tuple[str, PodPlacement]]]
) -> GangPlacement:
    members, kinds = demand.gangs[gang].members, demand.member_kinds_of[gang]
    return GangPlacement(
        gang,
        tuple(
            tuple(next(queues[kind])[1] for _ in range(member.count))
            for member, kind in zip(members, kinds, strict=True)
        ),
    )


def _assigned(
    graph: Graph, choice: Choice
) -> Iterator[tuple[NodeView, tuple[int, ...], Pattern]]:
    """Give each pattern its nodes: those of a class by name."""
    by_class: dict[int, list[tuple[Pattern, int]]] = {}
    for owner, pattern, nodes in choice.used:
        by_class.setdefault(owner, []).append((pattern, nodes))
    for owner, used in sorted(by_class.items()):
        free = _nodes(graph.classes[owner])
        for pattern, count in sorted(used, key=lambda item: item[0].steps):
            for _ in range(count):
                node, order = next(free)
                yield node, order, pattern


def _nodes(item: NodeClass) -> Iterator[tuple[NodeView, tuple[int, ...]]]:
    found = [(node, order) for kind, order in item.kinds for node in kind.nodes]
    return iter(sorted(found, key=lambda pair: pair[0].name))


def _placed_on(
    demand: Demand,
    graph: Graph,
    steps: Steps,
    place: tuple[NodeView, tuple[int, ...]],
    pattern: Pattern,
) -> Iterator[tuple[int, PodPlacement]]:
    """Follow a pattern's steps on one node, handing out its devices."""
    node, order = place
    left: list[list[Named]] = []
    for index in order:
        group = node.groups[index]
        left.append(list(zip(group.positions, group.devices, strict=True)))
    shared = [node.shape.groups[index].is_shareable for index in order]
    for row in pattern.steps:
        member = int(steps.member[row])
        way = graph.edges[int(steps.edge[row])].placement
        devices = _taken(demand.member_kinds[member], way, left, shared)
        yield member, PodPlacement(node.name, devices, way.alternatives)
        left = [left[before] for before in way.origin]
        shared = [shared[before] for before in way.origin]


def _taken(
    member: MemberKind, way: Placement, left: list[list[Named]], shared: list[bool]
) -> tuple[tuple[DeviceID, ...], ...]:
    """Take one pod's devices, request by request."""
    found: list[list[Named]] = [[] for _ in range(member.requests)]
    for a, group in way.uses:
        named = left[group][0] if shared[group] else left[group].pop(0)
        found[member.asks[a].request].append(named)
    return tuple(tuple(device for _, device in sorted(items)) for items in found)
