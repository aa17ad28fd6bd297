"""Taking devices from a node's state: what each rule says about the next one.

While one pod is being placed, tags close groups to its requests: because they lack the
value that a matchAttribute chose, or repeat one that a distinctAttribute has met. A
state with such tags is a partial state, and a transition leads to the next one.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct, structs

from solver.cache import cached
from solver.engines.pattern.states.canonical import canonicalize, share_equal
from solver.kinds.demand import MemberKind
from solver.kinds.shapes import CounterSets, CounterShape, GroupShape, NodeShape
from solver.kinds.traits import Traits

SHARED_ALREADY = 1
"""Tag: the current request has a share of this device."""
FIRST_CLOSED_BIT = 1
"""Where the tags of (constraint, column) begin: the group may not serve in it."""
NO_VALUE = -1
"""Chosen where there is none: the constraint's requests get nothing."""


class PartialState(Struct, frozen=True, cache_hash=True):
    """A node's state while a pod is being placed on it."""

    shape: NodeShape
    tags: tuple[int, ...]
    """For each group, the tags that it has, as bits."""

    def canonicalize(
        self, attributes: tuple[int, ...]
    ) -> tuple[PartialState, tuple[int, ...]]:
        """Bring it into canonical form; the second value: each group's index here."""
        if not any(self.tags):
            form = canonicalize(self.shape, attributes)
            return PartialState(form.shape, self.tags), form.order
        form = canonicalize(self.shape, attributes, self.tags)
        tags = tuple([self.tags[index] for index in form.order])
        return PartialState(form.shape, tags), form.order


class Transitions:
    """How one pod's requests and constraints change a partial state.

    For each request call `begin_request`, then take its devices, then `end_request`;
    the order of requests is up to the caller. Groups are given by their index in the
    state, alternatives by their index into the member's asks.
    """

    def __init__(self, member: MemberKind, attributes: tuple[int, ...]) -> None:
        self._member = member
        self.attributes = attributes
        """Which attribute each column shows."""
        self._tags: dict[tuple[int, int], int] = {}
        """The tag of each (constraint, column)."""
        self._closing = [0] * len(member.asks)
        """The tags that close a group to each alternative of a request."""
        for number, constraint in enumerate(member.constraints):
            for alternative, column in constraint.scope:
                next_tag = 1 << FIRST_CLOSED_BIT + len(self._tags)
                tag = self._tags.setdefault((number, column), next_tag)
                self._closing[alternative] |= tag

    # --- constraints begin and end with their requests --------------------------------

    def begin_request(
        self, state: PartialState, request: int
    ) -> Iterator[PartialState]:
        """Begin the constraints whose first request this is, in all their ways.

        A matchAttribute chooses its value and closes what lacks it; a distinctAttribute
        closes what has none.
        """
        begun = [state]
        for number, constraint in enumerate(self._member.constraints):
            if self._find_span(number)[0] != request:
                continue
            if constraint.distinct:
                begun = [self._close_without(former, number, None) for former in begun]
            else:
                values = self._list_values(state, number) or [NO_VALUE]
                begun = [
                    self._close_without(former, number, value)
                    for former in begun
                    for value in values
                ]
        yield from begun

    def end_request(self, state: PartialState, request: int) -> PartialState:
        """End the constraints whose last request this was; shares may be had again."""
        ended = SHARED_ALREADY
        for (number, _), tag in self._tags.items():
            if self._find_span(number)[1] == request:
                ended |= tag
        return PartialState(state.shape, tuple(tag & ~ended for tag in state.tags))

    def _find_span(self, number: int) -> tuple[int, int]:
        """Find the first and the last request of a constraint."""
        requests = [
            self._member.asks[alternative].request
            for alternative, _ in self._member.constraints[number].scope
        ]
        return min(requests), max(requests)

    def _list_values(self, state: PartialState, number: int) -> list[int]:
        """List the values that could serve every request that must have one."""
        scope = self._member.constraints[number].scope
        groups = state.shape.groups
        # Requests without alternatives bind: each needs enough devices of the value.
        common: set[int] | None = None
        for alternative, column in scope:
            terms = self._member.asks[alternative]
            totals: dict[int, int] = {}
            for group in groups:
                if group.mask >> terms.kind & 1 and group.size:
                    for value in group.values[column]:
                        totals[value] = totals.get(value, 0) + group.size
            if len(self._member.alternatives(terms.request)) == 1:
                enough = {
                    value for value, size in totals.items() if size >= terms.count
                }
                common = enough if common is None else common & enough
        # Where all have alternatives, any value may do.
        if common is None:
            common = {
                value
                for _, column in scope
                for group in groups
                for value in group.values[column]
            }
        return sorted(common)

    def _close_without(
        self, state: PartialState, number: int, value: int | None
    ) -> PartialState:
        """Close in a constraint what lacks a value; None: what has none at all."""
        tags = list(state.tags)
        for (owner, column), tag in self._tags.items():
            for index, group in enumerate(state.shape.groups):
                values = group.values[column]
                if owner == number and not (
                    values if value is None else value in values
                ):
                    tags[index] |= tag
        return PartialState(state.shape, tuple(tags))

    # --- one device after the other --------------------------------------------------

    def find_candidates(self, state: PartialState, alternative: int) -> tuple[int, ...]:
        """List the groups that may give a device, one of each that are alike."""
        closing = self._closing[alternative] | SHARED_ALREADY
        kind = self._member.asks[alternative].kind
        groups, attributes = state.shape.groups, self.attributes
        return _find_candidates(groups, state.tags, kind, closing, attributes)

    def take_device(
        self, state: PartialState, alternative: int, group: int
    ) -> PartialState | None:
        """Take a device of a group; None: a counter, capacity or set forbids it.

        Its constraints must be open to it: see `find_candidates`.
        """
        shape, before = state.shape, state.shape.groups[group]
        tags, kind = list(state.tags), self._member.asks[alternative].kind
        # First charge what the device draws from besides itself.
        charged = _charge_counters(shape, before)
        if charged is None:
            return None
        counters, sets = charged
        # Then take it away, or a share of it, which the same request gets only once.
        if before.traits.left is None:
            after = GroupShape(
                before.mask,
                before.values,
                before.size - 1,
                before.traits,
                before.identity,
            )
            all_free = shape.all_free & ~before.mask
        else:
            shared = _take_share(before, kind)
            if shared is None:
                return None
            after, all_free = shared, shape.all_free
            tags[group] |= SHARED_ALREADY
        # Finally close what a distinctAttribute forbids from now on.
        self._close_repeated(state, tags, alternative, before)
        after = share_equal(after)
        groups = (*shape.groups[:group], after, *shape.groups[group + 1 :])
        shape = structs.replace(
            shape, groups=groups, counters=counters, sets=sets, all_free=all_free
        )
        return PartialState(shape, tuple(tags))

    def find_whole_groups(
        self, state: PartialState, alternative: int
    ) -> tuple[int, ...] | None:
        """Find the groups that `All` means; None: not all of them are to be had."""
        kind, shape = self._member.asks[alternative].kind, state.shape
        if not shape.all_free >> kind & 1:
            return None
        groups = tuple(i for i, g in enumerate(shape.groups) if g.mask >> kind & 1)
        if any(state.tags[group] & self._closing[alternative] for group in groups):
            return None
        return groups

    def take_whole_groups(
        self, state: PartialState, alternative: int, groups: tuple[int, ...]
    ) -> PartialState | None:
        """Take every device of some groups; None: a rule forbids it."""
        current: PartialState | None = state
        for group in groups:
            for _ in range(state.shape.groups[group].size):
                if current is None or current.tags[group] & self._closing[alternative]:
                    return None
                current = self.take_device(current, alternative, group)
        return current

    def _close_repeated(
        self, state: PartialState, tags: list[int], alternative: int, taken: GroupShape
    ) -> None:
        """Close what has a value that a distinctAttribute has met now."""
        for number, constraint in enumerate(self._member.constraints):
            if not constraint.distinct:
                continue
            columns = [column for a, column in constraint.scope if a == alternative]
            values = {value for column in columns for value in taken.values[column]}
            for (owner, column), tag in self._tags.items():
                if owner != number or not columns:
                    continue
                for index, group in enumerate(state.shape.groups):
                    if values.intersection(group.values[column]):
                        tags[index] |= tag


