"""Taking devices from a node state: what each rule says about the next one.

A board is a state while one pod is being placed: tags close groups to requests, because
they lack the value that a matchAttribute chose, or repeat one that a distinctAttribute
has seen.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct, structs

from solver.engines.pattern.states.canonical import canonical
from solver.kinds.demand import MemberKind
from solver.kinds.nodes import CounterShape, GroupShape, NodeShape
from solver.kinds.traits import Traits

SHARED_ALREADY = 1
"""Tag: the current request has a share of this device."""
CLOSED = 1
"""First of the tags by (constraint, column): the group may not serve in it."""
NO_VALUE = -1
"""Chosen where there is none: the constraint's requests get nothing."""
Sets = tuple[tuple[tuple[str, ...] | None, tuple[object, ...]], ...]


class Board(Struct, frozen=True, cache_hash=True):
    """A state with a tag a group."""

    shape: NodeShape
    tags: tuple[int, ...]

    def named(self, rules: Rules) -> tuple[Board, tuple[int, ...]]:
        """Bring it under its canonical name; gives each group's former index."""
        found = canonical(self.shape, rules.attributes, self.tags)
        tags = tuple(self.tags[index] for index in found.order)
        return Board(found.shape, tags), found.order


class Rules:
    """What one pod's constraints say; knows no order of requests."""

    def __init__(self, member: MemberKind, attributes: tuple[int, ...]) -> None:
        self._member = member
        self.attributes = attributes
        """Which attribute each column shows."""
        self._pairs: dict[tuple[int, int], int] = {}
        """(constraint, column) -> its tag."""
        self._closing = [0] * len(member.asks)
        """The tags that close a group to each ask."""
        for number, constraint in enumerate(member.constraints):
            for a, column in constraint.scope:
                pair = (number, column)
                tag = self._pairs.setdefault(pair, 1 << CLOSED + len(self._pairs))
                self._closing[a] |= tag

    # --- constraints begin and end with their requests --------------------------------

    def begun(self, board: Board, request: int) -> Iterator[Board]:
        """Begin the constraints whose first request this is, in all their ways.

        A matchAttribute chooses its value and closes what lacks it; a distinctAttribute
        closes what has none.
        """
        boards = [board]
        for number, constraint in enumerate(self._member.constraints):
            if self._span(number)[0] != request:
                continue
            if constraint.distinct:
                boards = [self._without(item, number, None) for item in boards]
            else:
                values = self._values(board, number) or [NO_VALUE]
                boards = [
                    self._without(item, number, value)
                    for item in boards
                    for value in values
                ]
        yield from boards

    def ended(self, board: Board, request: int) -> Board:
        """End the constraints whose last request this was; shares may be had again."""
        over = SHARED_ALREADY
        for (number, _), tag in self._pairs.items():
            if self._span(number)[1] == request:
                over |= tag
        return Board(board.shape, tuple(tag & ~over for tag in board.tags))

    def _span(self, number: int) -> tuple[int, int]:
        requests = [
            self._member.asks[a].request
            for a, _ in self._member.constraints[number].scope
        ]
        return min(requests), max(requests)

    def _values(self, board: Board, number: int) -> list[int]:
        """List the values that could serve every request that must have one."""
        scope = self._member.constraints[number].scope
        groups = board.shape.groups
        found: set[int] | None = None
        for a, column in scope:
            ask = self._member.asks[a]
            having: dict[int, int] = {}
            for group in groups:
                if group.mask >> ask.kind & 1 and group.size:
                    for value in group.values[column]:
                        having[value] = having.get(value, 0) + group.size
            if len(self._member.alternatives(ask.request)) == 1:
                enough = {value for value, size in having.items() if size >= ask.count}
                found = enough if found is None else found & enough
        if found is None:
            found = {
                value
                for _, column in scope
                for group in groups
                for value in group.values[column]
            }
        return sorted(found)

    def _without(self, board: Board, number: int, value: int | None) -> Board:
        """Close in a constraint what lacks a value; None: what has none at all."""
        tags = list(board.tags)
        for (owner, column), tag in self._pairs.items():
            for index, group in enumerate(board.shape.groups):
                has = group.values[column]
                if owner == number and not (has if value is None else value in has):
                    tags[index] |= tag
        return Board(board.shape, tuple(tags))

    # --- one device after the other --------------------------------------------------

    def candidates(self, board: Board, a: int) -> Iterator[int]:
        """Go through the groups that may give a device, one of each that are alike."""
        ask, seen = self._member.asks[a], set[object]()
        closing = self._closing[a] | SHARED_ALREADY
        exclusive = _exclusive(board.shape, self.attributes)
        for index, group in enumerate(board.shape.groups):
            if not (group.size and group.mask >> ask.kind & 1):
                continue
            if board.tags[index] & closing:
                continue
            look = _look(group, board.tags[index], exclusive, self.attributes)
            if look not in seen:
                seen.add(look)
                yield index

    def take(self, board: Board, a: int, index: int) -> Board | None:
        """Take a device of a group; None: a counter, capacity or group forbids it."""
        shape, group = board.shape, board.shape.groups[index]
        tags, kind = list(board.tags), self._member.asks[a].kind
        after = _charged(shape, group)
        if after is None:
            return None
        counters, sets = after
        if group.traits.left is None:
            left = GroupShape(
                group.mask, group.values, group.size - 1, group.traits, group.identity
            )
            all_free = shape.all_free & ~group.mask
        else:
            shared = _shared(group, kind)
            if shared is None:
                return None
            left, all_free = shared, shape.all_free
            tags[index] |= SHARED_ALREADY
        self._close_repeated(board, tags, a, group)
        groups = (*shape.groups[:index], left, *shape.groups[index + 1 :])
        shape = structs.replace(
            shape, groups=groups, counters=counters, sets=sets, all_free=all_free
        )
        return Board(shape, tuple(tags))

    def all_of(self, board: Board, a: int) -> tuple[int, ...] | None:
        """List the groups that `All` means; None: not all of them are to be had."""
        kind, shape = self._member.asks[a].kind, board.shape
        if not shape.all_free >> kind & 1:
            return None
        groups = tuple(i for i, g in enumerate(shape.groups) if g.mask >> kind & 1)
        if any(board.tags[index] & self._closing[a] for index in groups):
            return None
        return groups

    def take_all(self, board: Board, a: int, groups: tuple[int, ...]) -> Board | None:
        """Take every device of some groups; None: a rule forbids it."""
        taken: Board | None = board
        for index in groups:
            for _ in range(board.shape.groups[index].size):
                if taken is None or taken.tags[index] & self._closing[a]:
                    return None
                taken = self.take(taken, a, index)
        return taken

    def _close_repeated(
        self, board: Board, tags: list[int], a: int, group: GroupShape
    ) -> None:
        """Close what has a value that a distinctAttribute has seen now."""
        for number, constraint in enumerate(self._member.constraints):
            if not constraint.distinct:
                continue
            columns = [column for ask, column in constraint.scope if ask == a]
            seen = {value for column in columns for value in group.values[column]}
            for (owner, column), tag in self._pairs.items():
                if owner != number or not columns:
                    continue
                for index, other in enumerate(board.shape.groups):
                    if seen.intersection(other.values[column]):
                        tags[index] |= tag


