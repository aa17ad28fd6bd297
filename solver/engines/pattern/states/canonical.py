"""One canonical form for all node states that differ only in how things are numbered.

What matters of an attribute value, a counter or a counter set is which devices have it:
call all three *labels*. Labels that all groups of a part have are taken off first; what
is left falls into parts that share no label; each is named on its own and they are
sorted by name. Device topologies (PCIe roots in NUMA nodes, partitions of a GPU) are
nested, so this finds their symmetries. A part that is not nested keeps its order: a
missed symmetry costs time, never truth, since equal names always mean isomorphic parts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

from msgspec import Struct, structs

from solver.cache import cached
from solver.kinds.shapes import CounterShape, GroupShape, NodeShape
from solver.kinds.traits import Traits

T = TypeVar("T")
Name = tuple[object, ...]
"""Sortable among names; equal ones mean parts that are numbered alike."""
Label = tuple[int, int, int]
"""(VALUE, COUNTER or COUNTER_SET; attribute, 0 if it is no value; number)."""
VALUE, COUNTER, COUNTER_SET = range(3)
SINGLE, SPLIT, UNSPLIT = range(3)
"""What a name is of: one group, parts that share no label, or a part in its order."""


class CanonicalForm(Struct, frozen=True):
    """A state with its groups in canonical order and its labels renumbered."""

    shape: NodeShape
    order: tuple[int, ...]
    """For each group, its index in the shape that was given."""


class _Leaf(Struct, eq=False):
    """A group with all that says what it is like; one object for equal ones."""

    group: GroupShape
    tag: int
    relations: dict[Label, tuple[object, ...]]
    """For each label, its columns, drawn amount or allowed names."""
    descriptions: dict[Label, Name]
    """What its labels are by themselves, whoever has them."""
    labels: tuple[Label, ...]
    """Sorted by what they are, then by number."""


@cached(bound=1 << 15)
def canonicalize(
    shape: NodeShape, attributes: tuple[int, ...], tags: tuple[int, ...] = ()
) -> CanonicalForm:
    """Bring a shape into canonical form; `attributes`: which one each column shows.

    `tags` tell groups apart that are alike otherwise; one for each group, or none.
    """
    leaves = _list_leaves(shape, attributes, tags)
    _, order = _name(leaves, ())
    ordered = [leaves[index] for index in order]
    return CanonicalForm(_renumber(shape, ordered, attributes), order)


def _list_leaves(
    shape: NodeShape, attributes: tuple[int, ...], tags: tuple[int, ...]
) -> tuple[_Leaf, ...]:
    pairs = zip(shape.groups, tags or (0,) * len(shape.groups), strict=True)
    if not (shape.counters or shape.sets):
        return tuple([_make_leaf(group, attributes, tag, ()) for group, tag in pairs])
    return tuple(
        [
            _make_leaf(group, attributes, tag, _describe_drawn(shape, group))
            for group, tag in pairs
        ]
    )


def _describe_drawn(
    shape: NodeShape, group: GroupShape
) -> tuple[tuple[Label, Name], ...]:
    """Describe the counters and sets of a group by themselves, whoever has them."""
    traits = group.traits
    if not (traits.draws or traits.groups):
        return ()
    described: list[tuple[Label, Name]] = []
    for number, _ in traits.draws:
        counter = shape.counters[number]
        who = tuple(map(str, counter.identity))
        described.append(((COUNTER, 0, number), (COUNTER, 0, counter.left, (), who)))
    for number, _ in traits.groups:
        allowed, identity = shape.sets[number]
        limited = 0 if allowed is None else 1
        name = (COUNTER_SET, 0, limited, allowed or (), tuple(map(str, identity)))
        described.append(((COUNTER_SET, 0, number), name))
    return tuple(described)


@cached(bound=1 << 15)
def _make_leaf(
    group: GroupShape,
    attributes: tuple[int, ...],
    tag: int,
    drawn: tuple[tuple[Label, Name], ...],
) -> _Leaf:
    relations = _relate(group, attributes)
    descriptions: dict[Label, Name] = {
        (what, attribute, number): (what, attribute, 0, (), ())
        for what, attribute, number in relations
    }
    descriptions.update(drawn)
    labels = sorted(relations, key=lambda label: (descriptions[label], label))
    return _Leaf(group, tag, relations, descriptions, tuple(labels))


# --- names ---------------------------------------------------------------------------


@cached(bound=1 << 16)
def _name_part(
    leaves: tuple[_Leaf, ...], common: tuple[Label, ...], ignored: tuple[Label, ...]
) -> tuple[Name, Name, tuple[int, ...]]:
    """Name a part, with how its groups are related to the labels that all have.

    States are many and made of few parts, so names are remembered by part.
    """
    name, order = _name(leaves, ignored)
    related = [[leaves[index].relations[x] for x in common] for index in order]
    return name, tuple(map(tuple, related)), order


def _name(
    leaves: tuple[_Leaf, ...], ignored: tuple[Label, ...]
) -> tuple[Name, tuple[int, ...]]:
    """Return the name of some groups by their labels, and their canonical order.

    `ignored` are labels that all of them have, which are named already.
    """
    if len(leaves) == 1:
        return _name_single(leaves[0], ignored), (0,)
    # First take off the labels that all these groups have: they tell none apart.
    owners: dict[Label, int] = {}
    for index, leaf in enumerate(leaves):
        for label in leaf.relations:
            owners[label] = owners.get(label, 0) | 1 << index
    for label in ignored:
        owners.pop(label, None)
    everything = (1 << len(leaves)) - 1
    common = [label for label, bits in owners.items() if bits == everything]
    # Then split the groups where no other label holds them together.
    rest = [label for label, bits in owners.items() if bits != everything]
    parts = _split(len(leaves), [owners[label] for label in rest])
    head, common = _describe_common(leaves, common)
    if len(parts) == 1:
        # They are not nested: keep their order, and miss a symmetry perhaps.
        return (head, UNSPLIT, *_describe_unsplit(leaves, common, rest)), parts[0]
    # Finally name each part on its own: sorted by name, equal parts are exchanged.
    shared, inner_ignored = tuple(common), (*ignored, *common)
    named = []
    for part in parts:
        own = tuple([leaves[index] for index in part])
        name, related, order = _name_part(own, shared, inner_ignored)
        named.append((name, related, tuple([part[index] for index in order])))
    named.sort()
    names = tuple([(name, related) for name, related, _ in named])
    return (head, SPLIT, names), tuple([i for _, _, part in named for i in part])


def _name_single(leaf: _Leaf, ignored: tuple[Label, ...]) -> Name:
    labels = [label for label in leaf.labels if label not in ignored]
    head = tuple([leaf.descriptions[label] for label in labels])
    return (head, SINGLE, _describe_leaf(leaf, labels))


def _describe_common(
    leaves: tuple[_Leaf, ...], common: list[Label]
) -> tuple[Name, list[Label]]:
    """Describe the labels that all groups have; the second value: them in order."""
    if not common:
        return (), common
    descriptions = leaves[0].descriptions
    ordered = sorted(common, key=lambda label: (descriptions[label], label))
    return tuple([descriptions[label] for label in ordered]), ordered


def _describe_unsplit(
    leaves: tuple[_Leaf, ...], common: list[Label], rest: list[Label]
) -> tuple[Name, Name]:
    """Describe the labels of a part in their order, and its groups."""
    descriptions: dict[Label, Name] = {}
    for leaf in leaves:
        descriptions.update(leaf.descriptions)
    ranked = [*common, *rest]
    return (
        tuple([descriptions[label] for label in ranked]),
        tuple([_describe_leaf(leaf, ranked) for leaf in leaves]),
    )


def _describe_leaf(leaf: _Leaf, labels: Sequence[Label]) -> Name:
    """Describe one group by all that no numbering changes."""
    group, relations = leaf.group, leaf.relations
    traits = group.traits
    return (
        (group.mask, group.size, leaf.tag),
        (traits.left is not None, traits.left or (), traits.costs),
        tuple(map(str, group.identity)) if group.identity else (),
        tuple(
            [
                (rank, relations[label])
                for rank, label in enumerate(labels)
                if label in relations
            ]
        ),
    )


# --- numbers -------------------------------------------------------------------------


def _renumber(
    shape: NodeShape, leaves: Sequence[_Leaf], attributes: tuple[int, ...]
) -> NodeShape:
    """Put groups into an order and number labels as they first occur.

    Counters and sets that no group has are left out: nothing can draw from them.
    """
    numbers: dict[Label, int] = {}
    counts: dict[tuple[int, int], int] = {}
    groups = []
    for leaf in leaves:
        for label in leaf.labels:
            if label not in numbers:
                numbers[label] = counts.get(label[:2], 0)
                counts[label[:2]] = numbers[label] + 1
        own = tuple([numbers[label] for label in leaf.labels])
        groups.append(_renumber_group(leaf, attributes, own))
    if not (shape.counters or shape.sets):
        return structs.replace(shape, groups=tuple(groups))
    counters: list[CounterShape] = []
    sets: list[tuple[tuple[str, ...] | None, tuple[object, ...]]] = []
    for what, _, number in numbers:
        if what == COUNTER:
            counters.append(shape.counters[number])
        elif what == COUNTER_SET:
            sets.append(shape.sets[number])
    return structs.replace(
        shape, groups=tuple(groups), counters=tuple(counters), sets=tuple(sets)
    )


@cached(bound=1 << 15)
def _renumber_group(
    leaf: _Leaf, attributes: tuple[int, ...], own: tuple[int, ...]
) -> GroupShape:
    """Rewrite a group with other numbers for its labels, in their order."""
    group, numbers = leaf.group, dict(zip(leaf.labels, own, strict=True))
    values = tuple(
        tuple(sorted(numbers[VALUE, attribute, value] for value in column))
        for attribute, column in zip(attributes, group.values, strict=True)
    )
    traits = group.traits
    if traits.draws or traits.groups:
        draws = ((numbers[COUNTER, 0, c], amount) for c, amount in traits.draws)
        groups = ((numbers[COUNTER_SET, 0, n], names) for n, names in traits.groups)
        traits = Traits(
            left=traits.left,
            costs=traits.costs,
            draws=tuple(sorted(draws)),
            groups=tuple(sorted(groups)),
        )
    return share_equal(
        GroupShape(group.mask, values, group.size, traits, group.identity)
    )


def _relate(
    group: GroupShape, attributes: tuple[int, ...]
) -> dict[Label, tuple[object, ...]]:
    """Map each label of a group to its columns, drawn amount or allowed names."""
    relation: dict[Label, tuple[object, ...]] = {}
    for column, values in enumerate(group.values):
        for value in values:
            label = (VALUE, attributes[column], value)
            relation[label] = (*relation.get(label, ()), column)
    for counter, amount in group.traits.draws:
        relation[COUNTER, 0, counter] = (amount,)
    for number, names in group.traits.groups:
        relation[COUNTER_SET, 0, number] = names
    return relation


@cached(bound=1 << 15)
def share_equal(part: T) -> T:
    """Return the same object for equal parts of states: these are many, parts few."""
    return part


def _split(count: int, owners: Iterable[int]) -> list[tuple[int, ...]]:
    """Split groups into parts that share no label; `owners`: bits for each label."""
    parts = [1 << index for index in range(count)]
    for bits in owners:
        if bits & (bits - 1):
            apart, joined = [], bits
            for part in parts:
                if part & bits:
                    joined |= part
                else:
                    apart.append(part)
            parts = [*apart, joined]
    if len(parts) == 1:
        return [tuple(range(count))]
    return [_list_bits(part) for part in sorted(parts)]


@cached(bound=1 << 12)
def _list_bits(bits: int) -> tuple[int, ...]:
    return tuple([index for index in range(bits.bit_length()) if bits >> index & 1])
