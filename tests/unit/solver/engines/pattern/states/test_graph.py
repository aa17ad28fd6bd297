"""The graph of states holds what the batch can come to, each state once."""

from __future__ import annotations

import pytest

from contracts.gang import Member
from solver.engines.pattern.states.graph import Graph, build_graph, number_attributes
from solver.kinds.demand import Demand
from solver.kinds.nodes import find_node_kinds
from solver.problem.problem import Problem
from tests.builders import (
    DRIVER,
    constraint,
    device,
    devices,
    gang,
    member,
    member_claim,
    node,
    pool,
    request,
)
from tests.builders.models import waiting_on
from tests.builders.problems import observe_core, problem_of, snapshot_of


def graph_of(problem: Problem) -> Graph:
    demand = Demand(problem.gangs)
    return build_graph(demand, find_node_kinds(problem, demand.query))


def graph_on(sizes: dict[str, int], *members: Member) -> Graph:
    return graph_of(waiting_on(sizes, members))


@pytest.mark.parametrize(("pods", "edges"), [(1, 1), (3, 3), (9, 4)])
def test_states_go_as_deep_as_the_batch_has_pods_or_the_node_devices(
    pods: int, edges: int
) -> None:
    """Of a node with four devices, one is taken at each edge."""
    graph = graph_on({"n": 4}, member(count=pods))
    assert (len(graph.edges), len(graph.states)) == (edges, edges + 1)
    assert not graph.has_loops


def test_partly_used_nodes_begin_in_states_of_the_empty_one() -> None:
    """Nodes of 4, 2 and 1 devices add no state to those of 4."""
    alone = graph_on({"a": 4}, member(count=4))
    graph = graph_on({"a": 4, "b": 2, "c": 1, "d": 2}, member(count=4))
    assert set(graph.states) == set(alone.states)
    assert sorted(each.size for each in graph.classes) == [1, 1, 2]


def test_nodes_of_no_use_are_one_class() -> None:
    """One device or two are as little where three are asked for."""
    graph = graph_on({"a": 3, "b": 1, "c": 2}, member(member_claim(request(count=3))))
    assert sorted((each.size, len(each.kinds)) for each in graph.classes) == [
        (1, 1),
        (2, 2),
    ]


def test_pods_that_need_the_same_devices_share_their_edges() -> None:
    """However many CPUs they need besides."""
    small = member(name="small", resources={"cpu": 1})
    large = member(name="large", resources={"cpu": 2})
    graph = graph_on({"n": 2}, small, large)
    assert graph.device_needs_of == (0, 0)
    assert len(graph.edges) == 2


def test_pods_that_may_not_go_to_a_node_have_no_edge_on_it() -> None:
    """Only the node with the label takes the pair."""
    pair = member(
        member_claim(request(count=2)), name="pair", node_selector={"zone": "a"}
    )
    nodes = {name: [pool(*devices(2), name=name)] for name in ("in", "out")}
    snapshot = snapshot_of(nodes, [gang(member(), pair)])
    for name, zone in (("in", "a"), ("out", "b")):
        snapshot = observe_core(snapshot, node(name, labels={"zone": zone}))
    graph = graph_of(problem_of(snapshot))
    of_pairs = {edge.source for edge in graph.edges if edge.device_need == 1}
    roots = {str(each.kinds[0][0].nodes[0].name): each.state for each in graph.classes}
    assert roots["in"] in of_pairs
    assert roots["out"] not in of_pairs


def test_shares_that_cost_nothing_are_loops() -> None:
    """The pod leaves the node as it was."""
    free = device(allow_multiple_allocations=True)
    snapshot = snapshot_of({"n": [pool(free, name="n")]}, [gang()])
    assert graph_of(problem_of(snapshot)).has_loops


def test_columns_of_one_attribute_have_one_number() -> None:
    """Numbers are given in the order of columns, which are sorted."""
    pods = member(
        member_claim(
            constraints=[
                constraint(f"{DRIVER}/b"),
                constraint(f"{DRIVER}/a"),
                constraint(distinct=f"{DRIVER}/b"),
            ]
        )
    )
    demand = Demand(waiting_on({"n": 1}, [pods]).gangs)
    assert [column.attribute for column in demand.query.columns] == [
        f"{DRIVER}/a",
        f"{DRIVER}/b",
    ]
    assert number_attributes(demand) == (0, 1)


def test_equal_groups_of_states_are_one_object() -> None:
    """States are many, and most of their groups are alike: they share the memory."""
    numas = [device(f"d{n}", attributes={"numa": n // 2}) for n in range(6)]
    pairs = member_claim(request(count=2), constraints=[constraint(f"{DRIVER}/numa")])
    asking = gang(member(member_claim(request()), count=4), member(pairs, name="m1"))
    problem = problem_of(snapshot_of({"n": [pool(*numas, name="n")]}, [asking]))
    groups = [group for state in graph_of(problem).states for group in state.groups]
    assert len(groups) > len(set(groups))
    assert len({id(group) for group in groups}) == len(set(groups))
