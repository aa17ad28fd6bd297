"""From counts back to names, by a fixed rule.

Of each kind the oldest gangs are in; their pods go to the nodes in name order; a pod
takes the devices of each group in kube-scheduler's order. So one solution of the
model always means one allocation.
"""

from __future__ import annotations

from collections.abc import Iterator

from contracts.ids import DeviceID
from solver.engines.cpsat import Solved
from solver.engines.direct.variables import Lot, Placements
from solver.kinds.demand import Demand
from solver.placement import GangPlacement, PodPlacement


def extract(placements: Placements, solved: Solved) -> tuple[GangPlacement, ...]:
    """Name the devices of every gang that is in, most urgent gang first."""
    places = _places(placements, solved)
    admitted = sorted(
        gang
        for kind, members in placements.demand.gang_kinds.items()
        for gang in members[: solved.value(placements.gangs[kind])]
    )
    queues = [iter(found) for found in places]
    return tuple(_placed(placements.demand, gang, queues) for gang in admitted)


def _placed(
    demand: Demand, gang: int, queues: list[Iterator[PodPlacement]]
) -> GangPlacement:
    members = demand.gangs[gang].members
    kinds = demand.member_kinds_of[gang]
    return GangPlacement(
        gang,
        tuple(
            tuple(next(queues[kind]) for _ in range(member.count))
            for member, kind in zip(members, kinds, strict=True)
        ),
    )


def _places(placements: Placements, solved: Solved) -> list[list[PodPlacement]]:
    """List the places of each member kind, in the order of the nodes' names."""
    found: list[list[PodPlacement]] = [[] for _ in placements.demand.member_kinds]
    by_node: dict[int, list[Lot]] = {}
    for lot in placements.lots:
        if solved.value(lot.pods):
            by_node.setdefault(lot.node, []).append(lot)
    left: dict[object, list[DeviceID]] = {}
    for node in sorted(by_node, key=lambda index: placements.nodes[index].name):
        for lot in by_node[node]:
            found[lot.kind].extend(_Splitting(placements, lot, solved, left).places())
    return found


class _Splitting:
    """Splits the devices of a lot among its pods; `left`: those not given out yet."""

    def __init__(
        self,
        placements: Placements,
        lot: Lot,
        solved: Solved,
        left: dict[object, list[DeviceID]],
    ) -> None:
        self._lot = lot
        self._member = placements.member_of(lot)
        self._view = placements.nodes[lot.node]
        self._left = left
        self._pods = solved.value(lot.pods)
        self._picks = {a: solved.value(pick) for a, pick in lot.picks.items()}
        self._budget = {
            key: solved.value(variable) * factor
            for key, (variable, factor) in lot.uses.items()
        }
        self._values = self._chosen_values(solved)

    def places(self) -> list[PodPlacement]:
        """Give each pod its devices."""
        by_request = [self._chosen_asks(r) for r in range(self._member.requests)]
        found = []
        for pod in range(self._pods):
            asks = [chosen[pod] for chosen in by_request]
            later = [
                chosen[pod:].count(a)
                for a, chosen in zip(asks, by_request, strict=True)
            ]
            devices = [
                self._devices(a, pods, self._values[pod])
                for a, pods in zip(asks, later, strict=True)
            ]
            ranks = tuple(self._member.asks[a].rank for a in asks)
            found.append(PodPlacement(self._view.name, tuple(devices), ranks))
        return found

    def _chosen_asks(self, request: int) -> list[int]:
        """Say which alternative of a request each pod takes, best first."""
        asks = [a for a in self._member.alternatives(request) if a in self._picks]
        return [a for a in asks for _ in range(self._picks[a])]

    def _devices(
        self, a: int, pods: int, values: dict[int, list[tuple[int, int]]]
    ) -> tuple[DeviceID, ...]:
        """Take one pod's devices; `pods`: how many of the lot still take this ask."""
        ask, taken = self._member.asks[a], list[tuple[int, DeviceID]]()
        shapes, groups = self._view.shape.groups, self._view.groups
        budgets = [
            (g, self._budget[a, g])
            for g, _ in self._lot.serving(a)
            if all(v in shapes[g].values[column] for column, v in values.get(a, ()))
        ]
        # A device that all remaining pods must share comes first.
        budgets.sort(key=lambda item: -(shapes[item[0]].is_shareable * item[1] // pods))
        for g, budget in budgets:
            wanted = budget
            if not ask.all_devices:
                wanted = min(wanted, ask.count - len(taken))
            if shapes[g].is_shareable:
                wanted = min(wanted, 1)
            order = dict(zip(groups[g].devices, groups[g].positions, strict=True))
            names = self._take(g, wanted, keep=shapes[g].is_shareable or ask.admin)
            taken.extend((order[name], name) for name in names)
            self._budget[a, g] -= wanted
        return tuple(name for _, name in sorted(taken))

    def _take(self, group: int, wanted: int, *, keep: bool) -> list[DeviceID]:
        """Take the first devices of a group; `keep`: others may have them, too."""
        devices = self._view.groups[group].devices
        if keep:
            return list(devices[:wanted])
        key = self._view.shape.groups[group].identity or (self._lot.node, group)
        left = self._left.setdefault(key, list(devices))
        taken = left[:wanted]
        del left[:wanted]
        return taken

    def _chosen_values(self, solved: Solved) -> list[dict[int, list[tuple[int, int]]]]:
        """Say for each pod of a lot which values its devices must have.

        One entry a pod: ask -> (column, value) of each matchAttribute over it.
        """
        choices: list[dict[int, list[tuple[int, int]]]] = [
            {} for _ in range(self._pods)
        ]
        for c, constraint in enumerate(self._member.constraints):
            values = [
                v
                for (cc, v), variable in self._lot.value_picks.items()
                if cc == c
                for _ in range(solved.value(variable))
            ]
            for choice, value in zip(choices, values, strict=False):
                for a, column in constraint.scope:
                    choice.setdefault(a, []).append((column, value))
        return choices
