"""Nodes as this batch sees them: groups of devices that it cannot tell apart.

A group is the devices of one node that may serve the same kinds of request, cost the
same, and have equal values in every attribute that a constraint compares. The values
themselves do not matter, only which of them are equal, so they are numbered in a
canonical order: unique ids and PCIe addresses do not make nodes different. Nodes with
equal groups are one node kind.

Theorem. Two nodes with equal shapes are isomorphic for the batch: the groups' masks
decide every selector, taint and use, the numbered values every comparison inside a
node, the traits every counter and share, `fits` and `free` what is asked of the node
itself; devices that several nodes see are named in the shape. So exchanging the nodes
in an answer leaves it valid and its value equal.
(The converse is not needed: a missed isomorphism costs time, not truth.)
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator

from msgspec import Struct

from contracts.features import Features
from contracts.ids import DeviceID, NodeName
from solver.cache import Cache
from solver.devices.candidates import (
    Selection,
    find_free,
    find_supported,
    find_tolerated,
    indices_of,
    select_devices,
)
from solver.devices.gather import Cluster, NodePools
from solver.devices.pools import SeenPool, pool_of, slice_of
from solver.errors import VerdictMissingError
from solver.kinds.demand import Column, Query
from solver.kinds.node_cache import NodeCache, ViewCache
from solver.kinds.node_fit import fits, left_of, told_apart
from solver.kinds.numbering import Numbered, numbered
from solver.kinds.traits import (
    PLAIN,
    Counters,
    Traits,
    drawing,
    is_plain,
    targets,
    traits_of,
    with_room,
)
from solver.problem.attributes import DERIVED, Element, elements, published
from solver.problem.problem import Problem
from solver.selectors.footprint import footprint_of
from solver.selectors.projection import project
from solver.selectors.table import SelectorTable
from solver.snapshot.parts import PoolPart

Identity = tuple[object, ...]
"""What names devices that several nodes see; empty: they are the node's own."""


class DeviceGroup(Struct, frozen=True):
    """Devices of a node that the batch cannot tell apart."""

    devices: tuple[DeviceID, ...]
    positions: tuple[int, ...]
    """Where kube-scheduler would look at each of them, among all of the node."""


MOST_ALIKE = 1024
"""Nodes with different devices that are remembered while a cluster is looked at."""


class GroupShape(Struct, frozen=True, cache_hash=True):
    """A group without its devices' names."""

    mask: int
    """Bit k: may serve request kind k."""
    values: tuple[tuple[int, ...], ...]
    """Numbers of the values of each column; empty: the devices lack it."""
    size: int
    traits: Traits = PLAIN
    identity: Identity = ()

    @property
    def is_shareable(self) -> bool:
        """Whether several requests may have its one device."""
        return self.traits.left is not None


Sorted = tuple[tuple[GroupShape, tuple[int, ...]], ...]
"""Groups in their order, each with the indices of its devices."""


class CounterShape(Struct, frozen=True):
    """What is left of a counter."""

    left: int
    identity: Identity = ()


class NodeShape(Struct, frozen=True, cache_hash=True):
    """All that the batch can see of a node; equal for nodes of one kind."""

    groups: tuple[GroupShape, ...]
    all_free: int
    """Bit k: every device that kind k means here is to be had, and one exists."""
    counters: tuple[CounterShape, ...] = ()
    sets: tuple[tuple[tuple[str, ...] | None, Identity], ...] = ()
    """Of each counter set: the compatibility groups that are left, and who it is."""
    fits: int = 1
    """Bit i: the node has what `Query.fits[i]` asks in kind."""
    free: tuple[int | None, ...] = ()
    """What is left, by `Query.resources`; None: enough for whatever fits otherwise."""


class NodeView(Struct, frozen=True):
    """A node as the batch sees it."""

    name: NodeName
    shape: NodeShape
    groups: tuple[DeviceGroup, ...]
    """As many as the shape's, in its order."""


class NodeKind(Struct, frozen=True):
    """Nodes that the batch cannot tell apart."""

    shape: NodeShape
    nodes: tuple[NodeView, ...]
    """By name."""


_VIEWS: ViewCache[NodeView] = ViewCache()


def node_kinds(problem: Problem, query: Query) -> tuple[NodeKind, ...]:
    """Sort the usable nodes of a cluster into kinds, by the first node's name."""
    cluster = Cluster(problem.pages, problem.parameters.features)
    looking = _Looking(query, problem.selectors, problem.parameters.features)
    views = _VIEWS.of(query, cluster, looking.view)
    found = [NodeKind(nodes[0].shape, nodes) for nodes in views.kinds()]
    return tuple(sorted(found, key=lambda kind: kind.nodes[0].name))


