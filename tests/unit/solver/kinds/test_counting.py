"""By counting alone, never too few pods are promised to a node."""

from __future__ import annotations

from typing import Any

import pytest

from solver.allocate import allocate
from solver.kinds.counting import bound_pods, bound_weight
from solver.kinds.demand import Demand
from solver.kinds.nodes import find_node_kinds
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
    sub_request,
)
from tests.builders.models import DRAWN_UID
from tests.builders.problems import observe_core, problem_of, snapshot_of

NUMA = f"{DRIVER}/numa"
CONTENT = [device(f"d{i}", attributes={"numa": i // 4, "i": i}) for i in range(6)]


def most(*requests: Any, constraints: Any = (), **pod: Any) -> int:
    """Bound the pods on a node with 4 devices of one NUMA node and 2 of another."""
    asking = gang(member(member_claim(*requests, constraints=constraints), **pod))
    snapshot = snapshot_of({"n": [pool(*CONTENT, name="n")]}, [asking])
    snapshot = observe_core(snapshot, node("n", allocatable={"cpu": 8, "pods": 100}))
    problem = problem_of(snapshot)
    demand = Demand(problem.gangs)
    (kind,) = find_node_kinds(problem, demand.query)
    (pods,) = demand.member_kinds
    return bound_pods(pods, kind.shape)


@pytest.mark.parametrize(
    ("requests", "pods"),
    [
        ((request(),), 6),
        ((request(count=4),), 1),
        ((request(count=7),), 0),
        ((request("a"), request("b")), 3),
        ((request(mode="All"),), 1),
        ((request(first_available=[sub_request("a", count=3), sub_request("b")]),), 8),
    ],
)
def test_pods_are_bounded_by_the_devices_that_they_ask_for(
    requests: tuple[Any, ...], pods: int
) -> None:
    """Alternatives add up: it is a bound, not a promise."""
    assert most(*requests) == pods


def test_a_constraint_counts_devices_value_by_value() -> None:
    """Three of one NUMA node fit once, though there are six devices."""
    same = [constraint(NUMA)]
    assert most(request(count=3), constraints=same) == 1
    assert most(request(count=2), constraints=same) == 3
    assert most(request(mode="All"), constraints=same) == 0


def test_devices_that_must_differ_need_as_many_values() -> None:
    """Two NUMA nodes give two different devices at most."""
    differ = [constraint(None, distinct=NUMA)]
    assert most(request(count=2), constraints=differ) == 3
    assert most(request(count=3), constraints=differ) == 0


def test_the_node_bounds_pods_as_devices_do() -> None:
    """Eight CPUs hold two pods of three."""
    assert most(request(), resources={"cpu": 3}) == 2


@pytest.mark.parametrize("is_one_pod", [True, False])
def test_shares_of_two_kinds_fit_beside_each_other(is_one_pod: bool) -> None:
    """Though no two of either do: what one takes most of, the other takes least of."""
    shared = device(
        "vf", capacity={"gbps": 10, "queues": 10}, allow_multiple_allocations=True
    )
    fast = request("fast", capacity={"gbps": 9, "queues": 1})
    wide = request("wide", capacity={"gbps": 1, "queues": 9})
    pods = [(fast, wide)] if is_one_pod else [(fast,), (wide,)]
    gangs = [
        gang(member(member_claim(*of_pod)), uid=DRAWN_UID.format(number), weight=1)
        for number, of_pod in enumerate(pods)
    ]
    problem = problem_of(snapshot_of({"n": [pool(shared, name="n")]}, gangs))
    demand = Demand(problem.gangs)
    (kind,) = kinds = find_node_kinds(problem, demand.query)
    assert {bound_pods(pod, kind.shape) for pod in demand.member_kinds} == {1}
    assert bound_weight(demand, kinds, 0) == len(pods)
    assert {each.verdict for each in allocate(problem).gangs} == {"allocated"}


@pytest.mark.parametrize(
    ("asked", "bound"),
    [
        # (devices a pod, pods, weight) of gangs; nodes have 6 devices.
        ([(1, 3, None), (1, 3, None)], 6),
        ([(2, 2, None), (2, 2, None)], 6),
        ([(2, 2, 10), (2, 2, 5)], 12),
        ([(3, 2, 7), (1, 1, 5)], 10),
    ],
)
def test_devices_bound_what_gangs_are_worth(
    asked: list[tuple[int, int, int | None]], bound: int
) -> None:
    """The most valuable per device first, the last one in parts."""
    gangs = [
        gang(
            member(member_claim(request(count=devices_of_pod)), count=pods),
            name=f"g{number}",
            uid=DRAWN_UID.format(number),
            weight=weight,
        )
        for number, (devices_of_pod, pods, weight) in enumerate(asked)
    ]
    nodes = {name: [pool(*devices(3), name=name)] for name in ("a", "b")}
    problem = problem_of(snapshot_of(nodes, gangs))
    demand = Demand(problem.gangs)
    kinds = find_node_kinds(problem, demand.query)
    assert bound_weight(demand, kinds, 0) == bound
    assert bound_weight(demand, kinds, 1) == 0
