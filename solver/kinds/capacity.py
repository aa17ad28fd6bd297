"""What pods take of all nodes together: inequalities that every answer meets.

They need no states, so they bound batches whose states are too many to list. Each is a
*row*: what a pod of each member kind uses at least, and what all nodes have at most of

- a node resource,
- the devices that some kinds of request alone may have; of cards that are had in parts,
  by the counters that the parts draw from,
- a capacity of devices that are shared, or the places for shares so large that no more
  than one, two or three are on a device,
- places for pods of one kind, by counting (`counting.py`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from solver.kinds.counting import PLENTY, bound_pods, bound_uses_together
from solver.kinds.demand import Demand, MemberKind
from solver.kinds.shapes import GroupShape, NodeKind, NodeShape

UNIT = 1 << 20
"""A whole device, where parts of it count as less."""
MOST_SHARES = 3
"""Shares of a device that are so large that they are counted."""
Masks = frozenset[int]
"""Devices, by the masks of their groups."""


class CapacityRow(Struct, frozen=True):
    """sum(uses x pods) <= capacity, in any answer."""

    uses: tuple[int, ...]
    """What a pod uses, by member kind."""
    capacity: int


def list_capacity_rows(
    demand: Demand, kinds: Sequence[NodeKind]
) -> tuple[CapacityRow, ...]:
    """List the inequalities that the pods of a batch meet on its nodes."""
    rows = dict.fromkeys(
        row
        for row in (
            *_resource_rows(demand, kinds),
            *_device_rows(demand, kinds),
            *_member_rows(demand, kinds),
        )
        if any(row.uses)
    )
    asked = demand.pods
    return tuple(
        row
        for row in rows
        if sum(u * p for u, p in zip(row.uses, asked, strict=True)) > row.capacity
    )


def _resource_rows(demand: Demand, kinds: Sequence[NodeKind]) -> Iterator[CapacityRow]:
    for index in range(len(kinds[0].shape.free) if kinds else 0):
        amounts = [(kind.shape.free[index], len(kind.nodes)) for kind in kinds]
        limited = [left * nodes for left, nodes in amounts if left is not None]
        if len(limited) == len(kinds):
            uses = tuple(member.needs[index] for member in demand.member_kinds)
            yield CapacityRow(uses, sum(limited))


def _member_rows(demand: Demand, kinds: Sequence[NodeKind]) -> Iterator[CapacityRow]:
    """Bound each member kind by itself, where it asks for more than there is."""
    for number, (member, asked) in enumerate(
        zip(demand.member_kinds, demand.pods, strict=True)
    ):
        room = 0
        for kind in kinds:
            room += bound_pods(member, kind.shape) * len(kind.nodes)
            if room >= asked:
                break
        else:
            uses = [0] * len(demand.member_kinds)
            uses[number] = 1
            yield CapacityRow(tuple(uses), room)


def _device_rows(demand: Demand, kinds: Sequence[NodeKind]) -> Iterator[CapacityRow]:
    """Bound the uses of each set of devices to which some requests are limited."""
    requests = range(len(demand.query.requests))
    groups = Counter[GroupShape]()
    for kind in kinds:
        for group in kind.shape.groups:
            groups[group] += len(kind.nodes)
    masks = {group.mask for group in groups}
    served = [Masks(m for m in masks if m >> k & 1) for k in requests]
    for devices in dict.fromkeys((Masks(masks), *served)):
        asking = [k for k in requests if served[k] and served[k] <= devices]
        if asking:
            yield _count_devices(demand, kinds, devices, asking)
            shared = {g: n for g, n in groups.items() if g.mask in devices}
            yield from _count_shares(demand, shared, asking)


def _count_devices(
    demand: Demand, kinds: Sequence[NodeKind], devices: Masks, asking: Sequence[int]
) -> CapacityRow:
    uses: dict[int, int] = {}
    capacity = 0
    for kind in kinds:
        node = _CountedDevices(kind.shape, devices)
        capacity += node.count_capacity(asking) * len(kind.nodes)
        for group in node.groups:
            use = node.use_of(group)
            for k in asking:
                if group.mask >> k & 1:
                    uses[k] = min(use, uses.get(k, use))
    return _to_row(demand, uses, capacity)


class _CountedDevices:
    """Some devices of one node, and how much of a device a use of each is, in UNIT.

    Of a device that draws from counters it is what it draws, added up over counters and
    compared with the device that draws most.
    """

    def __init__(self, shape: NodeShape, devices: Masks) -> None:
        self._counters = shape.counters
        self.groups = [g for g in shape.groups if g.mask in devices and g.size]
        self._most: dict[int, int] = {}
        """What a device draws from each counter."""
        for group in self.groups:
            for counter, amount in group.traits.draws:
                if amount:
                    self._most[counter] = max(self._most.get(counter, 0), amount)
        self._largest = max(map(self._draw_of, self.groups), default=0)

    def _draw_of(self, group: GroupShape) -> int:
        if group.is_shareable:
            return 0
        return sum(
            UNIT * amount // self._most[counter]
            for counter, amount in group.traits.draws
            if amount
        )

    def use_of(self, group: GroupShape) -> int:
        """Return how much of a device one use takes at least."""
        draw = self._draw_of(group)
        return UNIT * draw // self._largest if draw else UNIT

    def count_capacity(self, asking: Sequence[int]) -> int:
        """Bound what all uses take together."""
        plain = [group for group in self.groups if not self._draw_of(group)]
        total = UNIT * sum(bound_uses_together(group, asking) for group in plain)
        if self._largest:
            drawn = sum(
                -(-UNIT * self._counters[counter].left // most)
                for counter, most in self._most.items()
            )
            total += -(-UNIT * drawn // self._largest)
        return total


def _count_shares(
    demand: Demand, groups: Mapping[GroupShape, int], asking: Sequence[int]
) -> Iterator[CapacityRow]:
    """Bound what shares take of each capacity, by its place among a device's."""
    shared = {g: n for g, n in groups.items() if g.size and g.traits.left}
    places = max((len(group.traits.left or ()) for group in shared), default=0)
    for place in range(places):
        costs, fitting = dict[int, int](), dict[int, int]()
        for group in groups:
            left = (group.traits.left or ())[place : place + 1]
            for kind in asking:
                if group.mask >> kind & 1:
                    cost = group.traits.costs[kind][place] if left else 0
                    costs[kind] = min(cost, costs.get(kind, cost))
                    fits = left[0] // cost if cost else PLENTY
                    fitting[kind] = max(fits, fitting.get(kind, 0))
        capacity = sum(
            left * nodes
            for group, nodes in shared.items()
            for left in (group.traits.left or ())[place : place + 1]
        )
        yield _to_row(demand, costs, capacity)
        for most in range(1, 1 + MOST_SHARES):
            large = {kind: 1 for kind, fits in fitting.items() if fits <= most}
            devices = sum(
                nodes
                for group, nodes in shared.items()
                if any(group.mask >> kind & 1 for kind in large)
            )
            yield _to_row(demand, large, most * devices)


def _to_row(demand: Demand, uses: Mapping[int, int], capacity: int) -> CapacityRow:
    """Bound what each kind of pod uses, given the use of each kind of request."""
    return CapacityRow(
        tuple(_use_of_pod(member, uses) for member in demand.member_kinds), capacity
    )


def _use_of_pod(member: MemberKind, uses: Mapping[int, int]) -> int:
    """Add up requests, each by the alternative that takes least."""
    least: dict[int, int] = {}
    for ask in member.asks:
        is_counted = not (ask.all_devices or ask.admin)
        use = uses.get(ask.kind, 0) * ask.count if is_counted else 0
        least[ask.request] = min(use, least.get(ask.request, use))
    return sum(least.values())
