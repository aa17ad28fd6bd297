"""Node states that differ only in how things are numbered get one name, others do not.

Shapes are nested as devices are: cards with counters on PCIe roots in NUMA nodes.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

import pytest
from msgspec import structs

from solver.engines.pattern.states.canonical import canonicalize
from solver.kinds.shapes import CounterShape, GroupShape, NodeShape
from solver.kinds.traits import PLAIN, Traits

ATTRIBUTES = (0, 1)
"""Columns: the PCIe root and the NUMA node."""
SETS = ("", "a")
Sets = tuple[tuple[tuple[str, ...] | None, tuple[object, ...]], ...]


def drawn_shape(draw: random.Random) -> NodeShape:
    """Draw a node: NUMA nodes of PCIe roots of plain devices and cards in parts."""
    groups = list[GroupShape]()
    counters = list[CounterShape]()
    sets: list[tuple[tuple[str, ...] | None, tuple[object, ...]]] = []
    roots = 0
    for numa in range(1, draw.randint(2, 4)):
        for _ in range(draw.randint(1, 3)):
            roots += 1
            place = ((roots,), (numa,))
            plain = draw.choice((1, 2))
            groups.append(GroupShape(plain, place, draw.randint(1, 2)))
            if draw.random() < 0.5:
                groups.extend(_parts(len(counters), place, draw))
                counters.append(CounterShape(draw.choice((4, 8))))
                sets.append((draw.choice((None, SETS)), ()))
    if draw.random() < 0.3:
        shares = Traits(left=(draw.choice((2, 4)),), costs=((1,), (1,), (2,)))
        groups.append(GroupShape(4, ((), (1,)), 1, shares))
    return NodeShape(tuple(groups), 7, tuple(counters), tuple(sets), fits=3, free=(5,))


def _parts(
    counter: int, place: tuple[tuple[int, ...], ...], draw: random.Random
) -> Iterator[GroupShape]:
    for mask, size, amount in draw.sample(((1, 1, 8), (2, 2, 4), (4, 4, 2)), 2):
        traits = Traits(draws=((counter, amount),), groups=((counter, SETS),))
        yield GroupShape(mask, place, size, traits)


def renumbered(shape: NodeShape, draw: random.Random) -> NodeShape:
    """Say the same of a node in another order, under other numbers."""
    values = {
        column: draw.sample(range(1, 100), 20) for column in range(len(ATTRIBUTES))
    }
    others = draw.sample(range(len(shape.counters)), len(shape.counters))
    places = draw.sample(range(len(shape.sets)), len(shape.sets))
    groups = [
        structs.replace(
            group,
            values=tuple(
                tuple(sorted(values[c][value] for value in column))
                for c, column in enumerate(group.values)
            ),
            traits=structs.replace(
                group.traits,
                draws=tuple(sorted((others[n], d) for n, d in group.traits.draws)),
                groups=tuple(sorted((places[n], d) for n, d in group.traits.groups)),
            )
            if group.traits.draws
            else group.traits,
        )
        for group in draw.sample(shape.groups, len(shape.groups))
    ]
    return structs.replace(
        shape,
        groups=tuple(groups),
        counters=tuple(shape.counters[others.index(i)] for i in range(len(others))),
        sets=tuple(shape.sets[places.index(i)] for i in range(len(places))),
    )


def changed(shape: NodeShape, draw: random.Random) -> NodeShape:
    """Make a node truly another, by one fact that every numbering shows."""
    index = draw.randrange(len(shape.groups))
    group = shape.groups[index]
    options = [structs.replace(group, size=group.size + 3)]
    options.append(structs.replace(group, mask=group.mask | 8))
    options.append(structs.replace(group, values=((), group.values[1])))
    if not group.values[0]:
        options.pop()
    if group.traits.draws:
        ((counter, amount),) = group.traits.draws
        draws = ((counter, amount + 1),)
        more = structs.replace(group.traits, draws=draws)
        options.append(structs.replace(group, traits=more))
    other = draw.choice(options)
    groups = (*shape.groups[:index], other, *shape.groups[index + 1 :])
    return structs.replace(shape, groups=groups)


def facts(group: GroupShape) -> tuple[object, ...]:
    """Say what of a group no numbering changes."""
    traits = group.traits
    return (
        (group.mask, group.size, group.identity),
        (traits.left, traits.costs, sorted(amount for _, amount in traits.draws)),
        (sorted(names for _, names in traits.groups), [len(v) for v in group.values]),
    )


def labels(group: GroupShape) -> Iterator[tuple[str, int, int]]:
    for column, values in enumerate(group.values):
        yield from (("value", ATTRIBUTES[column], value) for value in values)
    yield from (("counter", 0, counter) for counter, _ in group.traits.draws)
    yield from (("set", 0, number) for number, _ in group.traits.groups)


def sharing(groups: Sequence[GroupShape]) -> list[list[frozenset[str]]]:
    """Say of any two groups which labels they share, whatever their numbers."""
    found = [set(labels(group)) for group in groups]
    return [[frozenset(what for what, *_ in a & b) for b in found] for a in found]


@pytest.mark.parametrize("seed", range(200))
def test_numbering_changes_no_name(seed: int) -> None:
    """Groups in any order, values, counters and sets under any numbers: one shape."""
    draw = random.Random(seed)
    shape = drawn_shape(draw)
    name = canonicalize(shape, ATTRIBUTES).shape
    for _ in range(5):
        assert canonicalize(renumbered(shape, draw), ATTRIBUTES).shape == name


@pytest.mark.parametrize("seed", range(200))
def test_what_truly_differs_has_another_name(seed: int) -> None:
    """One size, use, value or draw that is another: another shape."""
    draw = random.Random(seed)
    shape = drawn_shape(draw)
    other = renumbered(changed(shape, draw), draw)
    assert (
        canonicalize(other, ATTRIBUTES).shape != canonicalize(shape, ATTRIBUTES).shape
    )


@pytest.mark.parametrize("seed", range(200))
def test_order_leads_back_to_the_groups(seed: int) -> None:
    """It is a permutation, and each group is and shares what it was and shared."""
    draw = random.Random(seed)
    shape = renumbered(drawn_shape(draw), draw)
    found = canonicalize(shape, ATTRIBUTES)
    before = [shape.groups[index] for index in found.order]
    assert sorted(found.order) == list(range(len(shape.groups)))
    assert list(map(facts, found.shape.groups)) == list(map(facts, before))
    assert sharing(found.shape.groups) == sharing(before)
    for group, known in zip(found.shape.groups, before, strict=True):
        for mine, his in zip(group.traits.draws, known.traits.draws, strict=True):
            assert found.shape.counters[mine[0]] == shape.counters[his[0]]
        for same, old in zip(group.traits.groups, known.traits.groups, strict=True):
            assert found.shape.sets[same[0]] == shape.sets[old[0]]


def test_a_name_is_its_own_name() -> None:
    """Naming what was named changes nothing, not even the order."""
    for seed in range(50):
        name = canonicalize(drawn_shape(random.Random(seed)), ATTRIBUTES).shape
        again = canonicalize(name, ATTRIBUTES)
        assert again.shape == name
        assert again.order == tuple(range(len(name.groups)))


def of_roots(*roots: tuple[int, ...]) -> NodeShape:
    """Make a node of plain devices of kind 0 on these PCIe roots."""
    groups = tuple(GroupShape(1, (values, ()), 1) for values in roots)
    return NodeShape(groups, 1)


def test_who_is_together_is_told_apart() -> None:
    """Four devices in twos, and one with three: the same counts, not the same node."""
    twos, three = of_roots((1,), (1,), (2,), (2,)), of_roots((1,), (1,), (1,), (2,))
    assert canonicalize(twos, ATTRIBUTES).shape != canonicalize(three, ATTRIBUTES).shape


def test_where_counters_belong_is_told_apart() -> None:
    """Two parts of one card, and parts of two cards that are as full."""
    counters = (CounterShape(4), CounterShape(4))

    def parts(*draws: int) -> NodeShape:
        groups = tuple(
            GroupShape(1, ((root,), ()), 1, Traits(draws=((counter, 2),)))
            for root, counter in enumerate(draws, start=1)
        )
        return NodeShape(groups, 1, counters)

    one, two = (canonicalize(parts(*draws), ATTRIBUTES) for draws in ((0, 0), (0, 1)))
    assert one.shape != two.shape


def test_tags_tell_groups_apart() -> None:
    """Which of two equal devices is tagged does not matter; that one is, does."""
    shape = of_roots((1,), (2,))
    first, second, none = (
        canonicalize(shape, ATTRIBUTES, tags) for tags in ((1, 0), (0, 1), (0, 0))
    )
    assert [(1, 0)[index] for index in first.order] == [
        (0, 1)[index] for index in second.order
    ]
    assert first.shape == second.shape == none.shape


def test_one_value_in_two_columns_of_an_attribute_is_one() -> None:
    """Columns that show one attribute share numbers; those of two do not."""
    same = NodeShape(
        (GroupShape(1, ((1,), (1,)), 1), GroupShape(2, ((2,), (2,)), 1)), 3
    )
    crossed = NodeShape(
        (GroupShape(1, ((1,), (2,)), 1), GroupShape(2, ((2,), (1,)), 1)), 3
    )
    assert canonicalize(same, (0, 0)).shape != canonicalize(crossed, (0, 0)).shape
    assert canonicalize(same, (0, 1)).shape == canonicalize(crossed, (0, 1)).shape


def test_what_nobody_draws_from_is_left_out() -> None:
    """An unused counter makes no node different."""
    shape = of_roots((1,), (1,))
    more = structs.replace(shape, counters=(CounterShape(7),), sets=((None, ()),))
    assert canonicalize(more, ATTRIBUTES).shape == canonicalize(shape, ATTRIBUTES).shape
    assert shape.groups[0].traits is PLAIN
