"""The pools that each node sees, in kube-scheduler's order.

A node's own pools lie with it; pools that are not local to one node are looked at from
every node. Results are remembered with the node's parts, so a node that did not change
is not gathered again unless a pool of the whole cluster did.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import cast

from msgspec import Struct

from contracts.device import Device
from contracts.features import Features
from contracts.ids import DeviceID, NodeName
from solver.cache import Slot
from solver.devices.facts import pool_of
from solver.devices.pools import PoolView, slice_of, view_pool
from solver.errors import GatherError
from solver.snapshot.pages import NodeParts, Page
from solver.snapshot.parts import (
    NodePart,
    Part,
    PoolPart,
    PoolSlice,
    UsePart,
    use_key_of,
)

PoolParts = tuple[tuple[Part, Part | None], ...]
"""Pools, and the parts that say what is used of them."""


class NodePools(Struct, frozen=True):
    """A node and the pools that it sees."""

    node: NodePart
    pools: tuple[PoolView, ...]
    """Those whose devices bind last, come last; then by driver, then by name."""
    error: str = ""
    """Why the pools cannot be gathered; then there are none."""

    @property
    def name(self) -> NodeName:
        """The node's name."""
        return self.node.name

    def find(self, device: DeviceID) -> tuple[Device, PoolSlice] | None:
        """Look up a device that the node sees, with its slice."""
        for view in self.pools:
            if view.pool != device.pool or view.driver != device.driver:
                continue
            named = view.facts.bits_by_name.get(device.device, 0)
            if bits := named & view.targeting:
                index = (bits & -bits).bit_length() - 1
                pool = pool_of(view.part)
                return pool.devices[index], slice_of(pool, index)
        return None

    @property
    def blocks_all(self) -> bool:
        """True if an incomplete or invalid pool blocks requests for all devices."""
        return any(not view.usable for view in self.pools)


ClusterKey = tuple[Features, PoolParts]
"""What a result about a node depends on besides it; parts are by identity."""
_NODES: Slot[tuple[ClusterKey, Mapping[NodeName, NodePools]]] = Slot()
"""By page: its nodes, in the cluster that was asked about last."""
_POOLS: Slot[tuple[ClusterKey, NodePools]] = Slot()
"""By parts of a node: the node, in the cluster that was asked about last."""


class Cluster:
    """All nodes of a Problem and what they see, page by page."""

    def __init__(self, pages: tuple[Page, ...], features: Features) -> None:
        self._pages = pages
        self._features = features
        shared = (page.nodes[""] for page in pages if "" in page.nodes)
        self._shared = tuple(pool for each in shared for pool in _read_parts(each)[1])
        self.key: ClusterKey = (features, self._shared)

    @cached_property
    def contests(self) -> tuple[str, ...]:
        """Sentences that name each contested pool and the nodes that announce it."""
        pools = (pool_of(part) for part, _ in self._shared)
        return tuple(pool.contested for pool in pools if pool.contested)

    def pages(self) -> Iterator[tuple[Page, Mapping[NodeName, NodePools]]]:
        """Yield the pages with their nodes, by name."""
        for page in self._pages:
            yield page, self._nodes_on(page)

    @cached_property
    def nodes(self) -> Mapping[NodeName, NodePools]:
        """All nodes by name, page by page."""
        nodes_by_name: dict[NodeName, NodePools] = {}
        for page in self._pages:
            nodes_by_name.update(self._nodes_on(page))
        return nodes_by_name

    def _nodes_on(self, page: Page) -> Mapping[NodeName, NodePools]:
        remembered = _NODES.get(page.memory)
        if remembered is None or remembered[0] != self.key:
            own = [(n, p) for n, p in sorted(page.nodes.items()) if n]
            nodes = {
                cast("NodeName", name): self._gather_node(parts) for name, parts in own
            }
            remembered = _NODES.keep(page.memory, (self.key, nodes))
        return remembered[1]

    def _gather_node(self, parts: NodeParts) -> NodePools:
        remembered = _POOLS.get(parts.memory)
        if remembered is None or remembered[0] != self.key:
            node, own = _read_parts(parts)
            pools = _gather_pools(node, (*own, *self._shared), self._features)
            remembered = _POOLS.keep(parts.memory, (self.key, pools))
        return remembered[1]


def _read_parts(parts: NodeParts) -> tuple[NodePart, PoolParts]:
    """Read a node and its own pools; a node without a part is its name."""
    node: NodePart | None = None
    own: list[tuple[Part, Part | None]] = []
    for key, part in parts.parts.items():
        value = part.value
        if isinstance(value, PoolPart):
            own.append((part, parts.parts.get(use_key_of(key))))
        elif isinstance(value, NodePart):
            node = value
    return node or NodePart(name=NodeName(parts.owner)), tuple(own)


def _gather_pools(node: NodePart, pools: PoolParts, features: Features) -> NodePools:
    views = []
    try:
        for part, use in pools:
            used = None if use is None else use.value
            used = used if isinstance(used, UsePart) else None
            view = view_pool(part, node, features, used)
            if view is not None:
                views.append(view)
    except GatherError as error:
        return NodePools(node, (), str(error))
    if len(views) > 1:
        views.sort(key=_order_of)
    return NodePools(node, tuple(views))


def _order_of(view: PoolView) -> tuple[bool, bytes, bytes]:
    return (view.binding, view.driver.encode(), view.pool.encode())
