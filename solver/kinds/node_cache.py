"""Views of nodes by query, kept from one Problem to the next.

What a batch sees of a node is a pure function of the node's parts, so it is made once
and kept until those change: a changed node costs a node, whatever the cluster's size.
Whatever was asked longest ago is forgotten first. How a view is made is not known here.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Hashable, Mapping
from operator import attrgetter
from typing import Generic, TypeVar

from contracts.ids import NodeName
from solver.cache import Cache
from solver.devices.gather import Cluster, NodePools
from solver.kinds.shapes import NodeShape, NodeView
from solver.snapshot.pages import Page

MOST_VIEWS = 200_000
"""Nodes of all questions together, in each cache."""
MANY = 8
"""Views of a kind for one that is new, from which on it is put among them alone."""
R = TypeVar("R")
_by_name = attrgetter("name")


class NodeViews:
    """The views of all nodes for one question, sorted by shape."""

    def __init__(self, see: Callable[[NodePools], NodeView | None]) -> None:
        self.see = see
        self._pages: dict[Page, Mapping[NodeName, NodePools]] = {}
        self._views: dict[NodeName, tuple[NodePools, NodeView | None]] = {}
        self._kinds: dict[NodeShape, list[NodeView]] = {}

    def __len__(self) -> int:
        return len(self._views)

    def follow(self, cluster: Cluster) -> None:
        """Look again at the nodes that are new or changed, and forget those gone."""
        pages = dict(cluster.pages())
        # First the pages that were replaced: their nodes are gone, unless a new page
        # has them again. Then only what is not the very same node is looked at.
        pages_left = self._pages.keys() - pages.keys()
        nodes_gone = {name for page in pages_left for name in self._pages[page]}
        new: list[NodeView] = []
        for page, nodes in pages.items():
            if page not in self._pages:
                nodes_gone -= nodes.keys()
                for name, node in nodes.items():
                    self._view_node(name, node, new)
        for name in nodes_gone:
            self._drop_view(self._views.pop(name)[1])
        self._sort_in(new)
        self._pages = pages

    def kinds(self) -> list[tuple[NodeView, ...]]:
        """List the kinds of nodes, each by name."""
        return [tuple(views) for views in self._kinds.values()]

    def _view_node(self, name: NodeName, node: NodePools, new: list[NodeView]) -> None:
        entry = self._views.get(name)
        if entry is not None:
            if entry[0] is node:
                return
            self._drop_view(entry[1])
        view = self.see(node)
        self._views[name] = (node, view)
        if view is not None:
            new.append(view)

    def _sort_in(self, new: list[NodeView]) -> None:
        """Put views into their kinds: many at once, or one by one among many."""
        views_by_shape: dict[NodeShape, list[NodeView]] = {}
        for view in new:
            views_by_shape.setdefault(view.shape, []).append(view)
        for shape, views in views_by_shape.items():
            kind = self._kinds.setdefault(shape, [])
            if len(views) * MANY < len(kind):
                for view in views:
                    insort(kind, view, key=_by_name)
            else:
                kind.extend(views)
                kind.sort(key=_by_name)

    def _drop_view(self, view: NodeView | None) -> None:
        if view is None:
            return
        kind = self._kinds[view.shape]
        del kind[bisect_left(kind, view.name, key=_by_name)]
        if not kind:
            del self._kinds[view.shape]


class NodeCache(Generic[R]):
    """What was computed of each node, for the questions that were asked last."""

    def __init__(self) -> None:
        self._by_question: Cache[Hashable, dict[NodeName, tuple[NodePools, R]]] = Cache(
            MOST_VIEWS, weigh=len
        )

    def of(self, question: Hashable) -> dict[NodeName, tuple[NodePools, R]]:
        """Return the results by node, to read and to add to.

        Each holds for the very node that stands beside it; compare before you use it.
        """
        results = self._by_question.pop(question, {})
        return self._by_question.keep(question, results)


class ViewCache:
    """The views for the questions that were asked last."""

    def __init__(self) -> None:
        self._by_question: Cache[Hashable, NodeViews] = Cache(MOST_VIEWS, weigh=len)

    def of(
        self,
        question: Hashable,
        cluster: Cluster,
        see: Callable[[NodePools], NodeView | None],
    ) -> NodeViews:
        """View all nodes of a cluster; `see` must depend on question and node alone."""
        key = (question, cluster.key)
        views = self._by_question.pop(key, None) or NodeViews(see)
        views.see = see
        views.follow(cluster)
        return self._by_question.keep(key, views)
