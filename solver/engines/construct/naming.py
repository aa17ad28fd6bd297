"""From counted devices back to names, by a fixed rule.

The oldest gangs choose first; a pod takes the devices of each group in kube-scheduler's
order.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterable, Sequence

from contracts.ids import DeviceID
from solver.engines.construct.frame import Frame, FramePod
from solver.engines.construct.stock import key_of
from solver.kinds.demand import Demand
from solver.kinds.shapes import NodeView
from solver.placement import GangPlacement, PodPlacement


def name_devices(
    demand: Demand, views: Sequence[NodeView], frames: Iterable[Frame]
) -> tuple[GangPlacement, ...]:
    """Name the devices of all gangs that are in."""
    naming = _Naming(demand, views)
    ordered = sorted(frames, key=lambda frame: frame.gang)
    return tuple([naming.name_gang(frame) for frame in ordered])


class _Naming:
    """Devices that were not named yet."""

    def __init__(self, demand: Demand, views: Sequence[NodeView]) -> None:
        self._demand = demand
        self._views = views
        self._left: dict[Hashable, deque[DeviceID]] = {}

    def name_gang(self, frame: Frame) -> GangPlacement:
        """Name what the pods of a gang have, member by member, by index."""
        pods: dict[tuple[int, int], list[PodPlacement]] = {}
        for pod in frame.pods:
            pods.setdefault((pod.member, pod.kind), []).append(self._name_pod(pod))
        return GangPlacement(
            frame.gang,
            tuple(
                tuple(
                    placed
                    for cell in cells
                    for placed in pods.get((number, cell.kind), ())
                )
                for number, cells in enumerate(self._demand.cells_of[frame.gang])
            ),
        )

    def _name_pod(self, pod: FramePod) -> PodPlacement:
        member, view = self._demand.member_kinds[pod.kind], self._views[pod.node]
        taken: list[list[tuple[int, DeviceID]]] = [[] for _ in range(member.requests)]
        for number, group in pod.uses:
            ask, shape = member.asks[number], view.shape.groups[group]
            named = view.groups[group]
            if shape.is_shareable or ask.admin:
                device = named.devices[0]
            else:
                key = key_of(shape, pod.node, group)
                left = self._left.setdefault(key, deque(named.devices))
                device = left.popleft()
            position = named.positions[named.devices.index(device)]
            taken[ask.request].append((position, device))
        devices = tuple(
            tuple(device for _, device in sorted(listed)) for listed in taken
        )
        return PodPlacement(view.name, devices, pod.alternatives)
