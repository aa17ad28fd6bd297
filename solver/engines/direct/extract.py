"""From counts back to names, by a fixed rule.

Of each kind the oldest gangs are in; their pods go to the nodes in name order; a pod
takes the devices of each group in kube-scheduler's order. So one solution of the
model always means one allocation.
"""

from __future__ import annotations

from collections.abc import Iterator

from contracts.ids import DeviceID
from solver.engines.cpsat import Solved
from solver.engines.direct.shared_claims import settle_home
from solver.engines.direct.variables import Lot, Placements
from solver.kinds.demand import Demand, GangKind
from solver.placement import GangPlacement, PodPlacement

Free = dict[object, list[DeviceID]]
"""Devices that were not given out yet: by who they are, or by node and group."""


def extract(placements: Placements, solved: Solved) -> tuple[GangPlacement, ...]:
    """Name the devices of every gang that is in, most urgent gang first."""
    gangs_in = sorted(
        gang
        for kind, gangs in placements.demand.gang_kinds.items()
        for gang in gangs[: solved.value(placements.gangs[kind])]
    )
    queues = [iter(pods) for pods in _pods_by_kind(placements, solved)]
    demand = placements.demand
    kind_of = {gang: k for k, gangs in demand.gang_kinds.items() for gang in gangs}
    left = {key: solved.value(extra) for key, extra in placements.extra.items()}
    views = {view.name: view for view in placements.nodes}
    placed = (
        _take_pods_of_gang(demand, gang, queues, (kind_of[gang], left))
        for gang in gangs_in
    )
    return tuple(settle_home(placements, placement, views) for placement in placed)


def _take_pods_of_gang(
    demand: Demand,
    gang: int,
    queues: list[Iterator[PodPlacement]],
    extra: tuple[GangKind, dict[tuple[GangKind, int], int]],
) -> GangPlacement:
    """Take a gang's pods from the queues that the model's solution filled, by kind.

    Of the extra pods, by (gang kind, member kind), it takes as many as it asks for.
    """
    gang_kind, left = extra
    members = []
    for cells in demand.cells_of[gang]:
        pods = list[PodPlacement]()
        for cell in cells:
            key = (gang_kind, cell.kind)
            more = min(cell.pods - cell.least, left.get(key, 0))
            if more:
                left[key] -= more
            pods.extend(next(queues[cell.kind]) for _ in range(cell.least + more))
        members.append(tuple(pods))
    return GangPlacement(gang, tuple(members))


def _pods_by_kind(placements: Placements, solved: Solved) -> list[list[PodPlacement]]:
    """List the pods of each member kind, in the order of the nodes' names."""
    pods: list[list[PodPlacement]] = [[] for _ in placements.demand.member_kinds]
    lots_by_node: dict[int, list[Lot]] = {}
    for lot in placements.lots:
        if solved.value(lot.pods):
            lots_by_node.setdefault(lot.node, []).append(lot)
    free: Free = {}
    for node in sorted(lots_by_node, key=lambda index: placements.nodes[index].name):
        for lot in lots_by_node[node]:
            split = _LotSplit(placements, lot, solved, free)
            pods[lot.kind].extend(split.pods())
    return pods


class _LotSplit:
    """Splits the devices of a lot among its pods; `free` is shared by all lots.

    The lot's rules hold for any split (see `variables.py`), so pods take what the model
    counted group by group, in order.
    """

    def __init__(
        self, placements: Placements, lot: Lot, solved: Solved, free: Free
    ) -> None:
        self._lot = lot
        self._member = placements.member_of(lot)
        self._view = placements.nodes[lot.node]
        self._free = free
        self._count = solved.value(lot.pods)
        self._picks = {ask: solved.value(pick) for ask, pick in lot.picks.items()}
        self._budget = {
            ask_and_group: solved.value(variable) * factor
            for ask_and_group, (variable, factor) in lot.uses.items()
        }
        """(ask, group) -> devices that the lot may still take."""
        self._values = self._chosen_values(solved)

    def pods(self) -> list[PodPlacement]:
        """Give each pod its devices."""
        chosen = [self._chosen_asks(index) for index in range(self._member.requests)]
        pods = []
        for pod in range(self._count):
            asks = [asks_of_pods[pod] for asks_of_pods in chosen]
            remaining = [
                asks_of_pods[pod:].count(ask)
                for ask, asks_of_pods in zip(asks, chosen, strict=True)
            ]
            devices = tuple(
                self._devices(ask, count, self._values[pod])
                for ask, count in zip(asks, remaining, strict=True)
            )
            ranks = tuple(self._member.asks[ask].rank for ask in asks)
            pods.append(PodPlacement(self._view.name, devices, ranks))
        return pods

    def _chosen_asks(self, request: int) -> list[int]:
        """List the alternative of a request that each pod takes, best first."""
        asks = [ask for ask in self._member.alternatives(request) if ask in self._picks]
        return [ask for ask in asks for _ in range(self._picks[ask])]

    def _devices(
        self, ask: int, remaining: int, values: dict[int, list[tuple[int, int]]]
    ) -> tuple[DeviceID, ...]:
        """Take one pod's devices for one ask.

        `remaining` counts the pods of the lot that still take this ask, this one
        included.
        """
        alternative = self._member.asks[ask]
        shapes, groups = self._view.shape.groups, self._view.groups
        budgets = [
            (group, self._budget[ask, group])
            for group, _ in self._lot.serving(ask)
            if all(
                value in shapes[group].values[column]
                for column, value in values.get(ask, ())
            )
        ]

        def shares_due(entry: tuple[int, int]) -> int:
            group, budget = entry
            return shapes[group].is_shareable * budget // remaining

        # A device that all remaining pods must share comes first.
        budgets.sort(key=shares_due, reverse=True)
        taken = list[tuple[int, DeviceID]]()
        for group, budget in budgets:
            count = budget
            if not alternative.all_devices:
                count = min(count, alternative.count - len(taken))
            if shapes[group].is_shareable:
                count = min(count, 1)
            named = groups[group]
            positions = dict(zip(named.devices, named.positions, strict=True))
            keep = shapes[group].is_shareable or alternative.admin
            devices = self._take(group, count, keep=keep)
            taken.extend((positions[device], device) for device in devices)
            self._budget[ask, group] -= count
        return tuple(device for _, device in sorted(taken))

    def _take(self, group: int, count: int, *, keep: bool) -> list[DeviceID]:
        """Take the first devices of a group; `keep`: others may have them, too."""
        devices = self._view.groups[group].devices
        if keep:
            return list(devices[:count])
        key = self._view.shape.groups[group].identity or (self._lot.node, group)
        free = self._free.setdefault(key, list(devices))
        taken = free[:count]
        del free[:count]
        return taken

    def _chosen_values(self, solved: Solved) -> list[dict[int, list[tuple[int, int]]]]:
        """List for each pod of a lot which values its devices must have.

        One entry a pod: ask -> (column, value) of each matchAttribute over it.
        """
        values_of_pods: list[dict[int, list[tuple[int, int]]]] = [
            {} for _ in range(self._count)
        ]
        for number, constraint in enumerate(self._member.constraints):
            values = [
                value
                for (owner, value), pick in self._lot.value_picks.items()
                if owner == number
                for _ in range(solved.value(pick))
            ]
            for values_of_pod, value in zip(values_of_pods, values, strict=False):
                for ask, column in constraint.scope:
                    values_of_pod.setdefault(ask, []).append((column, value))
        return values_of_pods
