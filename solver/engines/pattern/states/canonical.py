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
    """Of each group its index in the shape that was given."""


@cached(bound=1 << 15)
def canonicalize(
    shape: NodeShape, attributes: tuple[int, ...], tags: tuple[int, ...] = ()
) -> CanonicalForm:
    """Bring a shape into canonical form; `attributes`: which one each column shows.

    `tags` tell groups apart that are alike otherwise; one for each group, or none.
    """
    naming = _Naming(shape, attributes, tags)
    all_groups = tuple(range(len(shape.groups)))
    _, order = naming.name(all_groups, frozenset())
    return CanonicalForm(naming.renumber(order), order)


class _Naming:
    """Names the groups of one shape; call `name`, then `renumber` with its order."""

    def __init__(
        self, shape: NodeShape, attributes: tuple[int, ...], tags: tuple[int, ...]
    ) -> None:
        self._shape = shape
        self._attributes = attributes
        self._tags = tags or (0,) * len(shape.groups)
        self._relations = [_relate(group, attributes) for group in shape.groups]
        """How each group is related to each of its labels."""
        self._owners: dict[Label, int] = {}
        """The groups that have each label, one bit each."""
        for index, relation in enumerate(self._relations):
            for label in relation:
                self._owners[label] = self._owners.get(label, 0) | 1 << index

    def _describe_label(self, label: Label) -> Name:
        """Describe what a label is by itself, whoever has it."""
        what, attribute, number = label
        if what == COUNTER:
            counter = self._shape.counters[number]
            return (what, 0, counter.left, (), tuple(map(str, counter.identity)))
        if what == COUNTER_SET:
            allowed, identity = self._shape.sets[number]
            limited = 0 if allowed is None else 1
            return (what, 0, limited, allowed or (), tuple(map(str, identity)))
        return (what, attribute, 0, (), ())

    def name(
        self, groups: tuple[int, ...], ignored: frozenset[Label]
    ) -> tuple[Name, tuple[int, ...]]:
        """Return the name of some groups by their labels, and their canonical order.

        `ignored` are labels that all of them have, which are named already.
        """
        if len(groups) == 1:
            return self._name_single(groups[0], ignored), groups
        # First take off the labels that all these groups have: they tell none apart.
        bits = sum([1 << index for index in groups])
        owners: dict[Label, int] = {}
        for index in groups:
            for label in self._relations[index]:
                if label not in ignored and label not in owners:
                    owners[label] = self._owners[label]
        common = [label for label, bits_of in owners.items() if bits_of == bits]
        common.sort(key=self._sort_key)
        head = tuple(map(self._describe_label, common))
        # Then split the groups where no other label holds them together.
        rest = [label for label, bits_of in owners.items() if bits_of != bits]
        parts = _split(groups, [owners[label] for label in rest])
        if len(parts) == 1:
            # They are not nested: keep their order, and miss a symmetry perhaps.
            ranked = [*common, *rest]
            intrinsic = tuple(map(self._describe_label, ranked))
            leaves = tuple(self._describe_group(index, ranked) for index in groups)
            return (head, UNSPLIT, intrinsic, leaves), groups
        # Finally name each part on its own: sorted by name, equal parts are exchanged.
        inner_ignored = ignored.union(common)
        named = sorted([self._name_part(part, common, inner_ignored) for part in parts])
        order = tuple([index for _, _, part in named for index in part])
        names = tuple([(name, relations) for name, relations, _ in named])
        return (head, SPLIT, names), order

    def _name_part(
        self, part: tuple[int, ...], common: list[Label], ignored: frozenset[Label]
    ) -> tuple[Name, Name, tuple[int, ...]]:
        """Name a part, with how its groups are related to the labels that all have."""
        name, order = self.name(part, ignored)
        relations = tuple(
            [
                tuple([self._relations[index][label] for label in common])
                for index in order
            ]
        )
        return name, relations, order

    def _name_single(self, index: int, ignored: frozenset[Label]) -> Name:
        labels = [label for label in self._relations[index] if label not in ignored]
        if len(labels) > 1:
            labels.sort(key=self._sort_key)
        head = tuple(map(self._describe_label, labels))
        return (head, SINGLE, self._describe_group(index, labels))

    def _sort_key(self, label: Label) -> tuple[Name, Label]:
        return self._describe_label(label), label

    def _describe_group(self, index: int, labels: Sequence[Label]) -> Name:
        """Describe one group by all that no numbering changes."""
        group, relations = self._shape.groups[index], self._relations[index]
        traits = group.traits
        return (
            (group.mask, group.size, self._tags[index]),
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

    def renumber(self, order: tuple[int, ...]) -> NodeShape:
        """Put groups into an order and number labels as they first occur.

        Counters and sets that no group has are left out: nothing can draw from them.
        """
        # First give each label its number: counted by what it is, and by attribute.
        numbers: dict[Label, int] = {}
        counts: dict[tuple[int, int], int] = {}
        for index in order:
            labels = list(self._relations[index])
            if len(labels) > 1:
                labels.sort(key=self._sort_key)
            for label in labels:
                if label not in numbers:
                    numbers[label] = counts.get(label[:2], 0)
                    counts[label[:2]] = numbers[label] + 1
        # Then say everything anew under these numbers.
        groups = tuple(self._renumber_group(index, numbers) for index in order)
        counters: list[CounterShape] = []
        sets: list[tuple[tuple[str, ...] | None, tuple[object, ...]]] = []
        for what, _, number in numbers:
            if what == COUNTER:
                counters.append(self._shape.counters[number])
            elif what == COUNTER_SET:
                sets.append(self._shape.sets[number])
        return structs.replace(
            self._shape, groups=groups, counters=tuple(counters), sets=tuple(sets)
        )

    def _renumber_group(self, index: int, numbers: dict[Label, int]) -> GroupShape:
        group = self._shape.groups[index]
        values = tuple(
            tuple(sorted(numbers[VALUE, attribute, value] for value in column))
            for attribute, column in zip(self._attributes, group.values, strict=True)
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


@cached(bound=1 << 14)
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


def _split(groups: Sequence[int], owners: Iterable[int]) -> list[tuple[int, ...]]:
    """Split groups into parts that share no label; `owners`: bits for each label."""
    parts = [1 << index for index in groups]
    for bits in owners:
        if bits & (bits - 1):
            apart = [part for part in parts if not part & bits]
            joined = sum([part for part in parts if part & bits])
            parts = [*apart, joined]
    if len(parts) == 1:
        return [tuple(groups)]
    return [tuple([i for i in groups if part >> i & 1]) for part in sorted(parts)]
