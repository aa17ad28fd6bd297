"""What room on a node is worth for pods that are expected later.

Room is how many more pods of a kind a node would take by counting: devices and their
shared values, shares, counters and compatibility groups (`available.py`), and the
node's own resources. distinctAttribute is not looked at, and neither requests nor
devices of different draws compete: an estimate.

    value(node) = sum over kinds of weight * (size * room + 4 * first)
    first = min(size * room, 1000) for pods that take a share of a device, else 0

is concave in each room. Room for whole devices is worth the same wherever it is, so
nodes are used up before others are broken; a last part of a device is worth more than
the same of a node that has several.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from solver.cache import cached
from solver.kinds.available import Available, list_available
from solver.kinds.demand import ExpectedKind, MemberKind
from solver.kinds.shapes import CounterSets, CounterShape, GroupShape, NodeShape
from solver.problem.problem import DEVICE

UNBOUNDED = 1 << 40
"""More pods than there can be."""


def value_of_shape(expected: Iterable[ExpectedKind], shape: NodeShape) -> int:
    """Return what the room on a node of this shape is worth."""
    listed = tuple(expected)
    rooms = count_rooms(tuple(kind.member for kind in listed), shape)
    pairs = zip(listed, rooms, strict=True)
    return sum(value_of_room(kind, room) for kind, room in pairs)


def value_of_room(kind: ExpectedKind, room: int) -> int:
    """Return what room for so many pods of a kind is worth on one node."""
    thousandths = kind.size * room
    return kind.weight * (thousandths + kind.more * min(thousandths, DEVICE))


def count_rooms(members: tuple[MemberKind, ...], shape: NodeShape) -> tuple[int, ...]:
    """Count how many more pods of each kind a node would take.

    0 where they may not be there, or nothing bounds them. `members`: those of
    `ExpectedKind`s.
    """
    by_devices = bound_rooms_by_devices(members, shape)
    pairs = zip(members, by_devices, strict=True)
    return tuple(_bound_by_both(member, shape, bound) for member, bound in pairs)


def _bound_by_both(member: MemberKind, shape: NodeShape, by_devices: int | None) -> int:
    if not shape.fits >> member.fit & 1:
        return 0
    bounds = (by_devices, bound_room_by_resources(member.needs, shape.free))
    return min((bound for bound in bounds if bound is not None), default=0)


def bound_room_by_resources(
    needs: Sequence[int], free: Sequence[int | None]
) -> int | None:
    """Bound the pods by what the node itself has left; None: it does not bound them.

    Both are by `Query.resources`.
    """
    pairs = zip(needs, free, strict=True)
    bounds = [left // need for need, left in pairs if need and left is not None]
    return min(bounds, default=None)


def bound_rooms_by_devices(
    members: tuple[MemberKind, ...], shape: NodeShape
) -> tuple[int | None, ...]:
    """Bound the pods of each kind by devices; None: no request bounds them.

    0 where they may not be on the node. `members` are those of `ExpectedKind`s.
    """
    return _bound_rooms(members, shape.groups, shape.counters, shape.sets, shape.fits)


@cached(bound=1 << 15)
def _bound_rooms(
    members: tuple[MemberKind, ...],
    groups: tuple[GroupShape, ...],
    counters: tuple[CounterShape, ...],
    sets: CounterSets,
    fits: int,
) -> tuple[int | None, ...]:
    available = list_available(groups, counters, sets)
    # Many kinds ask for the same devices, in other numbers.
    asks = {ask.kind: ask for member in members for ask in member.asks}
    uses = {kind: available.sum_uses(ask) for kind, ask in asks.items()}
    return tuple(
        _bound_room(member, available, uses) if fits >> member.fit & 1 else 0
        for member in members
    )


def list_rooms_by_devices(
    members: tuple[MemberKind, ...], shape: NodeShape
) -> list[int]:
    """Like `bound_rooms_by_devices`, for arrays: UNBOUNDED in place of None."""
    rooms = bound_rooms_by_devices(members, shape)
    return [UNBOUNDED if room is None else room for room in rooms]


def _bound_room(
    member: MemberKind, available: Available, uses: Mapping[int, int]
) -> int | None:
    bounds = [uses[ask.kind] // ask.count for ask in member.asks]
    for constraint in member.constraints:
        scope = [(member.asks[a], column) for a, column in constraint.scope]
        bounds.append(available.bound_pods_by_values(scope))
    return min(bounds, default=None)
