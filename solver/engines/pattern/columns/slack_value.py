"""What is left over at every point of a batch is worth."""

from __future__ import annotations

import numpy as np

from solver.engines.pattern.columns.grid import Grid
from solver.engines.pattern.states.graph import Graph
from solver.engines.pattern.states.moves import Integers
from solver.kinds.demand import Demand
from solver.kinds.slack import UNBOUNDED, list_rooms_by_devices, value_of_room


def compute_slack_values(demand: Demand, graph: Graph, grid: Grid) -> Integers:
    """Value what is left at each point; exact where the levels are."""
    steps = grid.steps
    values = np.zeros(len(steps.states), dtype=np.int64)
    members = tuple(kind.member for kind in demand.expected)
    listed = [list_rooms_by_devices(members, state) for state in graph.states]
    rooms_by_state = np.array(listed, dtype=np.int64)
    for kind, by_state in zip(demand.expected, rooms_by_state.T, strict=True):
        # First count the pods that there is room for: by devices, then by resources.
        room: Integers = by_state[steps.states]
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
