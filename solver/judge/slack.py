"""What room on nodes is worth, as the judge counts it.

Room for an expected pod is the least of what bounds it: of each of the node's resources
that it needs, how often the need is there; of each request, how often its devices are
there; and of each matchAttribute, the same for each value, summed. Only first choices
that ask for a number of devices count, and distinctAttribute does not. A device is
there if its counters and compatibility groups let one more pod have it; of exclusive
devices that draw the same, as many as the counters suffice for. Where the same devices
are left, there is the same room.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from contracts.ids import DeviceID, NodeName
from solver.judge.facts import Facts
from solver.judge.nodes import judge_node
from solver.judge.slack_counters import LeftCounters
from solver.judge.slack_devices import (
    Consumed,
    DeviceLooks,
    Devices,
    Left,
    SeenDevice,
    amounts_of,
)
from solver.judge.slack_kinds import NumberedKind, NumberedKinds
from solver.judge.uses import Use
from solver.problem.gangs import MemberPart
from solver.snapshot.parts import NodePart

LeftDevice = tuple[SeenDevice, Left]
Group = tuple[Devices, ...]
"""Devices that have one value, by comparison."""


def value_lost(
    facts: Facts, pods: Iterable[tuple[NodeName, MemberPart]], uses: Iterable[Use]
) -> int:
    """Sum over the nodes that pods are on: their value before, less that after."""
    needs: dict[NodeName, Counter[str]] = defaultdict(Counter)
    for node, member in pods:
        needs[node].update({"pods": 1, **member.resources})
    uses_by_node: dict[NodeName, list[Use]] = defaultdict(list)
    for use in uses:
        if not use.subrequest.admin_access:
            uses_by_node[use.node].append(use)
    room = _Room(facts)
    return sum(
        room.value_lost_on(node, amounts, uses_by_node[node])
        for node, amounts in needs.items()
    )


class _Room:
    """Counts the room on nodes, before a decision and after it."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._kinds = kinds = NumberedKinds(facts.problem.expected)
        self._looks = DeviceLooks(facts, kinds.asks.things, kinds.comparisons.things)
        self._pods: dict[tuple[int, Group], list[int]] = {}
        """By grouping and group, then by scope."""

    def value_lost_on(
        self, node: NodeName, needs: Counter[str], uses: Sequence[Use]
    ) -> int:
        """Value the room on a node before, less that after."""
        part, seen = self._facts.find_node(node), self._looks.on(node)
        admits = [
            not any(judge_node(part, pod, "")) for pod in self._kinds.places.things
        ]
        before = self._bounds_of(self._leave(node, seen, ()))
        after = self._bounds_of(self._leave(node, seen, uses))
        return self._value(admits, self._bounds_by_node(part, Counter()), before) - (
            self._value(admits, self._bounds_by_node(part, needs), after)
        )

    def _leave(
        self, node: NodeName, seen: Sequence[SeenDevice], uses: Sequence[Use]
    ) -> list[LeftDevice]:
        """Return what pods leave of the devices of a node."""
        taken, amounts = set[DeviceID](), dict[DeviceID, Counter[str]]()
        for use in uses:
            device = self._facts.find_device(use.node, use.device)
            if not use.shareable:
                taken.add(use.device)
            elif device is not None:
                consumes = amounts_of(
                    self._facts, use.subrequest, use.device.driver, device
                )
                amounts.setdefault(use.device, Counter()).update(consumes)
        consumed: dict[DeviceID, Consumed] = {
            name: tuple(sorted(total.items())) for name, total in amounts.items()
        }
        used = {use.device for use in uses}
        counters = LeftCounters(self._facts, node, seen, used)
        return [
            (
                device,
                (
                    device.look,
                    consumed.get(device.name, ()),
                    device.draws if device.is_exclusive else (),
                    counters.count_draws(device),
                ),
            )
            for device in seen
            if device.name not in taken
            and (device.name in used or counters.allow(device))
        ]

    def _value(
        self,
        admits: Sequence[bool],
        by_node: Sequence[int | None],
        by_devices: Sequence[int | None],
    ) -> int:
        value = 0
        for kind in self._kinds.kinds:
            if admits[kind.place]:
                room, bound = by_devices[kind.claims], by_node[kind.needs]
                if room is None or (bound is not None and bound < room):
                    room = bound
                value += kind.weight * _worth(kind, kind.size * (room or 0))
        return value

    def _bounds_by_node(self, node: NodePart, taken: Counter[str]) -> list[int | None]:
        """Bound the pods by the node's own resources, by number of their needs."""
        if node.free is None:
            return [None] * len(self._kinds.needs.things)
        free = {name: max(amount, 0) for name, amount in node.free.items()}
        return [
            min(
                (
                    (free.get(name, 0) - taken[name]) // need
                    for name, need in needs
                    if need and (name != "pods" or name in free)
                ),
                default=None,
            )
            for needs in self._kinds.needs.things
        ]

    def _bounds_of(self, left: Sequence[LeftDevice]) -> list[int | None]:
        """Bound the pods by devices, by number of their claims; None: none bounds."""
        pods = [
            self._sum_by_scope(number, _group_by_value(left, compared))
            for number, compared in enumerate(self._kinds.groupings.things)
        ]
        return [
            min([pods[grouping][scope] for grouping, scope in claims], default=None)
            for claims in self._kinds.claims.things
        ]

    def _sum_by_scope(self, grouping: int, groups: Sequence[Group]) -> list[int]:
        """Sum over groups of devices the pods that they have room for."""
        pods_by_group = [self._count_pods(grouping, group) for group in groups]
        if not groups:
            return [0] * len(self._kinds.scopes[grouping].things)
        return [sum(pods) for pods in zip(*pods_by_group, strict=True)]

    def _count_pods(self, grouping: int, group: Group) -> list[int]:
        """Count the pods that a group of devices has room for, by scope."""
        pods = self._pods.get((grouping, group))
        if pods is None:
            pods = self._pods[grouping, group] = [
                min(
                    self._looks.count_uses(group[compared], ask) // count
                    for compared, ask, count in scope
                )
                for scope in self._kinds.scopes[grouping].things
            ]
        return pods


def _group_by_value(left: Sequence[LeftDevice], compared: Sequence[int]) -> list[Group]:
    """Group devices by the values of some comparisons; without any all together."""
    if not compared:
        return [(tuple(sorted(how for _, how in left)),)]
    having: dict[object, list[list[Left]]] = {}
    for device, how in left:
        for position, comparison in enumerate(compared):
            for value in device.values[comparison]:
                lists = having.setdefault(value, [[] for _ in compared])
                lists[position].append(how)
    return [tuple(tuple(sorted(each)) for each in lists) for lists in having.values()]


def _worth(kind: NumberedKind, room: int) -> int:
    """Weigh room: the first thousand counts five times for shares of devices."""
    return room + 4 * min(room, 1000) if kind.is_share else room
