"""Views of nodes, and the kinds into which they fall.

A node is read with a query: which of its devices may serve which kind of request, what
sets them apart, what the node has left. What is read of a node is remembered until the
node changes; what it all means stands in `shapes.py`.
"""

from __future__ import annotations

from collections.abc import Hashable

from contracts.features import Features
from solver.cache import Cache
from solver.devices.gather import Cluster, NodePools
from solver.devices.likeness import MOST_ALIKE
from solver.kinds.affinity.surroundings import place_of
from solver.kinds.node_cache import ViewCache
from solver.kinds.node_devices import DeviceReader, DeviceShapes
from solver.kinds.node_fit import is_fit, left_of, round_to_step
from solver.kinds.query import Query
from solver.kinds.shapes import DomainPlace, NodeKind, NodeShape, NodeView
from solver.problem.problem import Problem
from solver.selectors.table import SelectorTable
from solver.snapshot.parts import NodePart

_VIEWS = ViewCache()


def find_node_kinds(problem: Problem, query: Query) -> tuple[NodeKind, ...]:
    """Sort the usable nodes of a cluster into kinds, by the first node's name."""
    cluster = Cluster(problem.pages, problem.parameters.features)
    reader = _NodeReader(query, problem.selectors, problem.parameters.features)
    views = _VIEWS.of(query, cluster, reader.view)
    kinds = [NodeKind(nodes[0].shape, nodes) for nodes in views.kinds()]
    return tuple(sorted(kinds, key=lambda kind: kind.nodes[0].name))


def view_of(node: NodePools, query: Query, problem: Problem) -> NodeView | None:
    """View one node as a batch does; None: nothing may be placed there."""
    features = problem.parameters.features
    return _NodeReader(query, problem.selectors, features).view(node)


class _NodeReader:
    """Reads nodes with one query."""

    def __init__(self, query: Query, table: SelectorTable, features: Features) -> None:
        self._query = query
        self._devices = DeviceReader(query, table, features)
        self._unlimited = (None,) * len(query.resources)
        """What is left of a node that limits nothing."""
        self._shapes: Cache[Hashable, NodeShape] = Cache(MOST_ALIKE)
        """By content, so that equal ones are mostly one object."""

    def view(self, node: NodePools) -> NodeView | None:
        """View one node as the batch does; None: nothing may be placed there."""
        if node.error or node.node.unavailable:
            return None
        part, query = node.node, self._query
        fits = sum([is_fit(fit, part) << i for i, fit in enumerate(query.fits)])
        if not fits:
            return None
        devices, groups = self._devices.read(node)
        free = self._round_left(part, devices)
        places = tuple([place_of(rule, part) for rule in query.domains])
        domains = tuple([part.labels.get(label) for label in query.labels])
        key = (devices, fits, free, places, domains)
        shape = self._shapes.get(key)
        if shape is None:
            shape = self._shapes.keep(key, _shape_of(*key))
        return NodeView(node.name, shape, groups)

    def _round_left(
        self, part: NodePart, devices: DeviceShapes
    ) -> tuple[int | None, ...]:
        """List what a node has left of all that is counted, as far as it matters."""
        query = self._query
        if part.free is None and not query.counted:
            return self._unlimited
        left = [left_of(part, name) for name in query.resources]
        left += [rule.left_on(part.name, part.labels) for rule in query.counted]
        steps = zip(left, query.steps, strict=True)
        return tuple(
            [round_to_step(amount, step, devices.own) for amount, step in steps]
        )


def _shape_of(
    devices: DeviceShapes,
    fits: int,
    free: tuple[int | None, ...],
    places: tuple[DomainPlace | None, ...],
    domains: tuple[str | None, ...],
) -> NodeShape:
    return NodeShape(
        groups=devices.shapes,
        all_free=devices.all_free,
        counters=devices.counters,
        sets=devices.sets,
        fits=fits,
        free=free,
        places=places,
        domains=domains,
    )
