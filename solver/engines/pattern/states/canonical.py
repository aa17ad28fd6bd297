"""One name for all node states that differ only in how things are numbered.

What matters of an attribute value, a counter or a counter set is which devices have it:
call all three *labels*. Labels that all groups of a part have are taken off first; what
is left falls into parts that share no label; each is named on its own and they are
sorted by name. Device topologies (PCIe roots in NUMA nodes, partitions of a GPU) are
nested, so this finds their symmetries. A part that is not nested keeps its order: a
missed symmetry costs time, never truth, since equal names always mean isomorphic parts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct, structs

from solver.cache import cached
from solver.kinds.nodes import CounterShape, GroupShape, NodeShape
from solver.kinds.traits import Traits

Name = tuple[object, ...]
"""Sortable among names; equal ones mean parts that are numbered alike."""
Label = tuple[int, int, int]
"""(what it is, of which attribute, number)."""
VALUE, COUNTER, SET = range(3)


class Canonical(Struct, frozen=True):
    """A state under its one name."""

    shape: NodeShape
    order: tuple[int, ...]
    """Of each group its index in the shape that was named."""


@cached(bound=1 << 15)
def canonical(
    shape: NodeShape, attributes: tuple[int, ...], tags: tuple[int, ...] = ()
) -> Canonical:
    """Name a shape; `attributes`: which attribute each column shows.

    `tags` tell groups apart that are alike otherwise; one a group.
    """
    naming = _Naming(shape, attributes, tags)
    everything = tuple(range(len(shape.groups)))
    _, order = naming.name(everything, frozenset())
    return Canonical(naming.renumbered(order), order)


class _Naming:
    """Names one shape."""

    def __init__(
        self, shape: NodeShape, attributes: tuple[int, ...], tags: tuple[int, ...]
    ) -> None:
        self._shape = shape
        self._attributes = attributes
        self._tags = tags or (0,) * len(shape.groups)
        self._relations = [self._relation(group) for group in shape.groups]
        self.labels: dict[Label, int] = {}
        """The groups that have each label, one bit each."""
        for index, relation in enumerate(self._relations):
            for label in relation:
                self.labels[label] = self.labels.get(label, 0) | 1 << index

    def _relation(self, group: GroupShape) -> dict[Label, tuple[object, ...]]:
        """Say what a group is to each of its labels: columns, amounts, names."""
        found: dict[Label, tuple[object, ...]] = {}
        for column, values in enumerate(group.values):
            for value in values:
                label = (VALUE, self._attributes[column], value)
                found[label] = (*found.get(label, ()), column)
        for counter, amount in group.traits.draws:
            found[COUNTER, 0, counter] = (amount,)
        for number, names in group.traits.groups:
            found[SET, 0, number] = names
        return found

    def _intrinsic(self, label: Label) -> Name:
        """Say what a label is besides who has it."""
        what, attribute, number = label
        if what == COUNTER:
            counter = self._shape.counters[number]
            return (what, 0, counter.left, (), tuple(map(str, counter.identity)))
        if what == SET:
            allowed, identity = self._shape.sets[number]
            some = 0 if allowed is None else 1
            return (what, 0, some, allowed or (), tuple(map(str, identity)))
        return (what, attribute, 0, (), ())

    def name(
        self, members: tuple[int, ...], around: frozenset[Label]
    ) -> tuple[Name, tuple[int, ...]]:
        """Name groups by their labels, but for those `around`; gives their order."""
        if len(members) == 1:
            return self._single(members[0], around), members
        bits = sum([1 << index for index in members])
        own: dict[Label, int] = {}
        for index in members:
            for label in self._relations[index]:
                if label not in around and label not in own:
                    own[label] = self.labels[label]
        common = [label for label, having in own.items() if having == bits]
        common.sort(key=self._order)
        head = tuple(map(self._intrinsic, common))
        rest = [label for label, having in own.items() if having != bits]
        parts = _parts(members, [own[label] for label in rest])
        if len(parts) == 1:
            ranked = [*common, *rest]
            intrinsic = tuple(map(self._intrinsic, ranked))
            leaves = tuple(self._leaf(index, ranked) for index in members)
            return (head, 2, intrinsic, leaves), members
        inside = around.union(common)
        named = sorted([self._part(part, common, inside) for part in parts])
        order = tuple([index for _, _, part in named for index in part])
        return (head, 1, tuple([item[:2] for item in named])), order

    def _part(
        self, part: tuple[int, ...], common: list[Label], around: frozenset[Label]
    ) -> tuple[Name, Name, tuple[int, ...]]:
        """Name a part, with what its groups are to the labels that all have."""
        name, order = self.name(part, around)
        relations = tuple(
            [
                tuple([self._relations[index][label] for label in common])
                for index in order
            ]
        )
        return name, relations, order

    def _single(self, index: int, around: frozenset[Label]) -> Name:
        labels = [label for label in self._relations[index] if label not in around]
        if len(labels) > 1:
            labels.sort(key=self._order)
        head = tuple(map(self._intrinsic, labels))
        return (head, 0, self._leaf(index, labels))

    def _order(self, label: Label) -> tuple[Name, Label]:
        return self._intrinsic(label), label

    def _leaf(self, index: int, labels: Sequence[Label]) -> Name:
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

    def renumbered(self, order: tuple[int, ...]) -> NodeShape:
        """Put groups into an order and number labels as they first occur.

        Counters and sets that no group has are left out: nothing can draw from them.
        """
        numbers: dict[Label, int] = {}
        used: dict[tuple[int, int], int] = {}
        for index in order:
            labels = list(self._relations[index])
            if len(labels) > 1:
                labels.sort(key=self._order)
            for label in labels:
                if label not in numbers:
                    numbers[label] = used.get(label[:2], 0)
                    used[label[:2]] = numbers[label] + 1
        groups = tuple(self._group(index, numbers) for index in order)
        counters: list[CounterShape] = []
        sets: list[tuple[tuple[str, ...] | None, tuple[object, ...]]] = []
        for what, _, number in numbers:
            if what == COUNTER:
                counters.append(self._shape.counters[number])
            elif what == SET:
                sets.append(self._shape.sets[number])
        return structs.replace(
            self._shape, groups=groups, counters=tuple(counters), sets=tuple(sets)
        )

    def _group(self, index: int, numbers: dict[Label, int]) -> GroupShape:
        group = self._shape.groups[index]
        values = tuple(
            tuple(sorted(numbers[VALUE, attribute, value] for value in column))
            for attribute, column in zip(self._attributes, group.values, strict=True)
        )
        traits = group.traits
        if traits.draws or traits.groups:
            draws = ((numbers[COUNTER, 0, c], amount) for c, amount in traits.draws)
            groups = ((numbers[SET, 0, n], names) for n, names in traits.groups)
            traits = Traits(
                left=traits.left,
                costs=traits.costs,
                draws=tuple(sorted(draws)),
                groups=tuple(sorted(groups)),
            )
        return GroupShape(group.mask, values, group.size, traits, group.identity)


def _parts(members: Sequence[int], sets: Iterable[int]) -> list[tuple[int, ...]]:
    """Split groups into parts that share no label."""
    parts = [1 << index for index in members]
    for having in sets:
        if having & (having - 1):
            apart = [part for part in parts if not part & having]
            joined = sum([part for part in parts if part & having])
            parts = [*apart, joined]
    if len(parts) == 1:
        return [tuple(members)]
    return [tuple([i for i in members if part >> i & 1]) for part in sorted(parts)]
