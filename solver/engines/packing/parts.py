"""A node cut into parts: devices that share no counter, capacity or compared value.

What is taken in one part changes nothing in another, so a node is so many parts, and
the batch knows few sorts of part: cards with their partitions, NUMA nodes where pods
are matched by them, single devices else. States are those of a part, not of a node.
"""

from __future__ import annotations

from collections.abc import Hashable

from msgspec import structs

from solver.errors import NotPackableError
from solver.kinds.shapes import DeviceGroup, GroupShape, NodeShape, NodeView
from solver.kinds.traits import Traits

Piece = tuple[int, int | None]
"""(group of the node, device in the group or None for all)."""


def cut(shape: NodeShape) -> tuple[tuple[Piece, ...], ...]:
    """Cut a node's devices into parts, by the order of its groups.

    Raises:
        NotPackableError: it has devices that other nodes see, too.
    """
    if any(group.identity for group in shape.groups):
        raise NotPackableError("devices that several nodes see")
    owners: dict[Hashable, int] = {}
    root = list(range(len(shape.groups)))

    def find(group: int) -> int:
        while root[group] != group:
            group = root[group]
        return group

    for number, group in enumerate(shape.groups):
        for label in _labels_of(group):
            root[find(number)] = find(owners.setdefault(label, number))
    parts: dict[int, list[Piece]] = {}
    singles: list[tuple[Piece, ...]] = []
    for number, group in enumerate(shape.groups):
        if not (group.mask and group.size):
            continue
        if any(_labels_of(group)):
            parts.setdefault(find(number), []).append((number, None))
        else:
            singles += [((number, device),) for device in range(group.size)]
    return (*map(tuple, parts.values()), *singles)


def _labels_of(group: GroupShape) -> set[Hashable]:
    """List what ties a group to others that have it, too."""
    labels: set[Hashable] = {("counter", number) for number, _ in group.traits.draws}
    labels |= {("set", number) for number, _ in group.traits.groups}
    for column, values in enumerate(group.values):
        labels |= {("value", column, value) for value in values}
    return labels


def part_shape(shape: NodeShape, pieces: tuple[Piece, ...]) -> NodeShape:
    """Write a part as a node of its own."""
    groups = [shape.groups[number] for number, _ in pieces]
    counters = sorted({number for g in groups for number, _ in g.traits.draws})
    sets = sorted({number for g in groups for number, _ in g.traits.groups})
    values: dict[tuple[int, int], int] = {}
    for group in groups:
        for column, own in enumerate(group.values):
            for value in own:
                values.setdefault((column, value), len(values))
    return NodeShape(
        groups=tuple(
            structs.replace(
                group,
                size=group.size if device is None else 1,
                values=tuple(
                    tuple(values[column, value] for value in own)
                    for column, own in enumerate(group.values)
                ),
                traits=_renumber(group.traits, counters, sets),
            )
            for group, (_, device) in zip(groups, pieces, strict=True)
        ),
        all_free=0,
        counters=tuple(shape.counters[number] for number in counters),
        sets=tuple(shape.sets[number] for number in sets),
    )


def _renumber(traits: Traits, counters: list[int], sets: list[int]) -> Traits:
    if not (traits.draws or traits.groups):
        return traits
    return structs.replace(
        traits,
        draws=tuple((counters.index(number), draw) for number, draw in traits.draws),
        groups=tuple((sets.index(number), names) for number, names in traits.groups),
    )


def part_view(view: NodeView, pieces: tuple[Piece, ...], shape: NodeShape) -> NodeView:
    """See a part of a node, with the names of its devices; `shape`: the part's own."""
    groups = []
    for number, device in pieces:
        group = view.groups[number]
        if device is not None:
            group = DeviceGroup((group.devices[device],), (group.positions[device],))
        groups.append(group)
    return NodeView(view.name, shape, tuple(groups))
