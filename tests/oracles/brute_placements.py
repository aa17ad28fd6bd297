"""All ways to place one pod on one node, by trying every choice of devices.

Plain Python over a node shape with its groups taken apart into devices; shares no code
with taking, tags or names, so it says what these must come to.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations, product
from math import comb, prod

from msgspec import Struct, structs

from solver.kinds.demand import LocalConstraint, MemberKind, RequestAlternative
from solver.kinds.shapes import CounterShape, GroupShape, NodeShape
from solver.kinds.traits import Traits

WAYS = 3_000
"""Choices of devices that are tried for one pod."""
MAX = 32
"""Devices of a claim."""
Device = tuple[int, int]
"""(group, number inside it)."""


class TooManyWaysError(Exception):
    """The node is not tiny."""


class Use(Struct, frozen=True):
    """One device for one request."""

    a: int
    """Index into the member's asks."""
    device: Device


def every_way(member: MemberKind, shape: NodeShape) -> Iterator[tuple[int, NodeShape]]:
    """Go through the ranks of all ways to place a pod, and what each leaves.

    Raises:
        TooManyWaysError: trying everything would take too long.
    """
    chosen = [member.alternatives(request) for request in range(member.requests)]
    for asks in product(*chosen):
        options = [_options(member.asks[a], shape) for a in asks]
        if prod(size for size, _ in options) > WAYS:
            raise TooManyWaysError
        for devices in product(*(listed for _, listed in options)):
            uses = [
                Use(a, device)
                for a, taken in zip(asks, devices, strict=True)
                for device in taken
            ]
            after = left_of(member, shape, uses)
            if after is not None:
                yield sum(member.asks[a].rank for a in asks), after


def _options(
    ask: RequestAlternative, shape: NodeShape
) -> tuple[int, Iterator[tuple[Device, ...]]]:
    """Count and list what a (sub)request may get, if nothing else was asked for."""
    devices = [
        (index, number)
        for index, group in enumerate(shape.groups)
        if group.mask >> ask.kind & 1
        for number in range(group.size)
    ]
    if not ask.all_devices:
        return comb(len(devices), ask.count), combinations(devices, ask.count)
    is_free = shape.all_free >> ask.kind & 1
    return 1, iter([tuple(devices)] if is_free else [])


def left_of(
    member: MemberKind, shape: NodeShape, uses: Sequence[Use]
) -> NodeShape | None:
    """Say what uses leave; None: they break a rule."""
    claims = Counter(member.asks[use.a].claim for use in uses)
    if any(count > MAX for count in claims.values()):
        return None
    if not all(_holds(item, shape, uses) for item in member.constraints):
        return None
    groups = _groups_left(member, shape, uses)
    counters = _counters_left(shape, uses)
    sets = _sets_left(shape, uses)
    if groups is None or counters is None or sets is None:
        return None
    gone = 0
    for group in (shape.groups[use.device[0]] for use in uses):
        gone |= 0 if group.is_shareable else group.mask
    return structs.replace(
        shape,
        groups=groups,
        counters=counters,
        sets=sets,
        all_free=shape.all_free & ~gone,
    )


def _holds(constraint: LocalConstraint, shape: NodeShape, uses: Sequence[Use]) -> bool:
    """Check that values are equal, or all different; a device without breaks both."""
    columns = dict(constraint.scope)
    values = [
        set(shape.groups[use.device[0]].values[columns[use.a]])
        for use in uses
        if use.a in columns
    ]
    if not values:
        return True
    if constraint.distinct:
        return all(values) and sum(map(len, values)) == len(set.union(*values))
    return bool(set.intersection(*values))


def _groups_left(
    member: MemberKind, shape: NodeShape, uses: Sequence[Use]
) -> tuple[GroupShape, ...] | None:
    """Take devices that pods have for themselves, and shares of the others."""
    groups = list(shape.groups)
    for device, times in Counter(use.device for use in uses).items():
        group = groups[device[0]]
        if group.traits.left is None:
            if times > 1:
                return None
            groups[device[0]] = structs.replace(group, size=group.size - 1)
            continue
        costs = [
            group.traits.costs[member.asks[use.a].kind]
            for use in uses
            if use.device == device
        ]
        left = tuple(
            amount - sum(cost[number] for cost in costs)
            for number, amount in enumerate(group.traits.left)
        )
        if any(amount < 0 for amount in left):
            return None
        traits = Traits(left=left, costs=group.traits.costs)
        groups[device[0]] = structs.replace(group, traits=traits)
    return tuple(groups)


def _counters_left(
    shape: NodeShape, uses: Sequence[Use]
) -> tuple[CounterShape, ...] | None:
    """Charge every device once, however many shares of it are had.

    What others have overdrawn breaks no rule for those who draw nothing from it.
    """
    left = [counter.left for counter in shape.counters]
    for index, _ in {use.device for use in uses}:
        for number, amount in shape.groups[index].traits.draws:
            left[number] -= amount
    for counter, amount in zip(shape.counters, left, strict=True):
        if amount < 0 and amount < counter.left:
            return None
    return tuple(
        structs.replace(counter, left=amount)
        for counter, amount in zip(shape.counters, left, strict=True)
    )


def _sets_left(
    shape: NodeShape, uses: Sequence[Use]
) -> tuple[tuple[tuple[str, ...] | None, tuple[object, ...]], ...] | None:
    """Let the compatibility groups of a counter set be those that all have."""
    sets = list(shape.sets)
    for index, _ in sorted({use.device for use in uses}):
        for number, names in shape.groups[index].traits.groups:
            allowed, identity = sets[number]
            both = names if allowed is None else sorted({*allowed} & {*names})
            if not both:
                return None
            sets[number] = (tuple(both), identity)
    return tuple(sets)


def fingerprint(shape: NodeShape, attributes: tuple[int, ...]) -> str:
    """Say of a shape what no numbering changes: groups, and who shares what."""
    bare, having = list[str](), dict[object, list[str]]()
    relations = []
    for group in shape.groups:
        traits = group.traits
        bare.append(
            repr((group.mask, group.size, group.identity, traits.left, traits.costs))
        )
        found: dict[object, object] = {}
        for column, values in enumerate(group.values):
            for value in values:
                shown = ("value", attributes[column], value)
                found[shown] = (found.get(shown), column)
        for number, amount in traits.draws:
            found["counter", shape.counters[number], number] = amount
        for number, names in traits.groups:
            found["set", repr(shape.sets[number]), number] = names
        relations.append(found)
        for label, what in found.items():
            having.setdefault(label, []).append(repr((what, bare[-1])))
    known = {
        label: repr((label[:2], sorted(listed)))  # type: ignore[index]  # a tuple
        for label, listed in having.items()
    }
    groups = sorted(
        repr((own, sorted((known[label], repr(what)) for label, what in found.items())))
        for own, found in zip(bare, relations, strict=True)
    )
    return repr((shape.all_free, shape.fits, groups))
