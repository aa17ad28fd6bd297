"""From counts back to names, by a fixed rule.

Of each kind the oldest gangs are in; their pods go to the nodes in name order; a pod
takes the devices of each group in kube-scheduler's order. So one solution of the
model always means one allocation.
"""

from __future__ import annotations

from collections.abc import Iterator

from contracts.ids import DeviceID
from solver.cpsat import Solved
from solver.direct.variables import Lot, Placements
from solver.places import Place, Placed
from solver.problem.demand import Demand, MemberKind


def extract(x: Placements, solved: Solved) -> tuple[Placed, ...]:
    """Name the devices of every gang that is in, most urgent gang first."""
    places = _places(x, solved)
    admitted = sorted(
        gang
        for kind, members in x.demand.gang_kinds.items()
        for gang in members[: solved.value(x.gangs[kind])]
    )
    queues = [iter(found) for found in places]
    return tuple(_placed(x.demand, gang, queues) for gang in admitted)


def _placed(demand: Demand, gang: int, queues: list[Iterator[Place]]) -> Placed:
    members = demand.gangs[gang].members
    kinds = demand.member_kinds_of[gang]
    return Placed(
        gang,
        tuple(
            tuple(next(queues[kind]) for _ in range(member.count))
            for member, kind in zip(members, kinds, strict=True)
        ),
    )


def _places(x: Placements, solved: Solved) -> list[list[Place]]:
    """List the places of each member kind, in the order of the nodes' names."""
    found: list[list[Place]] = [[] for _ in x.demand.member_kinds]
    by_node: dict[int, list[Lot]] = {}
    for lot in x.lots:
        if solved.value(lot.pods):
            by_node.setdefault(lot.node, []).append(lot)
    for node in sorted(by_node, key=lambda index: x.nodes[index].name):
        left = [list(group.devices) for group in x.nodes[node].groups]
        for lot in by_node[node]:
            found[lot.kind].extend(_pods(x, lot, left, solved))
    return found


def _pods(
    x: Placements, lot: Lot, left: list[list[DeviceID]], solved: Solved
) -> list[Place]:
    """Split the devices of a lot among its pods."""
    member, view = x.member_of(lot), x.nodes[lot.node]
    budget = {
        key: solved.value(variable) * factor
        for key, (variable, factor) in lot.uses.items()
    }
    places = []
    for values in _choices(lot, member, solved):
        devices = []
        for r, request in enumerate(member.requests):
            taken: list[DeviceID] = []
            for g, _ in lot.serving(r):
                group = view.shape.groups[g]
                if any(group.values[a] != v for a, v in values.get(r, ())):
                    continue
                wanted = budget[r, g]
                if not request.all_devices:
                    wanted = min(wanted, request.count - len(taken))
                taken.extend(left[g][:wanted])
                del left[g][:wanted]
                budget[r, g] -= wanted
            devices.append(tuple(taken))
        places.append(Place(view.name, tuple(devices)))
    return places


def _choices(
    lot: Lot, member: MemberKind, solved: Solved
) -> list[dict[int, list[tuple[int, int]]]]:
    """Say for each pod of a lot which values its requests' devices must have.

    One entry a pod: request -> (attribute, value) of each matchAttribute over it.
    """
    pods = solved.value(lot.pods)
    choices: list[dict[int, list[tuple[int, int]]]] = [{} for _ in range(pods)]
    for c, constraint in enumerate(member.constraints):
        values = [
            v
            for (cc, v), variable in lot.chosen.items()
            if cc == c
            for _ in range(solved.value(variable))
        ]
        for choice, value in zip(choices, values, strict=False):
            for r in constraint.requests:
                choice.setdefault(r, []).append((constraint.attribute, value))
    return choices
