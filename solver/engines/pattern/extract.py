"""From patterns back to names, by a fixed rule.

Of each kind the oldest gangs are in; patterns go to a class's nodes by name; a pod
takes the devices of each group in kube-scheduler's order. One solution means one
allocation.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from contracts.ids import DeviceID
from solver.engines.pattern.columns.integer_master import Solution
from solver.engines.pattern.columns.pricing import Pattern
from solver.engines.pattern.states.graph import Graph, NodeClass
from solver.engines.pattern.states.placing import Placement
from solver.engines.pattern.states.steps import Steps
from solver.kinds.demand import Demand, MemberKind
from solver.kinds.shapes import NodeView
from solver.placement import GangPlacement, PodPlacement

OrderedDevice = tuple[int, DeviceID]
"""(position in kube-scheduler's order, device)."""
OrderedNode = tuple[NodeView, tuple[int, ...]]
"""(node, index of its group for each group of its class's state)."""


def extract(
    demand: Demand, graph: Graph, steps: Steps, solution: Solution
) -> tuple[GangPlacement, ...]:
    """Name the devices of every gang that is in, most urgent gang first."""
    # First give each pattern its nodes, and each of its pods a place there.
    places: list[list[PodPlacement]] = [[] for _ in demand.member_kinds]
    for node, pattern in _assign_nodes(graph, solution):
        for member, place in _place_pods(demand, graph, steps, node, pattern):
            places[member].append(place)
    # Then hand the places of each member kind to the gangs, by the name of the node.
    queues = [iter(sorted(of_kind, key=lambda place: place.node)) for of_kind in places]
    gangs_in = sorted(
        gang
        for (_, gangs), count in zip(
            demand.gang_kinds.items(), solution.gangs, strict=True
        )
        for gang in gangs[:count]
    )
    return tuple(_place_gang(demand, gang, queues) for gang in gangs_in)


def _place_gang(
    demand: Demand, gang: int, queues: list[Iterator[PodPlacement]]
) -> GangPlacement:
    """Take a gang's places from the queues of its member kinds."""
    return GangPlacement(
        gang,
        tuple(
            tuple(next(queues[kind]) for kind in kinds)
            for kinds in demand.kinds_of_pods(gang)
        ),
    )


def _assign_nodes(
    graph: Graph, solution: Solution
) -> Iterator[tuple[OrderedNode, Pattern]]:
    """Give each pattern its nodes: those of a class by name."""
    uses_by_class: dict[int, list[tuple[Pattern, int]]] = {}
    for owner, pattern, nodes in solution.uses:
        uses_by_class.setdefault(owner, []).append((pattern, nodes))
    for owner, uses in sorted(uses_by_class.items()):
        free_nodes = iter(_sort_nodes(graph.classes[owner]))
        for pattern, count in sorted(uses, key=lambda use: use[0].steps):
            for _ in range(count):
                yield next(free_nodes), pattern


def _sort_nodes(node_class: NodeClass) -> list[OrderedNode]:
    nodes = [(node, order) for kind, order in node_class.kinds for node in kind.nodes]
    return sorted(nodes, key=lambda pair: pair[0].name)


def _place_pods(
    demand: Demand, graph: Graph, steps: Steps, ordered: OrderedNode, pattern: Pattern
) -> Iterator[tuple[int, PodPlacement]]:
    """Follow a pattern's steps on one node, handing out its devices."""
    members = [int(steps.member[step]) for step in pattern.steps]
    pods = [
        (demand.member_kinds[member], graph.edges[int(steps.edge[step])].placement)
        for member, step in zip(members, pattern.steps, strict=True)
    ]
    yield from zip(members, place_in_turn(ordered, pods), strict=True)


def place_in_turn(
    ordered: OrderedNode, pods: Iterable[tuple[MemberKind, Placement]]
) -> Iterator[PodPlacement]:
    """Name the devices of pods that came to a node one after the other."""
    node, order = ordered
    # By group of the current state: the devices that are left, and whether its one
    # device is shared and so stays.
    devices_left: list[list[OrderedDevice]] = []
    for index in order:
        group = node.groups[index]
        devices_left.append(list(zip(group.positions, group.devices, strict=True)))
    is_shared = [node.shape.groups[index].is_shareable for index in order]
    for kind, placement in pods:
        devices = _take_devices(kind, placement, devices_left, is_shared)
        yield PodPlacement(node.name, devices, placement.alternatives)
        # The next state has its groups in an order of its own, and fewer perhaps.
        devices_left = [devices_left[former] for former in placement.origin]
        is_shared = [is_shared[former] for former in placement.origin]


def _take_devices(
    member: MemberKind,
    placement: Placement,
    devices_left: list[list[OrderedDevice]],
    is_shared: list[bool],
) -> tuple[tuple[DeviceID, ...], ...]:
    """Take one pod's devices, request by request."""
    taken: list[list[OrderedDevice]] = [[] for _ in range(member.requests)]
    for index, group in placement.uses:
        devices = devices_left[group]
        device = devices[0] if is_shared[group] else devices.pop(0)
        taken[member.asks[index].request].append(device)
    return tuple(tuple(device for _, device in sorted(devices)) for devices in taken)
