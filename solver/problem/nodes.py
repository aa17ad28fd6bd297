"""Nodes as this batch sees them: groups of free devices that it cannot tell apart.

A group is the free devices of one node that may serve the same kinds of request and
have equal values in every attribute that a constraint compares. The values
themselves do not matter, only which of them are equal, so they are numbered in a
canonical order: unique ids and PCIe addresses do not make nodes different. Nodes with
equal groups are one node kind.

Theorem. Two nodes with equal signatures are isomorphic for the batch: the groups'
masks decide every selector, taint and use, the numbered values every comparison
inside a node. So exchanging the nodes in an answer leaves it valid and its value
equal. (The converse is not needed: a missed isomorphism costs time, not truth.)
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from contracts.device import Device, DeviceAttribute
from contracts.ids import DeviceID, NodeName
from solver.errors import VerdictMissingError
from solver.problem.candidates import (
    Selected,
    eligible,
    pool_of,
    pools_of,
    selected,
)
from solver.problem.demand import Query
from solver.problem.selectors import SelectorTable
from solver.snapshot.parts import (
    NodePart,
    Page,
    Part,
    UsePart,
    node_key,
    use_key,
)

MEMO_SIZE = 64
"""Queries whose views a page remembers."""


class DeviceGroup(Struct, frozen=True):
    """Free devices of a node that the batch cannot tell apart."""

    mask: int
    """Bit k: may serve request kind k."""
    values: tuple[int, ...]
    """Number of the value of each compared attribute; 0: the device lacks it."""
    devices: tuple[DeviceID, ...]
    """In the order that kube-scheduler would look at them."""


class GroupShape(Struct, frozen=True):
    """A group without its devices' names."""

    mask: int
    values: tuple[int, ...]
    size: int


class NodeShape(Struct, frozen=True):
    """All that the batch can see of a node; equal for nodes of one kind."""

    groups: tuple[GroupShape, ...]
    all_free: int
    """Bit k: every device that kind k selects here is to be had, and one exists."""


class NodeView(Struct, frozen=True):
    """A node as the batch sees it."""

    name: NodeName
    shape: NodeShape
    groups: tuple[DeviceGroup, ...]
    """As many as the shape's, in its order."""


class NodePools(Struct, frozen=True):
    """The parts of one node."""

    name: NodeName
    node: NodePart | None
    pools: tuple[tuple[Part, UsePart | None], ...]
    """In kube-scheduler's order: driver, then pool name."""


def nodes_of(page: Page) -> tuple[NodePools, ...]:
    """Gather the parts of each node of a page, by name; pools without a node last."""
    known: tuple[NodePools, ...] | None = page.memo.get("nodes")
    if known is None:
        known = page.memo["nodes"] = tuple(_nodes_of(page))
    return known


def _nodes_of(page: Page) -> Iterator[NodePools]:
    pools: dict[NodeName, list[Part]] = {}
    for part in pools_of(page):
        pools.setdefault(pool_of(part).node, []).append(part)
    for name in sorted(pools):
        node = page.parts.get(node_key(name))
        value = node.value if node is not None else None
        yield NodePools(
            name,
            value if isinstance(value, NodePart) else None,
            tuple((part, _use_of(page, part)) for part in sorted(pools[name], key=_id)),
        )


def _id(part: Part) -> tuple[bytes, bytes]:
    pool = pool_of(part)
    return (pool.driver.encode(), pool.pool.encode())


def _use_of(page: Page, part: Part) -> UsePart | None:
    pool = pool_of(part)
    use = page.parts.get(use_key(pool.driver, pool.pool))
    value = use.value if use is not None else None
    return value if isinstance(value, UsePart) else None


def views_of(page: Page, query: Query, table: SelectorTable) -> tuple[NodeView, ...]:
    """See the usable nodes of a page that may serve anything, as the batch does."""
    known: tuple[NodeView, ...] | None = page.memo.get(query)
    if known is None:
        if len(page.memo) > MEMO_SIZE:
            page.memo.clear()
        views = (view_of(node, query, table) for node in nodes_of(page))
        known = tuple(view for view in views if view is not None)
        page.memo[query] = known
    return known


