"""The devices of nodes as a batch sees them; nodes that are alike are read once.

Most nodes differ in names alone (`solver/devices/likeness.py`), and of the values that
constraints compare it only matters which are equal. So one node is read for all that
are alike, and the others get what it has with the names of their own devices.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping

from msgspec import Struct

from contracts.features import Features
from contracts.ids import DeviceID, DeviceName
from solver.cache import Cache, Slots
from solver.devices.candidates import (
    Selection,
    find_free,
    find_supported,
    find_tolerated,
    indices_of,
    select_devices,
)
from solver.devices.facts import facts_of, pool_of
from solver.devices.gather import NodePools
from solver.devices.likeness import (
    MOST_ALIKE,
    likeness_of,
    number_equal,
    values_of,
)
from solver.devices.pools import PoolView, slice_of
from solver.devices.published import find_published
from solver.errors import VerdictMissingError
from solver.kinds.grouping import Grouper, ServingDevice
from solver.kinds.node_cache import NodeCache
from solver.kinds.query import Column, Query
from solver.kinds.shapes import CounterShape, DeviceGroup, GroupShape, Identity
from solver.kinds.traits import (
    PLAIN,
    Counters,
    find_drawing,
    find_targets,
    find_with_room,
    is_plain,
    traits_of,
)
from solver.problem.attributes import DERIVED, Element, elements_of
from solver.selectors.footprint import footprint_of
from solver.selectors.projection import project
from solver.selectors.table import SelectorTable
from solver.snapshot.parts import Part, PoolPart

MOST_ATTRIBUTES = 16
"""Whose values are remembered of one pool."""
_BITS_BY_VALUE: Slots[tuple[str, bool, bool], Mapping[Element, int]] = Slots(
    MOST_ATTRIBUTES
)
"""By part of a pool, attribute and whether lists count: the devices with a value."""


class DeviceShapes(Struct, frozen=True, eq=False):
    """What the batch sees of a node's devices, whatever it asks of the node.

    Nodes that are alike share one; compared by identity.
    """

    shapes: tuple[GroupShape, ...]
    all_free: int
    counters: tuple[CounterShape, ...]
    sets: tuple[tuple[tuple[str, ...] | None, Identity], ...]
    own: int | None
    """Devices that pods may have for themselves."""


Groups = tuple[DeviceGroup, ...]
"""As many as `DeviceShapes.shapes`, in its order."""
_DEVICES: NodeCache[tuple[DeviceShapes, Groups]] = NodeCache()


class _Likes(Struct, frozen=True):
    """What alike nodes have in common: the names of devices by pool, group by group."""

    devices: DeviceShapes
    members: tuple[tuple[tuple[int, DeviceName], ...], ...]
    """(index of the node's pool, device), by group."""
    positions: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, node: NodePools, devices: DeviceShapes, groups: Groups) -> _Likes:
        """Keep of one node what holds for all that are alike."""
        numbers = {
            (view.driver, view.pool): number for number, view in enumerate(node.pools)
        }
        members = tuple(
            tuple((numbers[name.driver, name.pool], name.device) for name in g.devices)
            for g in groups
        )
        return cls(devices, members, tuple(group.positions for group in groups))

    def groups_on(self, node: NodePools) -> Groups:
        """Name the devices of one of these nodes."""
        if not self.members:
            return ()
        views = node.pools
        return tuple(
            [
                DeviceGroup(
                    tuple(
                        [
                            DeviceID(views[pool].driver, views[pool].pool, name)
                            for pool, name in members
                        ]
                    ),
                    positions,
                )
                for members, positions in zip(self.members, self.positions, strict=True)
            ]
        )


