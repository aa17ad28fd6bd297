"""Views of nodes by what was asked, kept from one Problem to the next.

What a batch sees of a node is a pure function of the node's parts, so it is made once
and kept until those change: a changed node costs a node, whatever the cluster's size.
Knows neither what a view holds nor how it is made.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Hashable, Mapping
from operator import attrgetter
from typing import Generic, Protocol, TypeVar

from contracts.ids import NodeName
from solver.devices.gather import Cluster, NodePools
from solver.snapshot.pages import Page

MOST_VIEWS = 200_000
"""Of all questions together; those asked last are kept."""
_by_name = attrgetter("name")


class View(Protocol):
    """What is seen of a node."""

    @property
    def name(self) -> NodeName:
        """The node's name."""
        ...

    @property
    def shape(self) -> Hashable:
        """Equal for nodes that cannot be told apart."""
        ...


V = TypeVar("V", bound=View)
R = TypeVar("R")


class Views(Generic[V]):
    """The views of all nodes for one question, sorted by shape."""

    def __init__(self, see: Callable[[NodePools], V | None]) -> None:
        self.see = see
        self._pages: dict[Page, Mapping[NodeName, NodePools]] = {}
        self._views: dict[NodeName, tuple[NodePools, V | None]] = {}
        self._kinds: dict[Hashable, list[V]] = {}

    def __len__(self) -> int:
        return len(self._views)

    def follow(self, cluster: Cluster) -> None:
        """Look again at the nodes that are new or changed, and forget those gone."""
        pages = dict(cluster.pages())
        left = self._pages.keys() - pages.keys()
        gone = {name for page in left for name in self._pages[page]}
        for page, nodes in pages.items():
            if page not in self._pages:
                gone -= nodes.keys()
                for name, node in nodes.items():
                    self._look(name, node)
        for name in gone:
            self._drop(self._views.pop(name)[1])
        self._pages = pages

    def kinds(self) -> list[tuple[V, ...]]:
        """List the kinds of nodes, each by name."""
        return [tuple(views) for views in self._kinds.values()]

    def _look(self, name: NodeName, node: NodePools) -> None:
        known = self._views.get(name)
        if known is not None:
            if known[0] is node:
                return
            self._drop(known[1])
        view = self.see(node)
        self._views[name] = (node, view)
        if view is not None:
            insort(self._kinds.setdefault(view.shape, []), view, key=_by_name)

    def _drop(self, view: V | None) -> None:
        if view is None:
            return
        kind = self._kinds[view.shape]
        del kind[bisect_left(kind, view.name, key=_by_name)]
        if not kind:
            del self._kinds[view.shape]


class KnownNodes(Generic[R]):
    """What was found of each node, for the questions that were asked last."""

    def __init__(self) -> None:
        self._found: dict[Hashable, dict[NodeName, tuple[NodePools, R]]] = {}

    def of(self, question: Hashable) -> dict[NodeName, tuple[NodePools, R]]:
        """Give what was found, to read and to add to; it holds for those nodes only."""
        found = self._found.pop(question, {})
        while sum(map(len, self._found.values())) + len(found) > MOST_VIEWS:
            if not self._found:
                found.clear()
                break
            del self._found[next(iter(self._found))]
        self._found[question] = found
        return found


class KnownViews(Generic[V]):
    """The views for the questions that were asked last."""

    def __init__(self) -> None:
        self._views: dict[Hashable, Views[V]] = {}

    def of(
        self, question: Hashable, cluster: Cluster, see: Callable[[NodePools], V | None]
    ) -> Views[V]:
        """See all nodes of a cluster; `see` must depend on question and node alone."""
        key = (question, cluster.key)
        views = self._views.pop(key, None) or Views(see)
        views.see = see
        views.follow(cluster)
        self._views[key] = views
        while len(self._views) > 1 and sum(map(len, self._views.values())) > MOST_VIEWS:
            del self._views[next(iter(self._views))]
        return views
