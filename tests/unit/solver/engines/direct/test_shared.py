"""What devices share is enough for all pods, or the model is infeasible.

As for `test_rules.py`: without the one rule the same problem would pass.
"""

from __future__ import annotations

import pytest
from msgspec import structs

from contracts.device import Device, DeviceCounterConsumption
from contracts.features import Features
from contracts.gang import Member
from solver.engines import cpsat
from solver.engines.direct import shared
from solver.problem.problem import Problem
from tests.builders import (
    counter_set,
    device,
    gang,
    member,
    member_claim,
    pool,
    request,
)
from tests.builders.models import Rule, place_all
from tests.builders.problems import PARAMETERS, problem_of, snapshot_of

ON = structs.replace(PARAMETERS, features=Features(compatibility_groups=True))
PAIR = member(member_claim(request(count=2)))


def on_one_node(*content: Device, memory: int, pods: tuple[Member, ...]) -> Problem:
    """Let one gang wait for devices that draw from one counter."""
    sets = [counter_set("card", memory=memory)]
    nodes = {"n": [pool(*content, name="n", counters=sets)]}
    return problem_of(snapshot_of(nodes, [gang(*pods)]), ON)


def drawing(name: str, memory: int, *, shareable: bool = False) -> Device:
    return device(
        name,
        consumes={"card": {"memory": memory}},
        allow_multiple_allocations=shareable or None,
    )


def grouped(name: str, *names: str) -> Device:
    consumption = DeviceCounterConsumption(
        counter_set="card", compatibility_groups=names
    )
    return structs.replace(device(name), consumes_counters=(consumption,))


def outcomes(
    rule: Rule, problem: Problem
) -> tuple[type[cpsat.Outcome], type[cpsat.Outcome]]:
    """Return what comes of a problem under all rules, and without one of them."""
    return type(place_all(problem)), type(place_all(problem, without=rule))


@pytest.mark.parametrize(
    ("second", "outcome"), [(3, cpsat.Solved), (4, cpsat.Infeasible)]
)
def test_capacity_suffices(second: int, outcome: type[cpsat.Outcome]) -> None:
    """Shares of 5 and 3 fill a capacity of 8; 5 and 4 are too much."""
    whole = device("d", capacity={"memory": 8}, allow_multiple_allocations=True)
    pods = tuple(
        member(member_claim(request(capacity={"memory": amount})), name=name)
        for name, amount in (("a", 5), ("b", second))
    )
    problem = on_one_node(whole, memory=1, pods=pods)
    assert outcomes(shared.capacity_suffices, problem) == (outcome, cpsat.Solved)


@pytest.mark.parametrize(
    ("memory", "outcome"), [(4, cpsat.Solved), (3, cpsat.Infeasible)]
)
def test_counters_suffice(memory: int, outcome: type[cpsat.Outcome]) -> None:
    """Two devices that draw 2 each need a counter of 4."""
    content = (drawing("a", 2), drawing("b", 2))
    problem = on_one_node(*content, memory=memory, pods=(PAIR,))
    assert outcomes(shared.counters_suffice, problem) == (outcome, cpsat.Solved)


@pytest.mark.parametrize(
    ("memory", "outcome"), [(4, cpsat.Solved), (3, cpsat.Infeasible)]
)
def test_counters_suffice_for_devices_that_are_shared(
    memory: int, outcome: type[cpsat.Outcome]
) -> None:
    """Of two shared devices each draws its 2 once, however many pods use it."""
    content = (drawing("a", 2, shareable=True), drawing("b", 2, shareable=True))
    pods = (structs.replace(PAIR, count=3),)
    problem = on_one_node(*content, memory=memory, pods=pods)
    assert outcomes(shared.counters_suffice, problem) == (outcome, cpsat.Solved)


def test_counters_do_not_count_what_a_pod_only_watches() -> None:
    """Admin access takes nothing, not even beside what the pod itself has."""
    both = member(
        member_claim(request("work"), request("watch", admin_access=True)),
    )
    problem = on_one_node(drawing("a", 2), drawing("b", 2), memory=2, pods=(both,))
    assert isinstance(place_all(problem), cpsat.Solved)


def test_counters_are_not_lessened_by_pods_that_only_watch() -> None:
    """Three pods that watch leave the only device to the one that works."""
    pods = (
        member(member_claim(request(admin_access=True)), name="watch", count=3),
        member(name="work"),
    )
    problem = on_one_node(drawing("a", 2), memory=2, pods=pods)
    assert isinstance(place_all(problem), cpsat.Solved)


@pytest.mark.parametrize(
    ("first", "second", "outcome"),
    [
        (("one", "two"), ("two",), cpsat.Solved),
        (("one",), ("two",), cpsat.Infeasible),
        (("one",), (), cpsat.Infeasible),
        ((), (), cpsat.Solved),
    ],
)
def test_compatibility_groups_agree(
    first: tuple[str, ...], second: tuple[str, ...], outcome: type[cpsat.Outcome]
) -> None:
    """Two devices of one counter set share a group, or neither names one."""
    content = (grouped("a", *first), grouped("b", *second))
    problem = on_one_node(*content, memory=1, pods=(PAIR,))
    assert outcomes(shared.compatibility_groups_agree, problem) == (
        outcome,
        cpsat.Solved,
    )


def test_scaled_amounts_never_promise_more() -> None:
    """A common divisor is exact; beyond 62 bits amounts grow beside their limit."""
    assert shared.scaled([4, 6], 9) == ([2, 3], 4)
    huge, odd = 1 << 60, (1 << 59) + 1
    (first, second), limit = shared.scaled([huge, odd], huge)
    assert max(first, second, limit) * 3 * 4096 <= 1 << 62
    assert first >= limit
    assert second * 2 > limit