def _charge_counters(
    shape: NodeShape, group: GroupShape
) -> tuple[tuple[CounterShape, ...], CounterSets] | None:
    """Draw from counters and narrow compatibility groups; None: impossible."""
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
        common = names if allowed is None else tuple(n for n in allowed if n in names)
        if not common:
            return None
        sets[number] = (common, identity)
    return tuple(counters), tuple(sets)


def _take_share(group: GroupShape, kind: int) -> GroupShape | None:
    """Take a share of a device; None: too little is left.

    The first share has drawn from counters, so the rest of the device draws no more.
    """
    capacities, costs = group.traits.left or (), group.traits.costs[kind]
    rest = tuple(left - cost for left, cost in zip(capacities, costs, strict=True))
    if min(rest, default=0) < 0:
        return None
    traits = Traits(left=rest, costs=group.traits.costs)
    return GroupShape(group.mask, group.values, group.size, traits, group.identity)


@cached(bound=1 << 15)
def _find_candidates(
    groups: tuple[GroupShape, ...],
    tags: tuple[int, ...],
    kind: int,
    closing: int,
    attributes: tuple[int, ...],
) -> tuple[int, ...]:
    """List the open groups of a request kind, one of each that are alike."""
    found: dict[object, int] = {}
    exclusive = _find_exclusive_values(groups, attributes)
    for index, group in enumerate(groups):
        tag = tags[index]
        if group.size and group.mask >> kind & 1 and not tag & closing:
            signature = _make_signature(group, tag, exclusive, attributes)
            found.setdefault(signature, index)
    return tuple(found.values())


@cached(bound=1 << 14)
def _find_exclusive_values(
    groups: tuple[GroupShape, ...], attributes: tuple[int, ...]
) -> set[tuple[int, int]]:
    """Find the (attribute, value) pairs that only one group has."""
    owners: dict[tuple[int, int], int] = {}
    for index, group in enumerate(groups):
        for attribute, values in zip(attributes, group.values, strict=True):
            for value in values:
                owner = owners.setdefault((attribute, value), index)
                if owner != index:
                    owners[attribute, value] = -1
    return {key for key, owner in owners.items() if owner >= 0}


def _make_signature(
    group: GroupShape,
    tag: int,
    exclusive: set[tuple[int, int]],
    attributes: tuple[int, ...],
) -> object:
    """Sum up what a group is like; groups of equal signatures may be exchanged.

    A value that nobody else has does not count, only where else the group has it.
    """
    columns: list[tuple[object, ...]] = []
    own_numbers: dict[tuple[int, int], int] = {}
    for attribute, values in zip(attributes, group.values, strict=True):
        columns.append(
            tuple(
                ("own", own_numbers.setdefault((attribute, value), len(own_numbers)))
                if (attribute, value) in exclusive
                else value
                for value in values
            )
        )
    return (group.mask, group.size, group.traits, group.identity, tag, tuple(columns))