def view_of(node: NodePools, query: Query, problem: Problem) -> NodeView | None:
    """See one node as a batch does; None: nothing may be placed there."""
    features = problem.parameters.features
    return _Looking(query, problem.selectors, features).view(node)


def _reach(pool: PoolPart, index: int) -> tuple[str, ...]:
    """Name what other nodes see together with a device: its slice, if nothing less.

    A name that several slices use is one device, whoever looks (DRA: device ids).
    """
    item = slice_of(pool, index)
    apart = item.per_device_node_selection or item.skip_node_operations
    if apart or not pool.has_unique_names:
        return ("device", pool.devices[index].name)
    return ("slice", item.name)


class _Device(Struct, frozen=True):
    """One device that may serve something, before it is put into a group."""

    name: DeviceID
    position: int
    mask: int
    values: tuple[frozenset[Element], ...]
    traits: Traits
    identity: Identity


class _Devices(Struct, frozen=True):
    """What the batch sees of a node's devices, whatever it asks of the node."""

    shapes: tuple[GroupShape, ...]
    groups: tuple[DeviceGroup, ...]
    all_free: int
    counters: tuple[CounterShape, ...]
    sets: tuple[tuple[tuple[str, ...] | None, Identity], ...]
    own: int | None
    """Devices that pods may have for themselves."""


_DEVICES: NodeCache[_Devices] = NodeCache()