class DeviceReader:
    """Reads the devices of nodes with one query."""

    def __init__(self, query: Query, table: SelectorTable, features: Features) -> None:
        self._query = query
        self._table = table
        self._features = features
        question = (query.requests, query.columns, query.named, query.is_exact)
        self._devices_by_node = _DEVICES.of(question)
        self._grouper = Grouper(query)
        self._tolerations = {kind.tolerations for kind in query.requests}
        self._accesses = {kind.admin for kind in query.requests}
        self._selectors = tuple(
            dict.fromkeys(name for kind in query.requests for name in kind.selectors)
        )
        self._alike: Cache[Hashable, _Likes] = Cache(MOST_ALIKE)
        self._is_by_amounts = any(kind.capacity for kind in query.requests)
        is_by_value = any(kind.values for kind in query.requests)
        is_derived = any(column.expression for column in query.columns)
        self._is_by_node = is_by_value or is_derived
        """True if more of devices decides than what alike nodes are equal in."""

    def read(self, node: NodePools) -> tuple[DeviceShapes, Groups]:
        """Read the devices of a node."""
        entry = self._devices_by_node.get(node.name)
        if entry is None or entry[0] is not node:
            entry = self._devices_by_node[node.name] = (node, self._read_node(node))
        return entry[1]

    def _read_node(self, node: NodePools) -> tuple[DeviceShapes, Groups]:
        key = self._find_likeness(node)
        likes = None if key is None else self._alike.get(key)
        if likes is not None:
            return likes.devices, likes.groups_on(node)
        devices, groups = self._read_each(node)
        if key is not None:
            self._alike.keep(key, _Likes.of(node, devices, groups))
        return devices, groups

    def _find_likeness(self, node: NodePools) -> Hashable | None:
        """Return a key of what decides about its devices; None: it is like no other."""
        query = self._query
        if self._is_by_node:
            return None
        likeness = likeness_of(node, self._selectors, by_amounts=self._is_by_amounts)
        if likeness is None or not query.columns:
            return likeness
        values = []
        for number, column in enumerate(query.columns):
            read = values_of(node, column.attribute)
            if read is None:
                return None
            values.append(read if number in query.named else number_equal(read))
        return likeness, tuple(values)

    def _read_each(self, node: NodePools) -> tuple[DeviceShapes, Groups]:
        # First pool by pool: what its counters have left, whom its devices may serve.
        counters, devices = Counters(), list[ServingDevice]()
        meant_kinds = blocked_kinds = position = 0
        for view in node.pools:
            if not view.usable:
                continue
            sound = counters.add(view)
            masks, meant, lacking = self._find_masks(view, node, sound=sound)
            meant_kinds |= meant
            blocked_kinds |= lacking
            devices.extend(self._read_serving(view, masks, counters, position))
            position += view.targeting.bit_count()
        # A pool that is not whole keeps every request for all devices away.
        if node.blocks_all:
            blocked_kinds = -1
        # Then, with all counters known, devices that cannot be told apart.
        groups = self._grouper.group(devices)
        read = DeviceShapes(
            shapes=tuple(shape for shape, _ in groups),
            all_free=meant_kinds & ~blocked_kinds,
            counters=tuple(map(CounterShape, counters.left, counters.owners)),
            sets=tuple(zip(counters.allowed, counters.set_owners, strict=True)),
            own=_count_own(shape for shape, _ in groups),
        )
        return read, tuple(group for _, group in groups)

    def _find_masks(
        self, view: PoolView, node: NodePools, *, sound: bool
    ) -> tuple[list[int], int, int]:
        """Find what each device may serve; and the kinds that mean any, or lack one."""
        # First what holds for every request, then what each of them means and may have.
        features = self._features
        masks = [0] * len(view.devices)
        supported = find_supported(view, node.node, features)
        drawing = 0 if sound else find_drawing(view, features)
        tolerated = {
            tolerations: find_tolerated(view, tolerations, features)
            for tolerations in self._tolerations
        }
        free = {
            admin: find_free(view, features, admin=admin) for admin in self._accesses
        }
        meant_kinds = lacking_kinds = 0
        for number, kind in enumerate(self._query.requests):
            selection = _require_complete(
                select_devices(view.part, kind.selectors, self._table)
            )
            meant = find_targets(view, selection.bits, kind, features)
            usable = meant & supported & free[kind.admin] & tolerated[kind.tolerations]
            if not kind.admin:
                usable = find_with_room(view, usable & ~drawing, kind, features)
            for attribute, value in kind.values:
                usable &= _find_values(view.part, attribute, features).get(value, 0)
            meant_kinds |= bool(meant) << number
            lacks_some = usable != meant or selection.faulty & view.targeting
            lacking_kinds |= bool(lacks_some) << number
            for index in indices_of(usable):
                masks[index] |= 1 << number
        return masks, meant_kinds, lacking_kinds

    def _read_serving(
        self, view: PoolView, masks: list[int], counters: Counters, first: int
    ) -> Iterator[ServingDevice]:
        query = self._query
        pool = pool_of(view.part)
        for index, mask in enumerate(masks):
            if not mask:
                continue
            device = view.devices[index]
            traits = PLAIN
            if not is_plain(device):
                traits = traits_of(view, device, counters, query, self._features)
            name = DeviceID(view.driver, view.pool, device.name)
            identity: Identity = ()
            if not pool.node:
                identity = (view.driver, view.pool, *_name_reach(view.part, index))
            yield ServingDevice(
                name,
                first + (view.targeting & ((1 << index) - 1)).bit_count(),
                mask,
                tuple(
                    self._read_value(view, index, column) for column in query.columns
                ),
                traits,
                identity,
                bool(identity) and _is_pinning(pool, index),
            )

    def _read_value(
        self, view: PoolView, index: int, column: Column
    ) -> frozenset[Element]:
        device, driver = view.devices[index], view.driver
        if not column.expression:
            attribute = find_published(device, driver, column.attribute)
            return elements_of(attribute, self._features)
        expression = DERIVED + column.expression
        projection = project(footprint_of(expression), driver, device)
        verdict = self._table.get(expression, projection)
        if verdict is None:
            raise VerdictMissingError(expression)
        return elements_of(verdict.attribute, self._features)


