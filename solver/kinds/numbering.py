"""Numbers in place of values that only matter by being equal inside one node.

A canonical numbering: values of an attribute are ranked by what has them, so nodes that
differ only in the values themselves get equal numbers. Values that are had by alike
devices are numbered in the order of their first device.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from solver.problem.attributes import Element

Numbers = tuple[tuple[int, ...], ...]
"""By column: the numbers of a device's values, ascending."""


class Numbered(Struct, frozen=True):
    """A group of alike devices: its values by column, and what else it is."""

    values: tuple[frozenset[Element], ...]
    profile: tuple[int, int]


def numbered(attributes: Sequence[str], groups: Sequence[Numbered]) -> list[Numbers]:
    """Number the values of all columns of one attribute together."""
    ranks = {name: _ranks(name, attributes, groups) for name in set(attributes)}
    return [
        tuple(
            tuple(sorted(ranks[name][value] for value in values))
            for name, values in zip(attributes, group.values, strict=True)
        )
        for group in groups
    ]


def _ranks(
    name: str, attributes: Sequence[str], groups: Sequence[Numbered]
) -> dict[Element, int]:
    profiles: dict[Element, list[tuple[int, tuple[int, int]]]] = {}
    for group in groups:
        for column, values in enumerate(group.values):
            if attributes[column] != name:
                continue
            for value in sorted(values, key=repr) if len(values) > 1 else values:
                profiles.setdefault(value, []).append((column, group.profile))
    ranked = sorted(profiles, key=lambda value: sorted(profiles[value]))
    return {value: rank + 1 for rank, value in enumerate(ranked)}
