"""Gangs in domains, placed one after the other, without a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from contracts.gang import Gang, Member
from solver.allocate import allocate
from solver.decision import Decision, Status
from solver.engines.domains import Placements, place_in_order
from solver.tiers import Tier
from tests.builders import (
    devices,
    gang,
    member,
    member_claim,
    node,
    pool,
    request,
    sub_request,
    topology_rule,
)
from tests.builders.models import DRAWN_UID
from tests.builders.problems import (
    PARAMETERS,
    expected_of,
    observe_core,
    problem_of,
    snapshot_of,
)

RACK, BLOCK = "example.com/rack", "example.com/block"
BY_RACK = (topology_rule(RACK),)
Nodes = dict[str, tuple[str | None, int]]
"""By name: the rack, if it has one, and the devices."""
Racks = Mapping[str, Sequence[int]]
"""By rack: the devices of each of its nodes."""


def asking(number: int, *members: Member, **spec: Any) -> Gang:
    spec = {"topology": BY_RACK} | spec
    return gang(*members, name=f"g{number}", uid=DRAWN_UID.format(number), **spec)


def pods(count: int, size: int = 1, name: str = "worker") -> Member:
    return member(member_claim(request(count=size)), name=name, count=count)


def placed(nodes: Nodes, *gangs: Gang) -> Placements:
    """Place gangs on nodes, each with its rack and so many devices."""
    pools = {
        name: [pool(*devices(size), name=name)] for name, (_, size) in nodes.items()
    }
    labels = {
        name: {} if rack is None else {RACK: rack} for name, (rack, _) in nodes.items()
    }
    snapshot = observe_core(
        snapshot_of(pools, gangs),
        *(node(name, labels=own) for name, own in labels.items()),
    )
    problem = problem_of(snapshot)
    return place_in_order(problem, problem.gangs)


def nodes_of(found: Placements, gang: int) -> list[list[str]]:
    """List the nodes of a gang's pods, by member, by index."""
    (placement,) = (item for item in found if item.gang == gang)
    return [[str(pod.node) for pod in own] for own in placement.members]


TWO: Nodes = {
    "a0": ("a", 4),
    "a1": ("a", 4),
    "b0": ("b", 4),
    "b1": ("b", 2),
}


def test_each_gang_is_in_the_tightest_domain_that_has_room() -> None:
    """The smaller rack is full with six; the larger one is left for eight."""
    found = placed(TWO, asking(0, pods(6)), asking(1, pods(8)))
    assert {name[0] for name in nodes_of(found, 0)[0]} == {"b"}
    assert {name[0] for name in nodes_of(found, 1)[0]} == {"a"}


def test_no_device_is_given_twice() -> None:
    """Pods of several gangs share nodes."""
    found = placed(TWO, *(asking(number, pods(3)) for number in range(4)))
    devices_given = [
        device
        for item in found
        for own in item.members
        for pod in own
        for each in pod.devices
        for device in each
    ]
    assert len(found) == 4
    assert len(devices_given) == len(set(devices_given)) == 12


def test_groups_are_each_in_one_domain_and_pods_keep_their_index() -> None:
    """Four in the rack that has room for them, two in the other."""
    rule = (topology_rule(RACK, group_size=4),)
    nodes: Nodes = {"a0": ("a", 2), "b0": ("b", 4)}
    found = placed(nodes, asking(0, pods(6), topology=rule))
    assert nodes_of(found, 0) == [["b0"] * 4 + ["a0"] * 2]


def test_groups_inside_of_a_larger_domain_are_blocks_of_blocks() -> None:
    """The larger block has more room, but no two racks for three pods each."""
    rules = (topology_rule(BLOCK), topology_rule(RACK, group_size=3))
    sizes = {"a": {"a0": 2, "a1": 2, "a2": 2, "a3": 2}, "b": {"b0": 3, "b1": 3}}
    pools, nodes = {}, []
    for block, racks in sizes.items():
        for name, size in racks.items():
            pools[name] = [pool(*devices(size), name=name)]
            nodes.append(node(name, labels={BLOCK: block, RACK: name}))
    snapshot = snapshot_of(pools, [asking(0, pods(6), topology=rules)])
    problem = problem_of(observe_core(snapshot, *nodes))
    found = place_in_order(problem, problem.gangs)
    assert nodes_of(found, 0) in ([["b0"] * 3 + ["b1"] * 3], [["b1"] * 3 + ["b0"] * 3])


def test_where_not_all_fit_those_worth_most_for_what_they_ask_are_in() -> None:
    """The largest leaves room for nobody, and is worth less than two others."""
    asked = [asking(0, pods(3), weight=1)]
    asked += [asking(number, pods(2), weight=5) for number in (1, 2)]
    found = placed({"a0": ("a", 4)}, *asked)
    assert [item.gang for item in found] == [1, 2]


def test_all_members_are_in_or_none() -> None:
    """What the first part took goes back, and the next gang has it."""
    rule = (topology_rule(RACK, "worker"), topology_rule(RACK, "other"))
    large = asking(0, pods(4), pods(2, 3, "other"), topology=rule)
    nodes: Nodes = {"a0": ("a", 4), "b0": ("b", 3)}
    found = placed(nodes, large, asking(1, pods(4)))
    assert [item.gang for item in found] == [1]


def test_where_no_node_has_the_label_there_is_no_domain() -> None:
    """Nobody is placed, and nothing ends."""
    assert placed({"a0": (None, 4)}, asking(0, pods(1))) == ()


def test_a_node_without_the_label_is_in_no_domain() -> None:
    """Though it has the room."""
    nodes: Nodes = {"a0": (None, 8), "b0": ("b", 2)}
    found = placed(nodes, asking(0, pods(3)), asking(1, pods(2)))
    assert [item.gang for item in found] == [1]


def test_what_counting_promised_and_nodes_do_not_hold_is_tried_elsewhere() -> None:
    """Pods of three and of one share no node of the first rack; another rack has."""
    nodes: Nodes = {
        "a0": ("a", 3),
        "a1": ("a", 1),
        "b0": ("b", 3),
        "b1": ("b", 3),
    }
    mixed = asking(0, pods(1, 3), pods(2, 1, "other"))
    found = placed(nodes, mixed)
    assert {name[0] for own in nodes_of(found, 0) for name in own} == {"b"}


def test_gangs_with_other_rules_are_left_to_others() -> None:
    """So are those beside them."""
    spread = asking(0, pods(2), topology=(topology_rule(RACK, max_per_domain=1),))
    assert placed(TWO, spread, asking(1, pods(2))) == ()
    alone = asking(0, pods(2), topology=(topology_rule(RACK, group_size=1),))
    assert placed(TWO, alone) == ()


@pytest.mark.parametrize("counted", ["all", "second choice", "nothing"])
def test_room_is_counted_for_all_that_a_pod_may_ask(counted: str) -> None:
    """Also for all devices of a node, for another choice, and for no device at all."""
    choices = (sub_request("a", count=9), sub_request("b", count=2))
    claims = {
        "all": [member_claim(request(mode="All"))],
        "second choice": [member_claim(request(first_available=choices))],
        "nothing": [],
    }
    nodes: Nodes = {
        f"{rack}{n}": (rack, 2) for rack in "abcdefghijkl" for n in range(2)
    }
    wanted = member(*claims[counted], count=2)
    found = placed(nodes, *(asking(number, wanted) for number in range(12)))
    assert len(found) == 12


def decided(racks: Racks, count: int, size: int, **spec: Any) -> Decision:
    """Ask for pods in one rack, where pods of four devices are expected."""
    spec = {"topology": BY_RACK} | spec
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
