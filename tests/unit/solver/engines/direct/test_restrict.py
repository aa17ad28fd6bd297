"""A model sees as many nodes as it needs, and no more."""

from __future__ import annotations

import pytest

from contracts.gang import Member
from solver.engines.direct.restrict import (
    all_needed_nodes,
    count_fewest_nodes,
    enough_nodes,
)
from solver.kinds.demand import Demand
from solver.kinds.nodes import find_node_kinds
from solver.kinds.shapes import NodeKind, NodeView
from tests.builders import member, member_claim, request
from tests.builders.models import waiting_on

PAIR = member(member_claim(request(count=2)), name="pair")


def cluster(
    sizes: dict[str, int], *members: Member
) -> tuple[tuple[NodeKind, ...], Demand]:
    problem = waiting_on(sizes, members)
    demand = Demand(problem.gangs)
    return find_node_kinds(problem, demand.query), demand


def names(views: tuple[NodeView, ...]) -> list[str]:
    return [view.name for view in views]


def test_of_a_kind_no_more_nodes_matter_than_there_are_pods() -> None:
    """Those with the lowest names; a node that holds no pod does not matter at all."""
    sizes = {"f": 1, "e": 2, "d": 2, "c": 2, "b": 4, "a": 4}
    pods = member(member_claim(request(count=2)), count=2)
    assert names(all_needed_nodes(*cluster(sizes, pods))) == ["a", "b", "c", "d"]


@pytest.mark.parametrize(
    ("spare", "chosen"),
    [(1, ["d"]), (2, ["b", "d"]), (3, ["b", "d"]), (6, ["b", "c", "d"])],
)
def test_enough_nodes_hold_the_pods_so_many_times_tightest_first(
    spare: int, chosen: list[str]
) -> None:
    """For pairs two devices come before four, which are more; one is of no use."""
    sizes = {"a": 1, "b": 4, "c": 4, "d": 2}
    assert sorted(names(enough_nodes(*cluster(sizes, PAIR), spare=spare))) == chosen


def test_a_node_that_was_chosen_counts_for_one_kind_of_pod() -> None:
    """A pair and a single pod would fit on one node of four, and get two."""
    sizes = {"a": 4, "b": 4, "c": 4}
    chosen = enough_nodes(*cluster(sizes, PAIR, member(name="one")), spare=1)
    assert names(chosen) == ["a", "b"]


def test_the_tightest_node_has_the_fewest_devices_to_spare() -> None:
    """Of 3 devices a pair leaves one, of 4 none, and 2 are the fewest without any."""
    for sizes, chosen in (
        ({"a": 3, "b": 4}, ["b"]),
        ({"a": 4, "b": 2}, ["b"]),
        ({"a": 5, "b": 3}, ["b"]),
    ):
        assert names(enough_nodes(*cluster(sizes, PAIR), spare=1)) == chosen


def test_large_pods_choose_nodes_first() -> None:
    """If three single pods chose first, the pair could not have the node of two."""
    ones = member(name="one", count=3)
    sizes = {"a": 2, "b": 3, "c": 4}
    assert names(enough_nodes(*cluster(sizes, ones, PAIR), spare=1)) == ["a", "b"]


@pytest.mark.parametrize(("pods", "fewest"), [(1, 1), (2, 1), (3, 2), (5, 3)])
def test_fewest_nodes_are_counted_by_the_node_that_holds_most(
    pods: int, fewest: int
) -> None:
    """Two pairs fit on the largest node: so many pods touch no fewer nodes."""
    pairs = member(member_claim(request(count=2)), count=pods)
    sizes = {"a": 2, "b": 5, "c": 3}
    assert count_fewest_nodes(*cluster(sizes, pairs)) == fewest
