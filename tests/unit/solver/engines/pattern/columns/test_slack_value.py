"""What is left over at a point is worth what the node's shape is worth."""

from __future__ import annotations

from msgspec import structs

from solver.engines.pattern.columns.model import PatternModel
from solver.kinds.demand import Demand
from solver.kinds.nodes import find_node_kinds
from solver.kinds.slack import value_of_shape
from tests.builders import gang, member, member_claim, node, pool, request
from tests.builders.devices import devices
from tests.builders.patterns import nodes_of_sizes, pattern_model
from tests.builders.problems import (
    PARAMETERS,
    expected_of,
    observe_core,
    problem_of,
    snapshot_of,
)

PAIR = member(member_claim(request(count=2)))


def test_each_point_is_worth_its_devices() -> None:
    """As the judge values the shape that they make."""
    model = pattern_model(nodes_of_sizes(5), gang(member(count=5)), expected=[PAIR])
    assert model.slack_values is not None
    (free,) = {node_class.free for node_class in model.graph.classes}
    worths = [
        value_of_shape(
            model.demand.expected,
            structs.replace(model.graph.states[state], free=free),
        )
        for state in model.steps.states.tolist()
    ]
    assert model.slack_values.tolist() == worths
    assert len(set(worths)) == 3


def test_a_node_without_cpus_left_has_no_room() -> None:
    """Devices alone serve nobody who needs more."""
    asking = member(resources={"cpu": 2})
    snapshot = snapshot_of({"n": [pool(*devices(4), name="n")]}, [gang(asking)])
    snapshot = observe_core(snapshot, node("n", allocatable={"cpu": 3, "pods": 9}))
    expected = expected_of(snapshot, asking)
    problem = problem_of(snapshot, PARAMETERS, expected)
    demand = Demand(problem.gangs, expected=problem.expected)
    kinds = find_node_kinds(problem, demand.query)
    model = PatternModel(demand, kinds, values_slack=True)
    assert model.slack_values is not None
    (root,) = model.steps.roots.tolist()
    (first,) = model.steps.target[model.steps.source == root].tolist()
    assert model.slack_values[root] == value_of_shape(demand.expected, kinds[0].shape)
    assert model.slack_values[first] == 0
