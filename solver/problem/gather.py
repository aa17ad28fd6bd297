"""The pools that each node sees, in kube-scheduler's order.

A node's own pools lie in its page; pools that are not local to one node are looked at
from every node. Results are remembered on the page, so a page that did not change is
not gathered again unless a pool of the whole cluster did.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from msgspec import Struct

from contracts.device import Device
from contracts.features import Features
from contracts.ids import DeviceID, NodeName
from solver.problem.candidates import indices, pool_of, pools_of
from solver.problem.pools import GatherError, SeenPool, pool_view, slice_of
from solver.snapshot.parts import (
    NodePart,
    Page,
    Part,
    PoolSlice,
    UsePart,
    node_key,
    use_key,
)

PoolParts = tuple[tuple[Part, Part | None], ...]
"""Pools, and the parts that say what is used of them."""


class NodePools(Struct, frozen=True):
    """A node and the pools that it sees."""

    node: NodePart
    pools: tuple[SeenPool, ...]
    """Those whose devices bind last, come last; then by driver, then by name."""
    error: str = ""
    """Why the pools cannot be gathered; then there are none."""

    @property
    def name(self) -> NodeName:
        """The node's name."""
        return self.node.name

    def find(self, device: DeviceID) -> tuple[Device, PoolSlice] | None:
        """Look up a device that the node sees, with its slice."""
        for seen in self.pools:
            if (seen.view.driver, seen.view.pool) != (device.driver, device.pool):
                continue
            for index in indices(seen.view.targeting):
                if seen.view.devices[index].name == device.device:
                    pool = pool_of(seen.view.part)
                    return seen.view.devices[index], slice_of(pool, index)
        return None

    @property
    def blocks_all(self) -> bool:
        """Whether a pool that is not whole keeps requests for all devices away."""
        return any(not seen.view.usable for seen in self.pools)


class Cluster:
    """All nodes of a Problem and what they see, page by page."""

    def __init__(self, pages: tuple[Page, ...], features: Features) -> None:
        self._pages = pages
        self._features = features
        self._shared = tuple(item for page in pages for item in _cluster_pools(page))
        self.key = ("nodes", features, self._shared)
        """What a result about a page depends on besides it; parts are by identity."""

    def pages(self) -> Iterator[tuple[Page, tuple[NodePools, ...]]]:
        """Go through the pages with their nodes, by name."""
        for page in self._pages:
            known: tuple[NodePools, ...] | None = page.memo.get(self.key)
            if known is None:
                known = tuple(_nodes(page, self._shared, self._features))
                page.memo[self.key] = known
            yield page, known

    @cached_property
    def nodes(self) -> dict[NodeName, NodePools]:
        """All nodes by name, page by page."""
        return {node.name: node for _, nodes in self.pages() for node in nodes}


def _cluster_pools(page: Page) -> PoolParts:
    known: PoolParts | None = page.memo.get("cluster")
    if known is None:
        known = page.memo["cluster"] = tuple(
            (part, _use_of(page, part))
            for part in pools_of(page)
            if not pool_of(part).node
        )
    return known


def _use_of(page: Page, part: Part) -> Part | None:
    pool = pool_of(part)
    return page.parts.get(use_key(pool.driver, pool.pool))


def _nodes(page: Page, shared: PoolParts, features: Features) -> Iterator[NodePools]:
    local: dict[NodeName, list[tuple[Part, Part | None]]] = {}
    for part in page.parts.values():
        if isinstance(part.value, NodePart):
            local.setdefault(part.value.name, [])
    for part in pools_of(page):
        if pool_of(part).node:
            local.setdefault(pool_of(part).node, []).append((part, _use_of(page, part)))
    for name in sorted(local):
        found = page.parts.get(node_key(name))
        value = found.value if found is not None else None
        node = value if isinstance(value, NodePart) else NodePart(name=name)
        yield _gathered(node, (*local[name], *shared), features)


def _gathered(node: NodePart, pools: PoolParts, features: Features) -> NodePools:
    seen = []
    try:
        for part, use in pools:
            view = pool_view(part, node, features)
            if view is not None:
                value = use.value if use is not None else None
                used = value if isinstance(value, UsePart) else None
                seen.append(SeenPool(view, used))
    except GatherError as error:
        return NodePools(node, (), str(error))
    return NodePools(node, tuple(sorted(seen, key=_order)))


def _order(seen: SeenPool) -> tuple[bool, bytes, bytes]:
    view = seen.view
    return (view.binding, view.driver.encode(), view.pool.encode())
