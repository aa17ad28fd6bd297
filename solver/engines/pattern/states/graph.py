"""All states that the nodes of a batch can come to: one acyclic graph.

Placing a pod leads to a smaller state, so an empty node's descendants include every
partly used node of its shape. Node resources are not part of a state: they are
coordinates of their own (`steps.py`), and nodes differ in how much of them they have.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property

from msgspec import Struct, structs

from solver.engines.pattern.states.placing import (
    Placement,
    StateReduction,
    list_placements,
)
from solver.engines.pattern.states.pruning import collect_device_demands
from solver.errors import GraphTooLargeError
from solver.kinds.demand import Demand, MemberKind
from solver.kinds.shapes import NodeKind, NodeShape
from solver.stopping import is_stopped

MAX_STATES = 20_000
MAX_EDGES = 600_000
MAX_WORK = 8_000_000
"""Groups and labels that are named, however often; see `PlacementList`."""


class Edge(Struct, frozen=True):
    """A pod's devices are placed: from one state to a smaller one."""

    source: int
    target: int
    device_need: int
    """What the pod needs in devices; see `Graph.device_needs_of`."""
    placement: Placement


class NodeClass(Struct, frozen=True):
    """Nodes that differ in nothing that the batch can tell: their kinds, merged."""

    state: int
    """Index into `Graph.states`."""
    free: tuple[int | None, ...]
    """Node resources that are left, of its first kind; None: no limit."""
    kinds: tuple[tuple[NodeKind, tuple[int, ...]], ...]
    """Each with the order of its groups in the state."""

    @property
    def size(self) -> int:
        """Count its nodes."""
        return sum(len(kind.nodes) for kind, _ in self.kinds)


class Graph(Struct, frozen=True, dict=True):
    """States, placements between them, and the classes of nodes that begin in them."""

    states: Sequence[NodeShape]
    edges: Sequence[Edge]
    classes: tuple[NodeClass, ...]
    device_needs_of: tuple[int, ...]
    """For each member kind, what its pods need in devices."""
    pods: int
    """Of the batch: no node takes more."""

    @cached_property
    def has_loops(self) -> bool:
        """True if some pods leave the state of a node as it is: they ask no devices."""
        return any(edge.source == edge.target for edge in self.edges)


def build_graph(
    demand: Demand, kinds: Sequence[NodeKind], *, keeps_all: bool = False
) -> Graph:
    """Find all that the nodes of a batch can come to.

    `keeps_all`: what is left over has a value, so that nothing is pruned.

    Raises:
        GraphTooLargeError: that is too much, or the search is to end.
        TooManyPlacementsError: so are the ways to place one pod.
    """
    search = _GraphSearch(demand, kinds, keeps_all=keeps_all)
    return Graph(
        search.states,
        search.edges,
        search.classes,
        search.device_needs_of,
        search.pods,
    )


def merge_kinds(
    kinds: Iterable[NodeKind], start: Callable[[NodeShape], tuple[int, tuple[int, ...]]]
) -> tuple[NodeClass, ...]:
    """Put node kinds together that begin in one state with equal resources.

    `start` gives the state of a shape, and the order of its groups there.
    """
    kinds_by_start: dict[
        tuple[int, tuple[int | None, ...]], list[tuple[NodeKind, tuple[int, ...]]]
    ] = {}
    for kind in kinds:
        state, order = start(kind.shape)
        kinds_by_start.setdefault((state, kind.shape.free), []).append((kind, order))
    return tuple(
        NodeClass(state, free, tuple(ordered_kinds))
        for (state, free), ordered_kinds in kinds_by_start.items()
    )


class _GraphSearch:
    """Follows all placements from all nodes."""

    def __init__(
        self, demand: Demand, kinds: Sequence[NodeKind], *, keeps_all: bool
    ) -> None:
        self.pods = sum(demand.pods)
        # Pods that differ only in what they need besides devices share their edges.
        numbers: dict[MemberKind, int] = {}
        self.device_needs_of = tuple(
            numbers.setdefault(_strip_to_devices(member), len(numbers))
            for member in demand.member_kinds
        )
        self._device_needs = tuple(numbers)
        self._fits = _collect_fits(demand, self.device_needs_of, len(numbers))
        self.states: list[NodeShape] = []
        self.edges: list[Edge] = []
        self._state_numbers: dict[NodeShape, int] = {}
        self._reduction = StateReduction(
            attributes=number_attributes(demand),
            demands=collect_device_demands(self._device_needs),
            whole_kinds=sum(
                1 << k
                for k, kind in enumerate(demand.query.requests)
                if kind.all_devices
            ),
            keeps_all=keeps_all,
        )
        self.classes = merge_kinds(kinds, self._start)
        self._expand()

    def _start(self, shape: NodeShape) -> tuple[int, tuple[int, ...]]:
        form = self._reduction.start(shape)
        return self._number_state(form.shape), form.order

    def _number_state(self, shape: NodeShape) -> int:
        """Return the index of a state, which is added if it is new."""
        number = self._state_numbers.setdefault(shape, len(self.states))
        if number == len(self.states):
            if number >= MAX_STATES:
                raise GraphTooLargeError(f"more than {MAX_STATES} node states")
            self.states.append(shape)
        return number

    def _expand(self) -> None:
        """Follow all placements, breadth first; as deep as the batch has pods."""
        depths = dict.fromkeys(range(len(self.states)), 0)
        queue = deque(depths)
        work = 0
        while queue:
            source = queue.popleft()
            if depths[source] >= self.pods:
                continue
            if is_stopped():
                raise GraphTooLargeError("no time is left to find states")
            state = self.states[source]
            for number, needs in enumerate(self._device_needs):
                if not state.fits & self._fits[number]:
                    continue
                listed = list_placements(needs, state, self._reduction)
                # Count the work of remembered lists too, so that the limit is met at
                # the same place whatever was decided earlier.
                work += listed.work
                if work > MAX_WORK:
                    message = f"more than {MAX_WORK} steps to find states"
                    raise GraphTooLargeError(message)
                for placement in listed.placements:
                    target = self._number_state(placement.after)
                    if target not in depths:
                        depths[target] = depths[source] + 1
                        queue.append(target)
                    self.edges.append(Edge(source, target, number, placement))
                    if len(self.edges) > MAX_EDGES:
                        raise GraphTooLargeError(f"more than {MAX_EDGES} placements")


def number_attributes(demand: Demand) -> tuple[int, ...]:
    """Number the attributes of the query; returns which one each column shows."""
    numbers: dict[str, int] = {}
    return tuple(
        numbers.setdefault(column.attribute, len(numbers))
        for column in demand.query.columns
    )


def _strip_to_devices(member: MemberKind) -> MemberKind:
    """Forget of a pod what it needs besides devices."""
    return structs.replace(member, fit=0, needs=())


def _collect_fits(
    demand: Demand, device_needs_of: Sequence[int], count: int
) -> list[int]:
    """Collect for each device need the node fits of the pods that have it, as bits."""
    fits = [0] * count
    for member, number in zip(demand.member_kinds, device_needs_of, strict=True):
        fits[number] |= 1 << member.fit
    return fits
