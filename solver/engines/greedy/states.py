"""The states that the devices of nodes come to, numbered, with the room of each.

What a node has besides devices is no part of a state: see `node_table.py`.
"""

from __future__ import annotations

from collections.abc import Iterable
from operator import itemgetter

import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from solver.engines.greedy.room_bound import RoomBound
from solver.engines.pattern.states.graph import (
    MAX_STATES,
    Edge,
    Graph,
    merge_kinds,
    number_attributes,
)
from solver.engines.pattern.states.placing import (
    Placement,
    StateReduction,
    list_placements,
)
from solver.kinds.counting import bound_pods
from solver.kinds.demand import Demand
from solver.kinds.shapes import NodeKind, NodeShape
from solver.kinds.slack import list_rooms_by_devices

Integers = NDArray[np.int64]
"""Room where nothing bounds it."""
MOST_WORK = 8_000_000
"""Steps to list ways to place pods, however often; see `PlacementList`."""
FIRST_STATES = 64
"""For so many there is room at first."""
Option = tuple[Placement, int]
"""(a way to place a pod, the state that it leads to)."""


class DeviceStates:
    """Numbers the states of one batch as they are met."""

    def __init__(self, demand: Demand) -> None:
        requests = demand.query.requests
        self._reduction = StateReduction(
            attributes=number_attributes(demand),
            demands=(),
            whole_kinds=sum(1 << k for k, r in enumerate(requests) if r.all_devices),
            keeps_all=True,
        )
        self._fits = [member.fit for member in demand.member_kinds]
        self._members = [
            structs.replace(member, fit=0, needs=()) for member in demand.member_kinds
        ]
        self._by_devices = [
            structs.replace(member, needs=()) for member in demand.member_kinds
        ]
        self._bounds: dict[int, list[int]] = {}
        self._expected = tuple(kind.member for kind in demand.expected)
        self._bound_room = RoomBound(self._expected, demand.member_kinds)
        self._room_bounds: dict[tuple[int, int], Integers | None] = {}
        self._numbers: dict[NodeShape, int] = {}
        self._shapes: list[NodeShape] = []
        self._options: dict[tuple[int, int], tuple[Option, ...]] = {}
        self._work = 0
        self._room: Integers = np.zeros((FIRST_STATES, len(self._expected)), np.int64)

    @property
    def is_spent(self) -> bool:
        """True if so much was listed that little more should be."""
        return self._work > MOST_WORK

    @property
    def are_too_many(self) -> bool:
        """True if so many were met that no graph of them is searched."""
        return len(self._shapes) > MAX_STATES

    @property
    def room(self) -> Integers:
        """Room by state, then by expected kind, as far as devices bound it."""
        return self._room

    def bound_pods(self, member: int) -> Integers:
        """Bound the pods of a member kind that each state has devices for."""
        bounds = self._bounds.setdefault(member, [])
        bounds += (
            bound_pods(self._by_devices[member], shape)
            for shape in self._shapes[len(bounds) :]
        )
        return np.array(bounds, np.int64)

    def start(self, shape: NodeShape) -> tuple[int, tuple[int, ...]]:
        """Return the state of a node that looks so, and its groups in that order."""
        form = self._reduction.start(shape)
        return self._number(form.shape), form.order

    def bound_room(self, member: int, state: int) -> Integers | None:
        """Bound the room that a pod of a member kind leaves; None: it has no place."""
        key = (member, state)
        if key not in self._room_bounds:
            shape, room = self._shapes[state], self._room[state]
            fits = shape.fits >> self._fits[member] & 1
            bound = self._bound_room(member, state, shape, room) if fits else None
            self._room_bounds[key] = bound
        return self._room_bounds[key]

    def options(self, member: int, state: int) -> tuple[Option, ...]:
        """List the ways to place a pod of a member kind, of the best rank alone.

        Raises:
            TooManyPlacementsError: there are too many to list.
        """
        options = self._options.get((member, state))
        if options is None:
            options = self._options[member, state] = self._find(member, state)
        return options

    def to_graph(self, kinds: Iterable[NodeKind], pods: int) -> Graph:
        """Return what was met so far as a graph: part of all that nodes can come to.

        `pods`: of the batch.
        """
        classes = merge_kinds(kinds, self.start)
        edges = [
            Edge(state, target, member, placement)
            for (member, state), options in sorted(
                self._options.items(), key=itemgetter(0)
            )
            for placement, target in options
        ]
        needs_of = tuple(range(len(self._members)))
        return Graph(tuple(self._shapes), edges, classes, needs_of, pods)

    def _find(self, member: int, state: int) -> tuple[Option, ...]:
        shape = self._shapes[state]
        if not shape.fits >> self._fits[member] & 1:
            return ()
        listed = list_placements(self._members[member], shape, self._reduction)
        self._work += listed.work
        best = [p for p in listed.placements if p.rank == listed.placements[0].rank]
        return tuple((placement, self._number(placement.after)) for placement in best)

    def _number(self, shape: NodeShape) -> int:
        number = self._numbers.setdefault(shape, len(self._shapes))
        if number == len(self._shapes):
            self._shapes.append(shape)
            if number == len(self._room):
                self._room = np.concatenate([self._room, np.zeros_like(self._room)])
            self._room[number] = list_rooms_by_devices(self._expected, shape)
        return number
