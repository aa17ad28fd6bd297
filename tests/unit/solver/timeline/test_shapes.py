"""Shapes in the words of autoscalers."""

from __future__ import annotations

from typing import Any

from contracts.gang import MemberClaim
from contracts.ids import NodeName
from solver.timeline.shapes import (
    INSTANCE_TYPE,
    MOST_CHARACTERS,
    describe_node,
    describe_pod,
)
from tests.builders import member, member_claim, request
from tests.builders.devices import devices, pool
from tests.builders.gangs import node
from tests.builders.problems import observe_core, snapshot_of
from tests.builders.timeline import World


def test_a_node_is_named_by_its_instance_type_and_devices() -> None:
    world = World(1)
    typed = node("n", labels={INSTANCE_TYPE: "large-8"})
    pools = {"n": [pool(*devices(8), name="n")]}
    world.snapshot = observe_core(snapshot_of(pools), typed)
    record = world.submit("waits")
    problem = world.asker(record).question(world.snapshot, record)
    assert describe_node(problem, NodeName("n")) == (
        "large-8, 8 devices of gpu.example.com"
    )
    assert describe_node(problem, NodeName("gone")) == ""


def describe(*claims: MemberClaim, **fields: Any) -> str:
    world = World(1)
    record = world.submit_members("waits", member(*claims, **fields))
    (gang,) = world.asker(record).question(world.snapshot, record).gangs
    return describe_pod(gang.members[0])


def test_a_pod_is_what_it_asks_for() -> None:
    assert describe(
        member_claim(request(count=9)),
        resources={"cpu": "2", "memory": "64Gi"},
        node_selector={"zone": "a"},
    ) == ("9 devices of gpu.example.com, cpu 2, memory 64Gi, label zone=a")
    everything = member_claim(request(mode="All"))
    assert describe(everything) == "all devices of gpu.example.com"


def test_long_descriptions_are_cut() -> None:
    selector = {f"example.com/{number}": "x" * 60 for number in range(9)}
    text = describe(member_claim(request()), node_selector=selector)
    assert len(text) == MOST_CHARACTERS
    assert text.endswith("...")
