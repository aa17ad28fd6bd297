"""What is left over at every point of a batch is worth (tier 3)."""

from __future__ import annotations

import numpy as np

from solver.engines.pattern.columns.grid import Counted
from solver.engines.pattern.states.graph import Graph
from solver.engines.pattern.states.steps import Integers
from solver.kinds.demand import Demand, ExpectedKind
from solver.kinds.slack import room_by_devices, value_of_room

UNBOUNDED = 1 << 40


def kept_values(demand: Demand, graph: Graph, counted: Counted) -> Integers:
    """Value what is left at each point; exact where the levels are."""
    steps = counted.steps
    total = np.zeros(len(steps.states), dtype=np.int64)
    for kind in demand.expected:
        by_state = [_room(kind, graph, state) for state in range(len(graph.states))]
        room = np.array(by_state, dtype=np.int64)[steps.states]
        for column, resource in enumerate(counted.resources):
            need = kind.member.needs[resource.number]
            if need:
                level = steps.levels[:, column]
                endless = level == -(-resource.most[0] // resource.unit)
                left = np.where(endless, UNBOUNDED, level * resource.unit // need)
                room = np.minimum(room, left)
        room[room == UNBOUNDED] = 0
        rooms, where = np.unique(room, return_inverse=True)
        worth = [value_of_room(kind, int(pods)) for pods in rooms]
        total += np.array(worth, dtype=np.int64)[where]
    return total


def _room(kind: ExpectedKind, graph: Graph, state: int) -> int:
    shape = graph.states[state]
    if not shape.fits >> kind.member.fit & 1:
        return 0
    room = room_by_devices(kind.member, shape)
    return UNBOUNDED if room is None else room