def view_of(node: NodePools, query: Query, table: SelectorTable) -> NodeView | None:
    """See one node as the batch does; None: it can serve nothing."""
    if not node.name or (node.node is not None and node.node.unavailable):
        return None
    gathered: dict[tuple[int, tuple[object, ...]], list[DeviceID]] = {}
    blocked = wanted = 0
    for part, use in node.pools:
        pool = pool_of(part)
        if pool.incomplete or pool.invalid:
            blocked = -1
            continue
        if pool.not_modelled:
            continue
        masks = [0] * len(pool.devices)
        for k, kind in enumerate(query.requests):
            chosen = _complete(selected(part, kind.selectors, table)).bits
            usable = eligible(part, use, kind, chosen)
            wanted |= bool(chosen) << k
            blocked |= (usable != chosen) << k
            _mark(masks, usable, 1 << k)
        for device, mask in zip(pool.devices, masks, strict=True):
            if mask:
                values = tuple(
                    _value(device, pool.driver, name) for name in query.attributes
                )
                name = DeviceID(pool.driver, pool.pool, device.name)
                gathered.setdefault((mask, values), []).append(name)
    if not gathered:
        return None
    groups = tuple(_numbered(gathered))
    shapes = tuple(GroupShape(g.mask, g.values, len(g.devices)) for g in groups)
    return NodeView(node.name, NodeShape(shapes, wanted & ~blocked), groups)


def _complete(found: Selected) -> Selected:
    if found.missing:
        raise VerdictMissingError(found.missing[0][0])
    return found


def _mark(masks: list[int], bits: int, mark: int) -> None:
    index = 0
    while bits:
        if bits & 1:
            masks[index] |= mark
        bits >>= 1
        index += 1


def _value(device: Device, driver: str, name: str) -> object:
    found = attribute_of(device, driver, name)
    return None if found is None else attribute_value(found)


def attribute_value(found: DeviceAttribute) -> tuple[str, object] | None:
    """Read the value that constraints compare, with its type; None: it has none."""
    for kind, value in (
        ("int", found.int_value),
        ("bool", found.bool_value),
        ("string", found.string_value),
        ("version", found.version_value),
    ):
        if value is not None:
            return (kind, value)
    return None


def attribute_of(device: Device, driver: str, name: str) -> DeviceAttribute | None:
    """Look an attribute up by its full name; a bare one is of the driver's domain."""
    found = device.attributes.get(name)
    if found is None:
        domain, _, identifier = name.partition("/")
        if domain == driver:
            found = device.attributes.get(identifier)
    return found


def _numbered(
    gathered: dict[tuple[int, tuple[object, ...]], list[DeviceID]],
) -> list[DeviceGroup]:
    """Number the values of each attribute by what has them, and sort the groups.

    Values that the same numbers of devices with the same masks have are numbered in
    the order of their first device.
    """
    width = len(next(iter(gathered))[1])
    numbers: list[dict[object, int]] = []
    for column in range(width):
        profiles: dict[object, list[tuple[int, int]]] = {}
        for (mask, values), devices in gathered.items():
            if values[column] is not None:
                profile = profiles.setdefault(values[column], [])
                profile.append((mask, len(devices)))
        ranked = sorted(profiles, key=lambda value: sorted(profiles[value]))
        numbers.append({value: rank + 1 for rank, value in enumerate(ranked)})
    groups = [
        DeviceGroup(
            mask,
            tuple(
                0 if value is None else numbers[column][value]
                for column, value in enumerate(values)
            ),
            tuple(devices),
        )
        for (mask, values), devices in gathered.items()
    ]
    return sorted(groups, key=lambda group: (group.mask, group.values))


class NodeKind(Struct, frozen=True):
    """Nodes that the batch cannot tell apart."""

    shape: NodeShape
    nodes: tuple[NodeView, ...]
    """By name."""


def node_kinds(
    pages: tuple[Page, ...], query: Query, table: SelectorTable
) -> tuple[NodeKind, ...]:
    """Sort the usable nodes of a cluster into kinds, by the first node's name."""
    kinds: dict[NodeShape, list[NodeView]] = {}
    for page in pages:
        for view in views_of(page, query, table):
            kinds.setdefault(view.shape, []).append(view)
    found = [
        NodeKind(shape, tuple(sorted(views, key=lambda view: view.name)))
        for shape, views in kinds.items()
    ]
    return tuple(sorted(found, key=lambda kind: kind.nodes[0].name))
