"""From loads back to names: devices of every pod, by a fixed rule.

Of gangs that nothing tells apart the oldest are in.
"""

from __future__ import annotations

from collections import defaultdict

from contracts.ids import DeviceID
from solver.engines.packing.batch import PackingBatch
from solver.engines.packing.loads import Loads, Spot
from solver.engines.packing.parts import part_view
from solver.engines.pattern.extract import place_in_turn
from solver.placement import GangPlacement, PodPlacement

Devices = tuple[tuple[DeviceID, ...], ...]
"""Of a slot, by its asks."""


def extract(batch: PackingBatch, loads: Loads) -> tuple[GangPlacement, ...]:
    """Name the devices of every gang that is in, by its number."""
    served = _Served(batch, loads)
    placements = []
    for gang, spots in sorted(_oldest_first(batch, loads).items()):
        placements.append(_place_gang(batch, gang, spots, served))
    return tuple(placements)


def _oldest_first(batch: PackingBatch, loads: Loads) -> dict[int, list[Spot]]:
    """Give the places of gangs that are alike to the oldest of them."""
    spots_of: dict[int, list[Spot]] = {}
    in_by_sort: dict[int, list[int]] = defaultdict(list)
    for gang in sorted(loads.gangs):
        in_by_sort[batch.sort_of[gang]].append(gang)
    for sort, gangs in in_by_sort.items():
        for oldest, gang in zip(batch.gangs_of[sort], gangs, strict=False):
            spots_of[oldest] = loads.gangs[gang]
    return spots_of


def _place_gang(
    batch: PackingBatch, gang: int, spots: list[Spot], served: _Served
) -> GangPlacement:
    members = batch.demand.gangs[gang].members
    pods: list[list[PodPlacement | None]] = [[None] * m.count for m in members]
    queues: dict[tuple[int, int], list[Spot]] = defaultdict(list)
    for spot in sorted(spots, key=lambda spot: spot.node, reverse=True):
        queues[spot.instance, spot.kind].append(spot)
    kinds = batch.demand.kinds_of_pods(gang)
    for number, instance in enumerate(batch.instances[gang]):
        for cell in instance.cells:
            for index in range(cell.first, cell.first + cell.pods):
                spot = queues[number, cell.kind].pop()
                kind = kinds[cell.member][index]
                pods[cell.member][index] = served.place(kind, spot)
    return GangPlacement(
        gang, tuple(tuple(pod for pod in own if pod is not None) for own in pods)
    )


class _Served:
    """The devices that parts chose for their slots, handed out to pods."""

    def __init__(self, batch: PackingBatch, loads: Loads) -> None:
        self._batch, self._loads = batch, loads
        self._left: dict[tuple[int, int], dict[int, list[Devices]]] = {}
        self._positions: dict[int, dict[DeviceID, int]] = {}

    def place(self, member: int, spot: Spot) -> PodPlacement:
        """Name the devices of a pod; `member`: its member kind."""
        batch = self._batch
        kind = batch.demand.member_kinds[member]
        found: list[list[DeviceID]] = [[] for _ in range(kind.requests)]
        parts: dict[int, list[int]] = defaultdict(list)
        for slot, part in spot.parts:
            parts[slot].append(part)
        for use in batch.uses[member]:
            for _ in range(use.count):
                devices = self._take(spot.node, parts[use.slot].pop(), use.slot)
                for ask, own in zip(use.asks, devices, strict=True):
                    found[kind.asks[ask].request] += own
        where = self._positions_on(spot.node)
        return PodPlacement(
            batch.nodes[spot.node].view.name,
            tuple(tuple(sorted(own, key=where.__getitem__)) for own in found),
            (0,) * kind.requests,
        )

    def _take(self, node: int, part: int, slot: int) -> Devices:
        left = self._left.get((node, part))
        if left is None:
            left = self._left[node, part] = self._choose(node, part)
        return left[slot].pop()

    def _choose(self, node: int, part: int) -> dict[int, list[Devices]]:
        batch, packed = self._batch, self._batch.nodes[node]
        slots = self._loads.served_by(node, part)
        shape = packed.shapes[part]
        order, placements = batch.states.place(shape, slots)
        view = part_view(packed.view, packed.pieces[part], shape)
        pods = [
            (batch.states.slots[slot], placement)
            for slot, placement in zip(slots, placements, strict=True)
        ]
        left: dict[int, list[Devices]] = defaultdict(list)
        placed = list(place_in_turn((view, order), pods))
        for slot, pod in zip(reversed(slots), reversed(placed), strict=True):
            left[slot].append(pod.devices)
        return left

    def _positions_on(self, node: int) -> dict[DeviceID, int]:
        known = self._positions.get(node)
        if known is None:
            known = self._positions[node] = {
                device: position
                for group in self._batch.nodes[node].view.groups
                for device, position in zip(group.devices, group.positions, strict=True)
            }
        return known