class _Looking:
    """Looks at nodes with one query."""

    def __init__(self, query: Query, table: SelectorTable, features: Features) -> None:
        self._query = query
        self._table = table
        self._features = features
        question = (query.requests, query.columns, query.is_exact)
        self._devices_by_node = _DEVICES.of(question)
        self._sorted_before: Cache[Hashable, Sorted] = Cache(MOST_ALIKE)

    def view(self, node: NodePools) -> NodeView | None:
        """See one node as the batch does; None: nothing may be placed there."""
        if node.error or node.node.unavailable:
            return None
        query = self._query
        kinds = [fits(fit, node.node) for fit in query.fits]
        if not any(kinds):
            return None
        known = self._devices_by_node.get(node.name)
        if known is None or known[0] is not node:
            known = self._devices_by_node[node.name] = (node, self._devices_of(node))
        devices = known[1]
        shape = NodeShape(
            groups=devices.shapes,
            all_free=devices.all_free,
            counters=devices.counters,
            sets=devices.sets,
            fits=sum(fit << i for i, fit in enumerate(kinds)),
            free=tuple(
                told_apart(left_of(node.node, name), step, devices.own)
                for name, step in zip(query.resources, query.steps, strict=True)
            ),
        )
        return NodeView(node.name, shape, devices.groups)

    def _devices_of(self, node: NodePools) -> _Devices:
        """See the devices of a node."""
        counters, devices = Counters(), list[_Device]()
        wanted = blocked = position = 0
        for seen in node.pools:
            if not seen.view.usable:
                continue
            sound = counters.add(seen)
            masks, some, lost = self._masks(seen, node, sound=sound)
            wanted |= some
            blocked |= lost
            devices.extend(self._devices(seen, masks, counters, position))
            position += seen.view.targeting.bit_count()
        if node.blocks_all:
            blocked = -1
        groups = self._groups(devices)
        return _Devices(
            shapes=tuple(shape for shape, _ in groups),
            groups=tuple(group for _, group in groups),
            all_free=wanted & ~blocked,
            counters=tuple(map(CounterShape, counters.left, counters.owners)),
            sets=tuple(zip(counters.allowed, counters.set_owners, strict=True)),
            own=_own_devices(shape for shape, _ in groups),
        )

    def _masks(
        self, seen: SeenPool, node: NodePools, *, sound: bool
    ) -> tuple[list[int], int, int]:
        """Find what each device may serve; and the kinds that mean any, or lack one."""
        features, view = self._features, seen.view
        masks = [0] * len(view.devices)
        fit = find_supported(seen, node.node, features)
        if not sound:
            fit &= ~drawing(seen, features)
        wanted = lost = 0
        for k, kind in enumerate(self._query.requests):
            found = _complete(select_devices(view.part, kind.selectors, self._table))
            meant = targets(view, found.bits, kind, features)
            usable = meant & fit & find_free(seen, features, admin=kind.admin)
            usable &= find_tolerated(seen, kind.tolerations, features)
            usable = with_room(seen, usable, kind, features)
            wanted |= bool(meant) << k
            failed = usable != meant or found.faulty & view.targeting
            lost |= bool(failed) << k
            for index in indices_of(usable):
                masks[index] |= 1 << k
        return masks, wanted, lost

    def _devices(
        self, seen: SeenPool, masks: list[int], counters: Counters, first: int
    ) -> Iterator[_Device]:
        view, query = seen.view, self._query
        pool = pool_of(view.part)
        for index, mask in enumerate(masks):
            if not mask:
                continue
            device = view.devices[index]
            traits = PLAIN
            if not is_plain(device):
                traits = traits_of(seen, device, counters, query, self._features)
            name = DeviceID(view.driver, view.pool, device.name)
            identity: Identity = ()
            if not pool.node:
                identity = (view.driver, view.pool, *_reach(pool, index))
            yield _Device(
                name,
                first + (view.targeting & ((1 << index) - 1)).bit_count(),
                mask,
                tuple(self._value(seen, index, column) for column in query.columns),
                traits,
                identity,
            )

    def _value(self, seen: SeenPool, index: int, column: Column) -> frozenset[Element]:
        device, driver = seen.view.devices[index], seen.view.driver
        if not column.expression:
            found = published(device, driver, column.attribute)
            return elements(found, self._features)
        expression = DERIVED + column.expression
        row = project(footprint_of(expression), driver, device)
        verdict = self._table.get(expression, row)
        if verdict is None:
            raise VerdictMissingError(expression)
        return elements(verdict.attribute, self._features)

    def _groups(self, devices: list[_Device]) -> list[tuple[GroupShape, DeviceGroup]]:
        """Put devices that are alike into groups, with their values numbered."""
        return [
            (
                shape,
                DeviceGroup(
                    tuple(devices[index].name for index in members),
                    tuple(devices[index].position for index in members),
                ),
            )
            for shape, members in self._sorted(devices)
        ]

    def _sorted(self, devices: list[_Device]) -> Sorted:
        """Sort devices into groups; once where nodes have the same plain devices."""
        if self._query.is_by_device or any(
            device.traits is not PLAIN or device.identity for device in devices
        ):
            return self._sorted_anew(devices)
        key = tuple((device.mask, device.values) for device in devices)
        known = self._sorted_before.get(key)
        if known is None:
            known = self._sorted_before.keep(key, self._sorted_anew(devices))
        return known

    def _sorted_anew(self, devices: list[_Device]) -> Sorted:
        gathered: dict[tuple[object, ...], list[int]] = {}
        for index, device in enumerate(devices):
            key: tuple[object, ...] = (
                device.mask,
                device.values,
                device.traits,
                device.identity,
            )
            if device.traits.left is not None or self._query.is_by_device:
                key = (*key, device.name)
            gathered.setdefault(key, []).append(index)
        alike = [[devices[index] for index in group] for group in gathered.values()]
        values = numbered(
            [column.attribute for column in self._query.columns],
            [Numbered(g[0].values, (g[0].mask, len(g))) for g in alike],
        )
        shapes = [
            GroupShape(
                group[0].mask, numbers, len(group), group[0].traits, _named(group)
            )
            for group, numbers in zip(alike, values, strict=True)
        ]
        found = zip(shapes, map(tuple, gathered.values()), strict=True)
        return tuple(sorted(found, key=lambda pair: _order(pair[0])))


def _own_devices(groups: Iterable[GroupShape]) -> int | None:
    """Count the devices that pods may have for themselves; None: no limit is known."""
    listed = list(groups)
    if any(group.is_shareable for group in listed):
        return None
    return sum(group.size for group in listed)


def _order(shape: GroupShape) -> tuple[object, ...]:
    traits = shape.traits
    return (
        shape.mask,
        shape.values,
        traits.left or (),
        traits.costs,
        traits.draws,
        traits.groups,
        tuple(map(str, shape.identity)),
    )


def _named(group: list[_Device]) -> Identity:
    """Return who the devices of a group are, for whoever else sees them."""
    if not group[0].identity:
        return ()
    return (*group[0].identity[:2], *(item.name.device for item in group))


def _complete(found: Selection) -> Selection:
    if found.missing:
        raise VerdictMissingError(found.missing[0][0])
    return found
