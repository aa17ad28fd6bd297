"""A way to give a pod its devices on one node: the first of some that holds.

Requests are served one after the other, best alternatives first, from the groups that
serve least else. What constraints compare is carried along, so a device that agrees
with none of the former is passed over at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

from contracts.allocation import MAX_DEVICES
from solver.engines.construct.stock import Stock
from solver.engines.construct.undo import UndoLog
from solver.kinds.demand import MemberKind, RequestAlternative
from solver.kinds.shapes import GroupShape, NodeShape, NodeView

MOST_TAKES = 400
"""Devices that are tried for one pod on one node."""
Values = frozenset[object]
Use = tuple[int, int]
"""(ask, group) of a device."""


class Condition(Struct, frozen=True):
    """What devices of one pod, and perhaps of others, have in common, or never twice.

    With neither a value in common nor one to avoid `start` is None.
    """

    distinct: bool
    columns: Mapping[int, int]
    """Ask -> column."""
    is_named: bool = False
    """True if the very values matter; columns are positions in `Query.named` then."""
    may_lack: bool = False
    """True if a device without any value is no matter."""
    start: Values | None = None
    """What devices of others have in common, or have at all."""

    def after(
        self, before: Values | None, ask: int, group: GroupShape
    ) -> Values | None:
        """Return how it is with one more device; an empty set: it cannot be."""
        column = self.columns.get(ask)
        if column is None:
            return before
        values: Values = frozenset(
            group.elements[column] if self.is_named else group.values[column]
        )
        if not values:
            return before if self.may_lack else NOTHING
        if self.distinct:
            return (
                NOTHING if before and before & values else (before or values) | values
            )
        return values if before is None else before & values


NOTHING: Values = frozenset()


class Way(Struct, frozen=True):
    """The devices of a pod."""

    uses: tuple[Use, ...]
    alternatives: tuple[int, ...]
    """The chosen one of each request."""
    values: tuple[Values | None, ...]
    """What became of each condition."""


class Style(Struct, frozen=True):
    """Which of several places and devices that would do a pod has."""

    best_fit: bool = True
    """Nodes with least left come first, else the first by name."""
    takes_common: bool = False
    """Devices come first whose values most others have, so that differing ones are
    left; else those that fewest have, so that what is alike stays together."""


Accept = Callable[[Way], bool]
"""True if a way will do; called while its devices are taken."""


class Wish(Struct, frozen=True):
    """What is asked of the devices of a pod, and which of several ones it has."""

    conditions: Sequence[Condition]
    accept: Accept
    style: Style


def find_way(
    stock: Stock,
    ledger: UndoLog,
    pod: tuple[MemberKind, int, NodeView],
    wish: Wish,
) -> tuple[Way | None, int]:
    """Find a way that is accepted, and take its devices; else nothing is taken.

    `pod`: what it needs, the number of its node, and the node. The second value: how
    many devices were tried.
    """
    search = _WaySearch(stock, ledger, pod, wish)
    mark = ledger.mark
    way = search.run()
    if way is None:
        ledger.undo(mark)
    return way, search.takes


class _WaySearch:
    """One pod on one node: depth first, until `MOST_TAKES` devices were tried."""

    def __init__(
        self,
        stock: Stock,
        ledger: UndoLog,
        pod: tuple[MemberKind, int, NodeView],
        wish: Wish,
    ) -> None:
        self._stock, self._ledger = stock, ledger
        self._member, self._node, view = pod
        self._shape: NodeShape = view.shape
        own = (
            Condition(constraint.distinct, dict(constraint.scope))
            for constraint in self._member.constraints
        )
        self._conditions = (*wish.conditions, *own)
        self._accept = wish.accept
        self._style = wish.style
        self._by_request = [
            self._member.alternatives(request)
            for request in range(self._member.requests)
        ]
        self._has_admin = any(ask.admin for ask in self._member.asks)
        self._claim_sizes = [0] * len(self._member.claims)
        self._uses: list[Use] = []
        self._alternatives: list[int] = []
        self._values: list[tuple[Values | None, ...]] = [
            tuple(condition.start for condition in self._conditions)
        ]
        self.takes = 0

    def run(self) -> Way | None:
        """Search, and leave the devices taken."""
        return self._way if self._serve(0) else None

    @property
    def _way(self) -> Way:
        return Way(tuple(self._uses), tuple(self._alternatives), self._values[-1])

    def _serve(self, request: int) -> bool:
        """Serve a request and all that follow."""
        if request == len(self._by_request):
            return self._accept(self._way)
        for number in self._by_request[request]:
            ask = self._member.asks[number]
            self._alternatives.append(ask.rank)
            if ask.all_devices:
                found = self._take_all(request, number, ask)
            else:
                groups = self._list_groups(number, ask)
                found = self._take_some(request, number, (groups, 0, ask.count))
            if found:
                return True
            self._alternatives.pop()
        return False

    def _take_some(
        self, request: int, number: int, left: tuple[list[int], int, int]
    ) -> bool:
        """Take devices of some groups, from one on; and serve what follows."""
        groups, first, count = left
        if not count:
            return self._serve(request + 1)
        for place in range(first, len(groups)):
            group = groups[place]
            mark = self._ledger.mark
            if self._take(number, group):
                shape = self._shape.groups[group]
                is_once = shape.is_shareable or self._member.asks[number].admin
                rest = (groups, place + is_once, count - 1)
                if self._take_some(request, number, rest):
                    return True
                self._drop()
            self._ledger.undo(mark)
            if self.takes > MOST_TAKES:
                return False
        return False

    def _take_all(self, request: int, number: int, ask: RequestAlternative) -> bool:
        """Take every device that a request means; and serve what follows."""
        if not self._shape.all_free >> ask.kind & 1:
            return False
        mark, known = self._ledger.mark, len(self._uses)
        meant = [g for g, s in enumerate(self._shape.groups) if s.mask >> ask.kind & 1]
        if (
            self._list_groups(number, ask, sort=False) == meant
            and all(
                self._take(number, group)
                for group in meant
                for _ in range(self._shape.groups[group].size)
            )
            and self._serve(request + 1)
        ):
            return True
        while len(self._uses) > known:
            self._drop()
        self._ledger.undo(mark)
        return False

    def _take(self, number: int, group: int) -> bool:
        """Take a device; False: what was written in vain is still to be undone."""
        self.takes += 1
        ask, shape = self._member.asks[number], self._shape.groups[group]
        if self._claim_sizes[ask.claim] == MAX_DEVICES:
            return False
        if self._has_admin and not shape.is_shareable and self._is_closed(ask, group):
            return False
        values = []
        pairs = zip(self._conditions, self._values[-1], strict=True)
        for condition, before in pairs:
            after = condition.after(before, number, shape)
            if after is not None and not after:
                return False
            values.append(after)
        if not ask.admin and not self._stock.take(self._node, group, ask):
            return False
        self._uses.append((number, group))
        self._values.append(tuple(values))
        self._claim_sizes[ask.claim] += 1
        return True

    def _drop(self) -> None:
        number, _ = self._uses.pop()
        self._values.pop()
        self._claim_sizes[self._member.asks[number].claim] -= 1

    def _is_closed(self, ask: RequestAlternative, group: int) -> bool:
        """True if the pod has the device in a way that lets it have it no more.

        With admin access a claim has a device once, and nobody after it has it.
        """
        earlier = (self._member.asks[number] for number, g in self._uses if g == group)
        return any(
            other.claim == ask.claim or (other.admin and not ask.admin)
            for other in earlier
        )

    def _list_groups(
        self, number: int, ask: RequestAlternative, *, sort: bool = True
    ) -> list[int]:
        """List the groups that may serve an ask, those first that serve least else."""
        compared = [
            column for asked, column in self._member.compared if asked == number
        ]
        groups = [
            index
            for index, shape in enumerate(self._shape.groups)
            if shape.mask >> ask.kind & 1
            and all(shape.values[column] for column in compared)
            and (ask.admin or self._stock.count_left(self._node, index))
        ]
        if sort and len(groups) > 1:
            siblings = self._count_siblings()
            groups.sort(key=lambda group: self._measure(group, siblings))
        return groups

    def _count_siblings(self) -> dict[tuple[int, int], int]:
        """Count the devices that are left of each value, by column."""
        counts: dict[tuple[int, int], int] = {}
        for group, shape in enumerate(self._shape.groups):
            left = self._stock.count_left(self._node, group)
            for column, values in enumerate(shape.values):
                for value in values:
                    counts[column, value] = counts.get((column, value), 0) + left
        return counts

    def _measure(
        self, group: int, siblings: Mapping[tuple[int, int], int]
    ) -> tuple[int, int, int, int]:
        """Return how much would be spoilt by using a group."""
        shape = self._shape.groups[group]
        alike = sum(
            siblings.get((column, value), 0)
            for column, values in enumerate(shape.values)
            for value in values
        )
        return (
            shape.mask.bit_count(),
            self._stock.count_drawn_left(self._node, group),
            -alike if self._style.takes_common else alike,
            self._stock.count_left(self._node, group),
        )
