"""Batches that could make the pattern engine hang, overflow or fill the memory."""

from __future__ import annotations

import pytest
from msgspec import structs

from contracts.device import Device
from contracts.gang import Gang
from solver.allocate import allocate
from solver.decision import Decision
from solver.engines.choose import DIRECT, PACKING, PATTERN, choose_engine
from solver.engines.pattern.columns.enumeration import keep_maximal
from solver.engines.pattern.columns.pricing import Pattern
from solver.engines.pattern.states.graph import build_graph
from solver.engines.pattern.states.resources import ResourceLevels
from solver.engines.pattern.states.steps import Steps
from solver.errors import TooManyStepsError
from solver.kinds.demand import Demand
from solver.kinds.nodes import find_node_kinds
from tests.builders import (
    DRIVER,
    constraint,
    counter_set,
    device,
    devices,
    gang,
    member,
    member_claim,
    node,
    pool,
    request,
)
from tests.builders.problems import observe_core, problem_of, snapshot_of

UID = "00000000-0000-4000-8000-{:012}"
ROOT = "resource.kubernetes.io/pcieRoot"


def reached(decision: Decision) -> tuple[int, int | None]:
    """Say what of tier 1 was reached and what was proven."""
    tier = decision.objective[0]
    assert tier.bound is None or tier.value <= tier.bound
    return tier.value, tier.bound


def shared(name: str = "nic", **capacity: int) -> Device:
    return device(name, allow_multiple_allocations=True, capacity=capacity)


def of_own(attribute: str, value: str) -> tuple[str]:
    return (f'device.attributes["{DRIVER}"].{attribute} == "{value}"',)


def test_shares_that_cost_nothing_end() -> None:
    """A pod that leaves a node as it was is none for patterns: they would not end."""
    snapshot = snapshot_of({"n": [pool(shared(), name="n")]}, [gang(member(count=3))])
    decision = allocate(problem_of(snapshot))
    assert reached(decision) == (3, 3)
    assert decision.statistics.engine == DIRECT


def test_a_free_share_beside_a_device_is_one_for_patterns() -> None:
    """What costs nothing does no harm where something else is used up."""
    claim = member_claim(
        request("nic", select=of_own("type", "nic")),
        request("gpu", select=of_own("type", "gpu")),
    )
    nic = device("nic", attributes={"type": "nic"}, allow_multiple_allocations=True)
    gpus = devices(2, attributes={"type": "gpu"})
    asked = [gang(member(claim, count=2))]
    problem = problem_of(snapshot_of({"n": [pool(nic, *gpus, name="n")]}, asked))
    demand = Demand(problem.gangs)
    assert (
        choose_engine(demand, find_node_kinds(problem, demand.query)).engine == PATTERN
    )
    assert reached(allocate(problem)) == (4, 4)


def test_a_node_may_take_more_pods_than_python_calls_nest() -> None:
    """1,200 pods share one device; listing follows them one after the other."""
    claim = member_claim(request(capacity={"slots": 1}))
    nodes = {"n": [pool(shared(slots=1500), name="n")]}
    problem = problem_of(snapshot_of(nodes, [gang(member(claim, count=1200))]))
    decision = allocate(problem)
    assert decision.statistics.engine == PACKING
    assert reached(decision) == (1200, 1200)


def test_hundreds_of_kinds_of_pod_are_not_listed_one_by_one() -> None:
    """They differ in CPUs alone; answer and bound are true, and memory is bounded."""
    nodes = {f"n{i}": [pool(*devices(4), name=f"n{i}")] for i in range(4)}
    known = [node(name, allocatable={"cpu": 6, "pods": 9}) for name in nodes]
    gangs = [
        gang(
            member(resources={"cpu": f"{1000 + 7 * index}m"}),
            name=f"g{index}",
            uid=UID.format(index),
        )
        for index in range(80)
    ]
    decision = allocate(problem_of(observe_core(snapshot_of(nodes, gangs), *known)))
    value, bound = reached(decision)
    assert value > 0
    assert bound is not None
    assert bound >= 16


