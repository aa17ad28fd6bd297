"""Levels are rounded down to what pods can come to, and no further."""

from __future__ import annotations

from itertools import combinations_with_replacement

import numpy as np
import pytest

from solver.engines.pattern.states import attainable
from solver.engines.pattern.states.attainable import (
    AttainableSums,
    find_attainable_sums,
)
from solver.engines.pattern.states.graph import Graph, build_graph
from solver.engines.pattern.states.moves import Moves
from tests.builders import gang, member, member_claim, request
from tests.builders.patterns import demand_and_kinds, nodes_of_sizes

MOST = 40


def sums_of(
    *needs: int, devices: int = 2, most: int = MOST
) -> tuple[Graph, AttainableSums | None]:
    """Find sums of pods of one device, of which each needs so much."""
    pods = gang(
        *(
            member(resources={"cpu": need}, name=f"p{number}", count=devices)
            for number, need in enumerate(needs)
        )
    )
    demand, kinds = demand_and_kinds(nodes_of_sizes(devices), pods)
    graph = build_graph(demand, kinds)
    moves = Moves(graph, demand.member_kinds, 1000)
    # Kinds of member come in an order of their own.
    cpu = [m.needs[0] // 1000 for m in demand.member_kinds]
    return graph, find_attainable_sums(
        moves, moves.compute_heights(), np.array(cpu, dtype=np.int64), most
    )


@pytest.mark.parametrize("needs", [(3, 5), (1,), (4, 6, 9), (2, 3, 7, 11), (0, 6)])
@pytest.mark.parametrize("devices", [1, 2, 4])
def test_levels_are_rounded_to_what_any_pods_need(
    needs: tuple[int, ...], devices: int
) -> None:
    """As if all selections of pods were tried."""
    graph, sums = sums_of(*needs, devices=devices)
    assert sums is not None
    for number, state in enumerate(graph.states):
        size = sum(group.size for group in state.groups)
        selections = combinations_with_replacement((0, *needs), size)
        possible = {sum(selection) for selection in selections}
        levels = np.arange(MOST + 1)
        rounded = sums.round_down(np.full(MOST + 1, number), levels)
        expected = [max(s for s in possible if s <= level) for level in levels]
        assert rounded.tolist() == expected


def test_pods_of_several_devices_leave_room_for_fewer_others() -> None:
    """Of three devices, a pod of two of them and 7 CPUs leaves one."""
    pods = gang(
        member(member_claim(request(count=2)), resources={"cpu": 7}, name="pair"),
        member(resources={"cpu": 2}, name="single", count=3),
    )
    demand, kinds = demand_and_kinds(nodes_of_sizes(3), pods)
    moves = Moves(build_graph(demand, kinds), demand.member_kinds, 1000)
    cpu = np.array([m.needs[0] // 1000 for m in demand.member_kinds], dtype=np.int64)
    sums = find_attainable_sums(moves, moves.compute_heights(), cpu, MOST)
    assert sums is not None
    levels = np.arange(12)
    whole = sums.round_down(np.zeros(12, dtype=np.int64), levels)
    assert sorted(set(whole.tolist())) == [0, 2, 4, 6, 7, 9]


@pytest.mark.parametrize("limit", ["MAX_SUMS", "MAX_KEY"])
def test_sums_that_are_too_many_are_not_made(
    monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    """Then levels stay as they are."""
    monkeypatch.setattr(attainable, limit, 3)
    assert sums_of(3, 5)[1] is None
