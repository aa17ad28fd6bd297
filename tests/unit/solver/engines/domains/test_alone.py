"""A gang alone is placed in the domain where least is lost, without a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from solver.allocate import allocate
from solver.decision import Decision, Status
from solver.tiers import Tier
from tests.builders import (
    devices,
    gang,
    member,
    member_claim,
    node,
    pool,
    request,
    topology_rule,
)
from tests.builders.problems import (
    PARAMETERS,
    expected_of,
    observe_core,
    problem_of,
    snapshot_of,
)

RACK = "example.com/rack"
IN_A_RACK = (topology_rule(RACK),)
Racks = Mapping[str, Sequence[int]]
"""By rack: the devices of each of its nodes."""


def decided(racks: Racks, count: int, size: int, **spec: Any) -> Decision:
    """Ask for pods in one rack, where pods of four devices are expected."""
    spec = {"topology": IN_A_RACK} | spec
    pools, nodes = {}, []
    for rack, sizes in racks.items():
        for number, each in enumerate(sizes):
            name = f"{rack}-{number:02}"
            pools[name] = [pool(*devices(each), name=name)]
            nodes.append(node(name, labels={RACK: rack}))
    asked = member(member_claim(request(count=size)), count=count)
    snapshot = observe_core(snapshot_of(pools, [gang(asked, **spec)]), *nodes)
    sample = member(member_claim(request(count=4)))
    expected = expected_of(snapshot, sample, size=4000)
    return allocate(problem_of(snapshot, PARAMETERS, expected))


def racks_of(decision: Decision) -> set[str]:
    (answer,) = decision.gangs
    return {str(pod.node).partition("-")[0] for pod in answer.members}


def tier(decision: Decision, wanted: Tier) -> tuple[int, int | None]:
    (found,) = (item for item in decision.objective if item.tier is wanted)
    return found.value, found.bound


def test_the_rack_where_least_is_lost_is_proven_where_no_node_takes_two_pods() -> None:
    """The roomiest rack has nodes that are too small for expected pods anyway."""
    racks = {"a": [4] * 20, "b": [4] * 19, "c": [4] * 30 + [3, 3]}
    decision = decided(racks, 2, 3)
    assert racks_of(decision) == {"c"}
    assert decision.status is Status.OPTIMAL
    assert decision.statistics.engine == "greedy"
    assert decision.statistics.models == 0
    assert tier(decision, Tier.LEFTOVER) == (0, 0)
    assert tier(decision, Tier.NODES) == (2, 2)


def test_where_nodes_take_several_pods_the_tightest_rack_is_taken() -> None:
    """What is lost is counted, but not proven to be the least."""
    racks = {"a": [4] * 20, "b": [4] * 19}
    decision = decided(racks, 8, 1)
    assert racks_of(decision) == {"b"}
    assert decision.status is Status.OPTIMAL
    assert tier(decision, Tier.LEFTOVER) == (8000, None)


def test_groups_may_be_in_different_racks() -> None:
    """Two groups of four, and no rack has more than five nodes for them."""
    groups = (topology_rule(RACK, group_size=4),)
    racks = {"a": [4] * 5, "b": [4] * 4, "c": [4] * 3, "d": [1] * 20}
    decision = decided(racks, 8, 4, topology=groups)
    assert racks_of(decision) == {"a", "b"}
    assert decision.statistics.models == 0


def test_who_finds_no_rack_is_told_so() -> None:
    """Another engine says it with proof."""
    decision = decided({"a": [4] * 3, "b": [4] * 3, "c": [1] * 20}, 4, 4)
    assert decision.status is Status.OPTIMAL
    assert tier(decision, Tier.GANGS) == (0, 0)
    assert [reason.rule for reason in decision.gangs[0].reasons] == ["GangTopology"]


def test_a_label_that_no_node_has_is_a_no() -> None:
    """There is no domain at all."""
    rule = (topology_rule("example.com/row"),)
    decision = decided({"a": [4] * 20}, 4, 4, topology=rule)
    assert not decision.gangs[0].members