def test_every_device_may_be_another() -> None:
    """Each request means one device of one node, and no two are alike."""
    nodes = {
        f"n{n}": [
            pool(
                *(device(f"d{i}", attributes={"id": f"{n}-{i}"}) for i in range(8)),
                name=f"n{n}",
            )
        ]
        for n in range(4)
    }
    gangs = [_of_one(index, f"{index % 4}-{index % 8}") for index in range(40)]
    assert reached(allocate(problem_of(snapshot_of(nodes, gangs)))) == (8, 8)


def _of_one(index: int, value: str) -> Gang:
    claim = member_claim(request(select=of_own("id", value)))
    return gang(member(claim), name=f"g{index}", uid=UID.format(index))


def test_too_many_ways_to_choose_are_left_to_the_direct_model() -> None:
    """8 of 16 devices of which no two are alike."""
    content = [device(f"d{i}", attributes={"id": f"{i}"}) for i in range(16)]
    many = member(member_claim(request(count=8)), count=2)
    gangs = [_of_one(index, f"{index}") for index in range(16)]
    nodes = {name: [pool(*content, name=name)] for name in ("n0", "n1")}
    gangs.append(gang(many, name="many", uid=UID.format(99)))
    decision = allocate(problem_of(snapshot_of(nodes, gangs)))
    assert decision.statistics.engine == DIRECT
    assert "ways to place" in decision.statistics.engine_reason
    assert reached(decision) == (32, 32)


def test_a_gang_of_5000_is_placed_whole() -> None:
    """On nodes of two kinds, in pairs on a PCIe root and alone."""
    nodes = {
        name: [
            pool(
                *(device(f"d{i}", attributes={ROOT: f"p{i // 2}"}) for i in range(8)),
                name=name,
            )
        ]
        for name in (f"n{n:03}" for n in range(875))
    }
    pairs = member_claim(request(count=2), constraints=(constraint(ROOT),))
    asked = gang(member(name="alone", count=3000), member(pairs, name="p", count=2000))
    assert reached(allocate(problem_of(snapshot_of(nodes, [asked])))) == (7000, 7000)


def test_slices_that_overlap_are_counted_once() -> None:
    """Partitions of cards at fixed places, as counters a slice: the most that fit."""
    sets = [counter_set(f"c{c}", **{f"s{k}": 1 for k in range(4)}) for c in range(2)]
    content = [
        device(
            f"c{c}-{size}-{start}",
            attributes={"profile": f"{size}"},
            consumes={f"c{c}": {f"s{k}": 1 for k in range(start, start + size)}},
        )
        for c in range(2)
        for size in (1, 2, 4)
        for start in range(0, 4, size)
    ]
    nodes = {f"n{n}": [pool(*content, name=f"n{n}", counters=sets)] for n in range(6)}
    gangs = [
        gang(
            member(
                member_claim(request(select=of_own("profile", f"{size}"))), count=count
            ),
            name=f"g{size}-{count}",
            uid=UID.format(10 * size + count),
        )
        for size in (1, 2, 4)
        for count in range(1, 8)
    ]
    decision = allocate(problem_of(snapshot_of(nodes, gangs)))
    value, bound = reached(decision)
    assert value == bound


def test_steps_of_many_kinds_of_pod_are_counted_before_they_are_made() -> None:
    """A refusal costs no memory: edges times kinds of pod that take them."""
    nodes = {"n": [pool(*devices(2), name="n")]}
    snapshot = snapshot_of(nodes, [gang(member(count=2))])
    problem = problem_of(snapshot)
    demand = Demand(problem.gangs)
    graph = build_graph(demand, find_node_kinds(problem, demand.query))
    graph = structs.replace(graph, edges=[*graph.edges] * 2_000_000)
    nothing = ResourceLevels(((),), ((),), ())
    with pytest.raises(TooManyStepsError):
        Steps(graph, demand.member_kinds, nothing, [0])


def test_too_many_patterns_are_not_compared() -> None:
    """Patterns of which none contains another would be compared in pairs."""
    alike = [Pattern((i,), ((0, i), (1, 4000 - i))) for i in range(4000)]
    assert keep_maximal(alike) is None
    assert keep_maximal(alike[:100]) == alike[:100]
