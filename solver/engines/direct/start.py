"""A known answer as the first solution of a direct model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from contracts.ids import DeviceID
from solver.engines import cp_model
from solver.engines.direct.variables import Lot, Placements
from solver.kinds.shapes import NodeView
from solver.placement import GangPlacement, PodPlacement

Hints = dict[int, tuple[cp_model.IntVar, int]]
"""By variable index."""


def hint_placements(placements: Placements, answer: Iterable[GangPlacement]) -> None:
    """Hint the variables of gangs, pods and devices; the solver finds the others."""
    for variable, value in _Start(placements).list_hints(answer):
        placements.model.add_hint(variable, value)


class _Start:
    """Counts what an answer comes to in the variables of a model."""

    def __init__(self, placements: Placements) -> None:
        self._placements = placements
        self._nodes = {view.name: node for node, view in enumerate(placements.nodes)}
        self._lots: dict[tuple[int, int], list[Lot]] = {}
        for lot in placements.lots:
            self._lots.setdefault((lot.kind, lot.node), []).append(lot)
        self._values: Hints = {}
        self._groups: dict[int, dict[DeviceID, int]] = {}

    def list_hints(
        self, answer: Iterable[GangPlacement]
    ) -> Iterator[tuple[cp_model.IntVar, int]]:
        """Go through the variables with their values; all others of lots are 0."""
        self._count_gangs(tuple(answer))
        for lot in self._placements.lots:
            terms = (variable for variable, _ in lot.uses.values())
            for variable in (lot.pods, *lot.picks.values(), *terms):
                self._values.setdefault(variable.index, (variable, 0))
            for variable in lot.value_picks.values():
                self._values.setdefault(variable.index, (variable, 0))
        yield from self._values.values()

    def _count_gangs(self, answer: tuple[GangPlacement, ...]) -> None:
        demand = self._placements.demand
        kind_of = {gang: k for k, gangs in demand.gang_kinds.items() for gang in gangs}
        for variable in (
            *self._placements.gangs.values(),
            *self._placements.extra.values(),
        ):
            self._values[variable.index] = (variable, 0)
        for item in answer:
            kind = kind_of[item.gang]
            self._add(self._placements.gangs[kind], 1)
            pods_of: Counter[int] = Counter()
            kinds = demand.kinds_of_pods(item.gang)
            for of_member, pods in zip(kinds, item.members, strict=True):
                for number, pod in zip(of_member, pods, strict=False):
                    pods_of[number] += 1
                    self._count_pod(number, pod)
            needed = dict(kind.members)
            for number, _ in kind.extra:
                more = pods_of[number] - needed.get(number, 0)
                self._add(self._placements.extra[kind, number], more)

    def _count_pod(self, kind: int, pod: PodPlacement) -> None:
        """Count a pod in the first lot of its kind and node that has room."""
        node = self._nodes.get(pod.node)
        if node is None:
            return
        lots = self._lots.get((kind, node), ())
        lot = next((each for each in lots if self._value(each.pods) < each.most), None)
        if lot is None:
            return
        view = self._placements.nodes[node]
        member, groups = self._placements.member_of(lot), self._group_of(node, view)
        self._add(lot.pods, 1)
        uses: list[tuple[int, int]] = []
        for request, devices in enumerate(pod.devices):
            ask = member.alternatives(request)[pod.alternatives[request]]
            pick = lot.picks.get(ask)
            if pick is not None and pick.index != lot.pods.index:
                self._add(pick, 1)
            uses += ((ask, groups[device]) for device in devices)
        own = {lot.pods.index, *(pick.index for pick in lot.picks.values())}
        for use in uses:
            variable, _ = lot.uses.get(use, (lot.pods, 1))
            if variable.index not in own:
                self._add(variable, 1)
        self._count_values(lot, view, uses)

    def _count_values(
        self, lot: Lot, view: NodeView, uses: list[tuple[int, int]]
    ) -> None:
        for number, constraint in enumerate(
            self._placements.member_of(lot).constraints
        ):
            columns = dict(constraint.scope)
            sets = [
                set(view.shape.groups[group].values[columns[ask]])
                for ask, group in uses
                if ask in columns
            ]
            if not constraint.distinct and sets:
                value = min(set.intersection(*sets), default=0)
                if (number, value) in lot.value_picks:
                    self._add(lot.value_picks[number, value], 1)

    def _group_of(self, node: int, view: NodeView) -> dict[DeviceID, int]:
        if node not in self._groups:
            self._groups[node] = {
                device: number
                for number, group in enumerate(view.groups)
                for device in group.devices
            }
        return self._groups[node]

    def _value(self, variable: cp_model.IntVar) -> int:
        return self._values.get(variable.index, (variable, 0))[1]

    def _add(self, variable: cp_model.IntVar, amount: int) -> None:
        value = self._value(variable) + amount
        self._values[variable.index] = (variable, value)
