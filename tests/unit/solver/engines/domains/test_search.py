"""Gangs whose parts are in domains, placed at once."""

from __future__ import annotations

from typing import Any

import pytest

from contracts.gang import Gang, Member
from solver.engines.domains.search import Placed, place_in_domains
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
from tests.builders.problems import observe_core, problem_of, snapshot_of

RACK = "example.com/rack"
BY_RACK = (topology_rule(RACK),)
LIMIT = 1.0
Nodes = dict[str, tuple[str | None, int]]
"""By name: the rack, if it has one, and the devices."""


def asking(number: int, *members: Member, **spec: Any) -> Gang:
    spec = {"topology": BY_RACK} | spec
    return gang(*members, name=f"g{number}", uid=DRAWN_UID.format(number), **spec)


def pods(count: int, size: int = 1, name: str = "worker") -> Member:
    return member(member_claim(request(count=size)), name=name, count=count)


def placed(nodes: Nodes, *gangs: Gang) -> Placed:
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
    return place_in_domains(problem, problem.gangs, work_limit=LIMIT)


def nodes_of(found: Placed, gang: int) -> list[list[str]]:
    """List the nodes of a gang's pods, by member, by index."""
    (placement,) = (item for item in found.placements if item.gang == gang)
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
        for item in found.placements
        for own in item.members
        for pod in own
        for each in pod.devices
        for device in each
    ]
    assert len(found.placements) == 4
    assert len(devices_given) == len(set(devices_given)) == 12


def test_groups_are_each_in_one_domain_and_pods_keep_their_index() -> None:
    """Four in the rack that has room for them, two in the other."""
    rule = (topology_rule(RACK, group_size=4),)
    nodes: Nodes = {"a0": ("a", 2), "b0": ("b", 4)}
    found = placed(nodes, asking(0, pods(6), topology=rule))
    assert nodes_of(found, 0) == [["b0"] * 4 + ["a0"] * 2]


def test_all_members_are_in_or_none() -> None:
    """What the first part took goes back, and the next gang has it."""
    rule = (topology_rule(RACK, "worker"), topology_rule(RACK, "other"))
    large = asking(0, pods(4), pods(2, 3, "other"), topology=rule)
    nodes: Nodes = {"a0": ("a", 4), "b0": ("b", 3)}
    found = placed(nodes, large, asking(1, pods(4)))
    assert [item.gang for item in found.placements] == [1]


def test_where_no_node_has_the_label_there_is_no_domain() -> None:
    """Nobody is placed, and nothing ends."""
    assert placed({"a0": (None, 4)}, asking(0, pods(1))).placements == ()


def test_a_node_without_the_label_is_in_no_domain() -> None:
    """Though it has the room."""
    nodes: Nodes = {"a0": (None, 8), "b0": ("b", 2)}
    found = placed(nodes, asking(0, pods(3)), asking(1, pods(2)))
    assert [item.gang for item in found.placements] == [1]


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


def test_what_is_preferred_is_tried_and_takes_nothing_from_what_is_required() -> None:
    """The larger one prefers the only rack that the other needs: it is left to others.

    The one that prefers less finds a rack.
    """
    preferred = (topology_rule(RACK, mode="Preferred"),)
    asked = (
        asking(0, pods(8), topology=preferred),
        asking(1, pods(7)),
        asking(2, pods(6), topology=preferred),
    )
    found = placed(TWO, *asked)
    assert [item.gang for item in found.placements] == [1, 2]
    assert {name[0] for name in nodes_of(found, 2)[0]} == {"b"}
    assert found.others == (0,)


def test_gangs_with_other_rules_are_left_to_others() -> None:
    """Nothing is said of them."""
    spread = asking(0, pods(2), topology=(topology_rule(RACK, max_per_domain=1),))
    found = placed(TWO, spread, asking(1, pods(2)))
    assert found.others == (0,)
    assert [item.gang for item in found.placements] == [1]


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
    assert found.others == ()
    assert len(found.placements) == 12
