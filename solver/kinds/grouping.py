"""Groups the devices of a node that the batch cannot tell apart.

What a group's values are does not matter, only which of them are equal, so they are
numbered canonically: values of an attribute are ranked by what has them, so nodes that
differ only in the values themselves get equal numbers. Values that are had by alike
devices are numbered in the order of their first device.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from msgspec import Struct

from contracts.ids import DeviceID
from solver.cache import Cache
from solver.kinds.query import Query
from solver.kinds.shapes import DeviceGroup, GroupShape, Identity
from solver.kinds.traits import PLAIN, Traits
from solver.problem.attributes import Element

SortedGroups = tuple[tuple[GroupShape, tuple[int, ...]], ...]
"""Groups in their order, each with the indices of its devices."""
MOST_ALIKE = 1024
"""Nodes with different devices that are remembered while a cluster is looked at."""


class ServingDevice(Struct, frozen=True):
    """One device that may serve something, before it is put into a group."""

    name: DeviceID
    position: int
    mask: int
    values: tuple[frozenset[Element], ...]
    traits: Traits
    identity: Identity
    is_pinning: bool = False


class Grouper:
    """Puts the devices of nodes into groups, for one query."""

    def __init__(self, query: Query) -> None:
        self._query = query
        self._sorted_before: Cache[Hashable, SortedGroups] = Cache(MOST_ALIKE)

    def group(
        self, devices: list[ServingDevice]
    ) -> list[tuple[GroupShape, DeviceGroup]]:
        """Put devices that are alike into groups, with their values numbered."""
        return [
            (
                shape,
                DeviceGroup(
                    tuple(devices[index].name for index in members),
                    tuple(devices[index].position for index in members),
                ),
            )
            for shape, members in self._sort_devices(devices)
        ]

    def _sort_devices(self, devices: list[ServingDevice]) -> SortedGroups:
        """Sort devices into groups; once where nodes have the same plain devices."""
        if self._query.is_by_device or any(
            device.traits is not PLAIN or device.identity for device in devices
        ):
            return self._sort_anew(devices)
        key = tuple((device.mask, device.values) for device in devices)
        groups = self._sorted_before.get(key)
        if groups is None:
            groups = self._sorted_before.keep(key, self._sort_anew(devices))
        return groups

    def _sort_anew(self, devices: list[ServingDevice]) -> SortedGroups:
        members_by_key: dict[tuple[object, ...], list[int]] = {}
        for index, device in enumerate(devices):
            key: tuple[object, ...] = (
                device.mask,
                device.values,
                device.traits,
                device.identity,
                device.is_pinning,
            )
            if device.traits.left is not None or self._query.is_by_device:
                key = (*key, device.name)
            members_by_key.setdefault(key, []).append(index)
        alike = [
            [devices[index] for index in group] for group in members_by_key.values()
        ]
        values = number_values(
            [column.attribute for column in self._query.columns],
            [AlikeDevices(g[0].values, (g[0].mask, len(g))) for g in alike],
        )
        shapes = [
            GroupShape(
                group[0].mask,
                numbers,
                len(group),
                group[0].traits,
                _identity_of(group),
                self._list_elements(group[0]),
                group[0].is_pinning,
            )
            for group, numbers in zip(alike, values, strict=True)
        ]
        groups = zip(shapes, map(tuple, members_by_key.values()), strict=True)
        return tuple(sorted(groups, key=lambda pair: _order_of(pair[0])))

    def _list_elements(self, device: ServingDevice) -> tuple[tuple[Element, ...], ...]:
        """List the values that are compared between nodes, in one fixed order."""
        return tuple(
            tuple(sorted(device.values[column], key=repr))
            for column in self._query.named
        )


def _order_of(shape: GroupShape) -> tuple[object, ...]:
    traits = shape.traits
    return (
        shape.mask,
        shape.values,
        traits.left or (),
        traits.costs,
        traits.draws,
        traits.groups,
        tuple(map(str, shape.identity)),
        tuple(map(repr, shape.elements)),
    )


def _identity_of(group: list[ServingDevice]) -> Identity:
    """Return what names the devices of a group to other nodes that see them."""
    if not group[0].identity:
        return ()
    return (*group[0].identity[:2], *(item.name.device for item in group))


Numbers = tuple[tuple[int, ...], ...]
"""By column: the numbers of a device's values, ascending."""


class AlikeDevices(Struct, frozen=True):
    """A group of alike devices: its values by column, and what else it is."""

    values: tuple[frozenset[Element], ...]
    profile: tuple[int, int]


def number_values(
    attributes: Sequence[str], groups: Sequence[AlikeDevices]
) -> list[Numbers]:
    """Number the values of all columns of one attribute together."""
    ranks = {name: _rank_values(name, attributes, groups) for name in set(attributes)}
    return [
        tuple(
            tuple(sorted(ranks[name][value] for value in values))
            for name, values in zip(attributes, group.values, strict=True)
        )
        for group in groups
    ]


def _rank_values(
    name: str, attributes: Sequence[str], groups: Sequence[AlikeDevices]
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
