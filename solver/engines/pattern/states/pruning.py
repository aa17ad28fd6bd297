"""What of a node state still matters: all else is left out, so that states are few.

Nothing comes back once it is taken, so what no pod of the batch can have now it can
never have later: devices whose counters are drawn dry, a NIC whose PCIe root has no GPU
left for the pods that want both.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct, structs

from solver.cache import cached
from solver.kinds.demand import LocalAsk, MemberKind
from solver.kinds.nodes import CounterShape, GroupShape, NodeShape


class Want(Struct, frozen=True):
    """One way in which some pod may want a device of a kind."""

    ask: LocalAsk
    beside: tuple[tuple[tuple[int, int, int], ...], ...]
    """For each matchAttribute over it: (kind, count, column) of all that must share."""
    columns: tuple[int, ...]
    """Its own column in each of them."""


def wants(members: Sequence[MemberKind]) -> tuple[Want, ...]:
    """Collect how pods may want devices, each way once."""
    found: dict[Want, None] = {}
    for member in members:
        for a, ask in enumerate(member.asks):
            beside, columns = [], []
            for constraint in member.constraints:
                column = dict(constraint.scope).get(a)
                if constraint.distinct or column is None:
                    continue
                columns.append(column)
                beside.append(_beside(member, constraint.scope))
            plain = structs.replace(ask, claim=0, request=0, rank=0)
            found[Want(plain, tuple(beside), tuple(columns))] = None
    return tuple(found)


def _beside(
    member: MemberKind, scope: Sequence[tuple[int, int]]
) -> tuple[tuple[int, int, int], ...]:
    """Say what must share a value for certain: requests without alternatives."""
    return tuple(
        sorted(
            (member.asks[a].kind, member.asks[a].count, column)
            for a, column in scope
            if len(member.alternatives(member.asks[a].request)) == 1
        )
    )


def without_empty(shape: NodeShape) -> tuple[NodeShape, tuple[int, ...]]:
    """Leave out the groups without devices; gives the index of each that is kept."""
    kept = tuple(index for index, group in enumerate(shape.groups) if group.size)
    if len(kept) == len(shape.groups):
        return shape, kept
    groups = tuple(shape.groups[index] for index in kept)
    return structs.replace(shape, groups=groups), kept


@cached(bound=1 << 15)
def settled(
    shape: NodeShape, wanted: tuple[Want, ...], whole: int
) -> tuple[NodeShape, tuple[int, ...]]:
    """Leave out what nobody can use; gives the index of each group that is kept.

    `whole`: the kinds that mean all devices, one bit each; what they mean stays.
    """
    groups = [_within_counters(shape, group) for group in shape.groups]
    lost = 0
    for before, after in zip(shape.groups, groups, strict=True):
        if after.size < before.size:
            lost |= before.mask
    masks = [group.mask if group.size else 0 for group in groups]
    while True:
        live = _live(groups, masks, wanted)
        narrowed = [
            mask & (live_of | whole) for mask, live_of in zip(masks, live, strict=True)
        ]
        if narrowed == masks:
            break
        masks = narrowed
    kept = tuple(index for index, mask in enumerate(masks) if mask)
    named = tuple(structs.replace(groups[index], mask=masks[index]) for index in kept)
    return (
        structs.replace(
            shape,
            groups=named,
            counters=_drawn_at_most(shape, named),
            all_free=shape.all_free & ~lost,
        ),
        kept,
    )


def _live(
    groups: Sequence[GroupShape], masks: Sequence[int], wanted: Sequence[Want]
) -> list[int]:
    """Find for each group the kinds that some pod could still have of it."""
    having: dict[tuple[int, int, int], int] = {}
    totals: dict[int, int] = {}
    for group, mask in zip(groups, masks, strict=True):
        kind = 0
        while mask >> kind:
            if mask >> kind & 1:
                totals[kind] = totals.get(kind, 0) + group.size
                for column, values in enumerate(group.values):
                    for value in values:
                        key = (kind, column, value)
                        having[key] = having.get(key, 0) + group.size
            kind += 1
    live = [0] * len(groups)
    for want in wanted:
        kind = want.ask.kind
        if totals.get(kind, 0) < want.ask.count:
            continue
        for index, (group, mask) in enumerate(zip(groups, masks, strict=True)):
            if mask >> kind & 1 and not live[index] >> kind & 1:
                live[index] |= _may_have(want, group, having) << kind
    return live


def _may_have(
    want: Want, group: GroupShape, having: dict[tuple[int, int, int], int]
) -> bool:
    """Say whether a value of the group has enough for all that must share it."""
    return all(
        any(
            all(having.get((kind, c, value), 0) >= count for kind, count, c in beside)
            for value in group.values[column]
        )
        for beside, column in zip(want.beside, want.columns, strict=True)
    )


def _within_counters(shape: NodeShape, group: GroupShape) -> GroupShape:
    """Count of a group no more devices than its counters and sets allow."""
    traits, size = group.traits, group.size
    for number, amount in traits.draws:
        if amount:
            size = min(size, shape.counters[number].left // amount)
    for number, names in traits.groups:
        allowed, _ = shape.sets[number]
        if allowed is not None and not set(allowed) & set(names):
            size = 0
    if traits.left is not None and size:
        left = traits.left
        mask = sum(
            1 << kind
            for kind, cost in enumerate(traits.costs)
            if group.mask >> kind & 1
            and all(a >= c for a, c in zip(left, cost, strict=True))
        )
        size = 1 if mask else 0
    if size == group.size:
        return group
    return structs.replace(group, size=size)


def _drawn_at_most(
    shape: NodeShape, groups: Sequence[GroupShape]
) -> tuple[CounterShape, ...]:
    """Cap what is left of counters at what all devices together could draw."""
    most = [0] * len(shape.counters)
    for group in groups:
        for counter, amount in group.traits.draws:
            most[counter] += amount * group.size
    return tuple(
        CounterShape(min(counter.left, total), counter.identity)
        for counter, total in zip(shape.counters, most, strict=True)
    )
