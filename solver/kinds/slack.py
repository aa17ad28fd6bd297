"""What room on a node is worth for pods that are expected later.

Room is how many more pods of a kind a node would take by counting: devices and their
shared values, shares, and the node's own resources. Counters, compatibility groups and
distinctAttribute are not looked at, and requests do not compete: an estimate.

    value(node) = sum over kinds of weight * (size * room + 4 * first)
    first = min(size * room, 1000) for pods that take less than a device, else 0

is concave in each room. Room for whole devices is worth the same wherever it is, so
nodes are used up before others are broken; a last part of a device is worth more than
the same of a node that has several.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from solver.cache import cached
from solver.kinds.counting import bound_pods_by_values, bound_uses
from solver.kinds.demand import ExpectedKind, MemberKind
from solver.kinds.shapes import NodeShape
from solver.problem.problem import DEVICE

MORE = 4
"""How much more the first device's worth counts for pods that take parts of one."""


def value_of_shape(expected: Iterable[ExpectedKind], shape: NodeShape) -> int:
    """Return what the room on a node of this shape is worth."""
    return sum(value_of_room(kind, count_room(kind.member, shape)) for kind in expected)


def value_of_room(kind: ExpectedKind, room: int) -> int:
    """Return what room for so many pods of a kind is worth on one node."""
    thousandths = kind.size * room
    more = MORE * min(thousandths, DEVICE) if kind.size < DEVICE else 0
    return kind.weight * (thousandths + more)


def count_room(member: MemberKind, shape: NodeShape) -> int:
    """Count how many more pods a node would take; 0 where nothing bounds them."""
    if not shape.fits >> member.fit & 1:
        return 0
    bounds = (
        bound_room_by_devices(member, shape),
        bound_room_by_resources(member.needs, shape.free),
    )
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


@cached(bound=1 << 16)
def bound_room_by_devices(member: MemberKind, shape: NodeShape) -> int | None:
    """Bound the pods by devices; None: no request bounds them.

    `member` is that of an `ExpectedKind`.
    """
    bounds = [
        sum(bound_uses(group, ask) for group in shape.groups) // ask.count
        for ask in member.asks
    ]
    for constraint in member.constraints:
        scope = [(member.asks[a], column) for a, column in constraint.scope]
        bounds.append(bound_pods_by_values(scope, shape))
    return min(bounds, default=None)
