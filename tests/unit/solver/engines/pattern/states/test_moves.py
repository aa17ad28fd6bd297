"""Ways from state to state, and lists of ranges."""

from __future__ import annotations

import numpy as np
import pytest

from solver.engines.pattern.states.graph import Graph, build_graph
from solver.engines.pattern.states.moves import (
    Moves,
    compute_heights,
    expand_ranges,
    list_ranges,
)
from solver.errors import TooManyStepsError
from tests.builders import gang, member
from tests.builders.patterns import demand_and_kinds, nodes_of_sizes

PODS = gang(
    member(resources={"cpu": 1}, count=3), member(resources={"cpu": 2}, name="p")
)


def graph_of(limit: int) -> tuple[Graph, Moves]:
    """Place pods of two amounts of CPU on three devices."""
    demand, kinds = demand_and_kinds(nodes_of_sizes(3), PODS)
    graph = build_graph(demand, kinds)
    return graph, Moves(graph, demand.member_kinds, limit)


def test_an_edge_is_a_move_of_each_kind_of_pod_that_takes_the_same_devices() -> None:
    """Pods that differ in CPU alone share their edges."""
    graph, moves = graph_of(limit=100)
    assert len(graph.edges) == 3
    assert sorted(moves.edge.tolist()) == [0, 0, 1, 1, 2, 2]
    assert (np.diff(moves.source) >= 0).all()


def test_a_state_is_as_high_as_pods_may_come() -> None:
    """One device a pod."""
    graph, moves = graph_of(limit=100)
    heights = moves.compute_heights()
    sizes = [sum(group.size for group in state.groups) for state in graph.states]
    assert heights.tolist() == sizes


def test_too_many_moves_are_refused_before_they_are_made() -> None:
    """The limit itself is allowed."""
    graph_of(limit=6)
    with pytest.raises(TooManyStepsError, match="more than 5"):
        graph_of(limit=5)


def test_heights_are_of_the_longest_way_down() -> None:
    """From 0 to 2 there are two ways."""
    source, target = np.array([0, 0, 1]), np.array([1, 2, 2])
    assert compute_heights(4, source, target).tolist() == [2, 1, 0, 0]


def test_ranges_are_expanded_key_by_key() -> None:
    """An empty range has no number, and a key may come twice."""
    position, number = expand_ranges(np.array([0, 2, 2, 5]), np.array([2, 1, 0, 2]))
    assert position.tolist() == [0, 0, 0, 2, 2, 3, 3, 3]
    assert number.tolist() == [2, 3, 4, 0, 1, 2, 3, 4]


def test_ranges_are_listed_in_their_order() -> None:
    """They may overlap, and one may be empty."""
    position, number = list_ranges(np.array([4, 1, 3]), np.array([6, 1, 5]))
    assert position.tolist() == [0, 0, 2, 2]
    assert number.tolist() == [4, 5, 3, 4]
