"""Which changes are tried for a gang that waits."""

from __future__ import annotations

from contracts.ids import (
    DeviceID,
    DeviceName,
    DriverName,
    GangKey,
    GangUID,
    Namespace,
    PoolName,
)
from contracts.names import UNHEALTHY
from moorings.console.proposals import Holder, Proposal, narrow, propose
from solver.allocate import allocate
from solver.problem.problem import Problem
from tests import builders
from tests.builders.problems import problem_of, snapshot_of

NODES = {"a": [builders.pool(*builders.devices(4), name="a")]}
GANGS = [
    builders.gang(builders.member(count=3), name="first", uid="u1", priority=1),
    builders.gang(builders.member(count=4), name="second", uid="u2"),
    builders.gang(builders.member(count=5), name="third", uid="u3"),
]
SECOND = GangKey(Namespace(builders.NAMESPACE), GangUID("u2"))
HOLDERS = [
    Holder(name="x/urgent", priority=9, devices=8),
    Holder(name="x/small", priority=0, devices=1),
    Holder(name="x/large", priority=0, devices=4),
]


def proposals_of(problem: Problem, holders: list[Holder]) -> list[Proposal]:
    (gang,) = [part for part in problem.gangs if part.key == SECOND]
    return list(propose(problem, allocate(problem), gang, holders))


def test_who_waits_behind_does_not_matter() -> None:
    problem = problem_of(snapshot_of(NODES, GANGS))
    narrowed = narrow(problem, allocate(problem), SECOND)
    assert [gang.name for gang in narrowed.gangs] == ["first", "second"]


def test_the_least_urgent_is_ended_first() -> None:
    proposals = proposals_of(problem_of(snapshot_of(NODES, GANGS)), HOLDERS)
    ended = [each.what_if.end for each in proposals if each.sort == "end"]
    assert ended == [
        ("x/large",),
        ("x/small",),
        ("x/urgent",),
        ("x/large", "x/small", "x/urgent"),
    ]


def test_who_was_decided_with_it_is_left_out_when_it_ends() -> None:
    """It held nothing when the question was recorded."""
    first = Holder(name=f"{builders.NAMESPACE}/first", priority=1, devices=3)
    problem = problem_of(snapshot_of(NODES, GANGS))
    (end,) = [p for p in proposals_of(problem, [first]) if p.sort == "end"]
    assert end.what_if.leave_out == ("u1",)


def test_nodes_are_added_like_the_one_with_most_devices() -> None:
    nodes = {**NODES, "b": [builders.pool(*builders.devices(8), name="b")]}
    proposals = proposals_of(problem_of(snapshot_of(nodes, GANGS[:2])), [])
    added = [each.what_if for each in proposals if each.sort == "nodes"]
    assert {each.like for each in added} == {"b"}
    assert [each.add_nodes for each in added] == [1, 2, 3, 4, 8]


def test_healing_is_tried_only_where_something_is_sick() -> None:
    problem = problem_of(snapshot_of(NODES, GANGS))
    assert not [p for p in proposals_of(problem, []) if p.sort == "heal"]
    device = DeviceID(DriverName(builders.DRIVER), PoolName("a"), DeviceName("gpu-0"))
    sick = {device: builders.taint(UNHEALTHY)}
    problem = problem_of(snapshot_of(NODES, GANGS, taints=sick))
    (heal,) = [p for p in proposals_of(problem, []) if p.sort == "heal"]
    assert heal.what_if.heal
    assert heal.text == "1 unhealthy device is well again"


def test_fewer_pods_are_half_as_many_each_time() -> None:
    proposals = proposals_of(problem_of(snapshot_of(NODES, GANGS)), [])
    fewer = [each.what_if.pods for each in proposals if each.sort == "fewer"]
    assert fewer == [{"u2/worker": 2}, {"u2/worker": 1}]