def _name_reach(part: Part, index: int) -> tuple[str, ...]:
    """Name what other nodes see together with a device: its slice, if nothing less.

    A name that several slices use is one device (DRA: device ids).
    """
    pool = pool_of(part)
    pool_slice = slice_of(pool, index)
    is_seen_alone = (
        pool_slice.per_device_node_selection or pool_slice.skip_node_operations
    )
    if is_seen_alone or not facts_of(part).has_unique_names:
        return ("device", pool.devices[index].name)
    return ("slice", pool_slice.name)


def _is_pinning(pool: PoolPart, index: int) -> bool:
    """True if the result of a claim names one node: see `Results`."""
    device, pool_slice = pool.devices[index], slice_of(pool, index)
    selector = pool_slice.node_selector
    if pool_slice.per_device_node_selection:
        selector = device.node_selector
    terms = () if selector is None else selector.node_selector_terms
    return bool(device.binds_to_node) or len(terms) > 1


def _find_values(
    part: Part, attribute: str, features: Features
) -> Mapping[Element, int]:
    """Find the devices of a pool that publish one value of an attribute, by value."""
    results = _BITS_BY_VALUE.of(part.memory)
    key = (attribute, features.list_type_attributes, features.rules_of_138)
    bits_by_value = results.get(key)
    if bits_by_value is None:
        pool, found = pool_of(part), dict[Element, int]()
        for index, device in enumerate(pool.devices):
            published = find_published(device, pool.driver, attribute)
            elements = elements_of(published, features)
            if len(elements) == 1:
                (value,) = elements
                found[value] = found.get(value, 0) | 1 << index
        bits_by_value = results.keep(key, found)
    return bits_by_value


def _count_own(groups: Iterable[GroupShape]) -> int | None:
    """Count the devices that pods may have for themselves; None: no limit is known."""
    shapes = list(groups)
    if any(group.is_shareable for group in shapes):
        return None
    return sum(group.size for group in shapes)


def _require_complete(selection: Selection) -> Selection:
    if selection.missing:
        raise VerdictMissingError(selection.missing[0][0])
    return selection