def _charged(
    shape: NodeShape, group: GroupShape
) -> tuple[tuple[CounterShape, ...], Sets] | None:
    """Draw from counters and settle compatibility groups; None: impossible."""
    if not (group.traits.draws or group.traits.groups):
        return shape.counters, shape.sets
    counters, sets = list(shape.counters), list(shape.sets)
    for number, amount in group.traits.draws:
        counter = counters[number]
        if counter.left < amount:
            return None
        counters[number] = CounterShape(counter.left - amount, counter.identity)
    for number, names in group.traits.groups:
        allowed, identity = sets[number]
        both = names if allowed is None else tuple(n for n in allowed if n in names)
        if not both:
            return None
        sets[number] = (both, identity)
    return tuple(counters), tuple(sets)


def _shared(group: GroupShape, kind: int) -> GroupShape | None:
    """Take a share of a device; it draws from counters only once."""
    left, cost = group.traits.left or (), group.traits.costs[kind]
    after = tuple(a - c for a, c in zip(left, cost, strict=True))
    if min(after, default=0) < 0:
        return None
    traits = Traits(left=after, costs=group.traits.costs)
    return GroupShape(group.mask, group.values, group.size, traits, group.identity)


def _exclusive(shape: NodeShape, attributes: tuple[int, ...]) -> set[tuple[int, int]]:
    """Find the values, by attribute, that only one group has."""
    owners: dict[tuple[int, int], int] = {}
    for index, group in enumerate(shape.groups):
        for attribute, values in zip(attributes, group.values, strict=True):
            for value in values:
                known = owners.setdefault((attribute, value), index)
                if known != index:
                    owners[attribute, value] = -1
    return {key for key, owner in owners.items() if owner >= 0}


def _look(
    group: GroupShape,
    tag: int,
    exclusive: set[tuple[int, int]],
    attributes: tuple[int, ...],
) -> object:
    """Say what a group is like; groups of equal looks may be exchanged.

    A value that nobody else has does not count, only where else the group has it.
    """
    columns: list[tuple[object, ...]] = []
    own: dict[tuple[int, int], int] = {}
    for attribute, values in zip(attributes, group.values, strict=True):
        columns.append(
            tuple(
                ("own", own.setdefault((attribute, value), len(own)))
                if (attribute, value) in exclusive
                else value
                for value in values
            )
        )
    return (group.mask, group.size, group.traits, group.identity, tag, tuple(columns))
