"""What is left over at every point of a batch is worth."""

from __future__ import annotations

import numpy as np

from solver.engines.pattern.columns.grid import Grid
from solver.engines.pattern.states.graph import Graph
from solver.engines.pattern.states.steps import Integers
from solver.kinds.demand import Demand, ExpectedKind
from solver.kinds.slack import bound_room_by_devices, value_of_room

UNBOUNDED = 1 << 40


def compute_slack_values(demand: Demand, graph: Graph, grid: Grid) -> Integers:
    """Value what is left at each point; exact where the levels are."""
    steps = grid.steps
    values = np.zeros(len(steps.states), dtype=np.int64)
    for kind in demand.expected:
        # First count the pods that there is room for: by devices, then by resources.
        states = range(len(graph.states))
        room_by_state = [_count_room(kind, graph, state) for state in states]
        room = np.array(room_by_state, dtype=np.int64)[steps.states]
        for column, resource in enumerate(grid.resources):
            need = kind.member.needs[resource.index]
            if need:
                level = steps.levels[:, column]
                is_endless = level == -(-resource.caps[0] // resource.unit)
                pods = np.where(is_endless, UNBOUNDED, level * resource.unit // need)
                room = np.minimum(room, pods)
        room[room == UNBOUNDED] = 0
        # Then value each amount of room once.
        rooms, number = np.unique(room, return_inverse=True)
        worth = [value_of_room(kind, int(pods)) for pods in rooms]
        values += np.array(worth, dtype=np.int64)[number]
    return values


def _count_room(kind: ExpectedKind, graph: Graph, state: int) -> int:
    """Count the pods that a state's devices have room for; UNBOUNDED: any number."""
    shape = graph.states[state]
    if not shape.fits >> kind.member.fit & 1:
        return 0
    room = bound_room_by_devices(kind.member, shape)
    return UNBOUNDED if room is None else room
