"""All states that the nodes of a batch can come to: one acyclic graph.

Placing a pod leads to a smaller state, so an empty node's descendants include every
partly used node of its shape. Node resources are not part of a state: they are
coordinates of their own (`pricing.py`), and nodes differ in how much of them they have.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from functools import cached_property

from msgspec import Struct, structs

from solver.engines.pattern.states.placing import Batch, Placement, ways_to_place
from solver.engines.pattern.states.pruning import wants
from solver.errors import GraphTooLargeError
from solver.kinds.demand import Demand, MemberKind
from solver.kinds.nodes import NodeKind, NodeShape

MAX_STATES = 20_000
MAX_EDGES = 600_000
WORK = 8_000_000
"""Groups and labels that are named, however often; see `Ways`."""


class Edge(Struct, frozen=True):
    """A pod's devices are placed: from one state to a smaller one."""

    source: int
    target: int
    needs: int
    """Index into `Graph.needs`."""
    placement: Placement


class NodeClass(Struct, frozen=True):
    """Nodes that differ in nothing that the batch can tell: the rows of the master."""

    state: int
    """Index into `Graph.states`."""
    free: tuple[int | None, ...]
    """Node resources that are left; None: no limit."""
    kinds: tuple[tuple[NodeKind, tuple[int, ...]], ...]
    """Each with the order of its groups in the state."""

    @property
    def size(self) -> int:
        """Count its nodes."""
        return sum(len(kind.nodes) for kind, _ in self.kinds)


class Graph:
    """States, placements between them, and the classes of nodes that begin in them."""

    def __init__(
        self, demand: Demand, kinds: Sequence[NodeKind], *, keeps: bool = False
    ) -> None:
        self.pods = sum(demand.pods)
        """Of the batch: no node takes more."""
        needs: dict[MemberKind, int] = {}
        self.needs_of = tuple(
            needs.setdefault(_devices_only(member), len(needs))
            for member in demand.member_kinds
        )
        """Of each member kind, what its pods need in devices."""
        self.needs = tuple(needs)
        self._fits = _fits_of(demand, self.needs_of, len(needs))
        self.states: list[NodeShape] = []
        self.edges: list[Edge] = []
        self._index: dict[NodeShape, int] = {}
        self._batch = Batch(
            attributes=attribute_numbers(demand),
            wants=wants(self.needs),
            whole=sum(
                1 << k
                for k, kind in enumerate(demand.query.requests)
                if kind.all_devices
            ),
            keeps=keeps,
        )
        self.classes = self._classes(kinds)
        self._expand()

    @cached_property
    def has_loops(self) -> bool:
        """Whether some pods leave the state of a node as it is: they ask no devices."""
        return any(edge.source == edge.target for edge in self.edges)

    def _classes(self, kinds: Sequence[NodeKind]) -> tuple[NodeClass, ...]:
        """Put node kinds together whose states have one name."""
        gathered: dict[
            tuple[int, tuple[int | None, ...]], list[tuple[NodeKind, tuple[int, ...]]]
        ] = {}
        for kind in kinds:
            shape = kind.shape
            all_free = shape.all_free & self._batch.whole
            bare = structs.replace(shape, free=(), all_free=all_free)
            found = self._batch.named(bare)
            key = (self._state(found.shape), shape.free)
            gathered.setdefault(key, []).append((kind, found.order))
        return tuple(
            NodeClass(state, free, tuple(items))
            for (state, free), items in gathered.items()
        )

    def _state(self, shape: NodeShape) -> int:
        known = self._index.setdefault(shape, len(self.states))
        if known == len(self.states):
            if known >= MAX_STATES:
                raise GraphTooLargeError(f"more than {MAX_STATES} node states")
            self.states.append(shape)
        return known

    def _expand(self) -> None:
        """Follow all placements; as deep as the batch has pods."""
        depths = dict.fromkeys(range(len(self.states)), 0)
        waiting = deque(depths)
        work = 0
        while waiting:
            source = waiting.popleft()
            if depths[source] >= self.pods:
                continue
            state = self.states[source]
            for number, needs in enumerate(self.needs):
                if not state.fits & self._fits[number]:
                    continue
                ways = ways_to_place(needs, state, self._batch)
                work += ways.work
                if work > WORK:
                    raise GraphTooLargeError(f"more than {WORK} steps to find states")
                for way in ways.placements:
                    target = self._state(way.after)
                    if target not in depths:
                        depths[target] = depths[source] + 1
                        waiting.append(target)
                    self.edges.append(Edge(source, target, number, way))
                    if len(self.edges) > MAX_EDGES:
                        raise GraphTooLargeError(f"more than {MAX_EDGES} placements")


def attribute_numbers(demand: Demand) -> tuple[int, ...]:
    """Say which attribute each column of the query shows."""
    names: dict[str, int] = {}
    return tuple(
        names.setdefault(column.attribute, len(names))
        for column in demand.query.columns
    )


def _devices_only(member: MemberKind) -> MemberKind:
    """Forget of a pod what it needs besides devices."""
    return structs.replace(member, fit=0, needs=())


def _fits_of(demand: Demand, needs_of: Sequence[int], count: int) -> list[int]:
    """Collect for each device need the node fits of the pods that have it."""
    fits = [0] * count
    for member, number in zip(demand.member_kinds, needs_of, strict=True):
        fits[number] |= 1 << member.fit
    return fits
