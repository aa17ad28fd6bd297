"""One pod after the other, each where what is left keeps most of its value."""

from __future__ import annotations

from collections import Counter

import pytest

from contracts.gang import Gang, Member
from solver.engines.greedy import states
from solver.engines.greedy.search import GreedySearch
from solver.kinds.demand import Demand
from solver.kinds.nodes import find_node_kinds
from solver.placement import GangPlacement
from tests.builders import (
    device,
    gang,
    member,
    member_claim,
    node,
    pool,
    request,
    sub_request,
)
from tests.builders.models import DRAWN_UID
from tests.builders.patterns import demand_and_kinds, nodes_of_sizes
from tests.builders.problems import (
    PARAMETERS,
    expected_of,
    observe_core,
    problem_of,
    snapshot_of,
)

EIGHT = member(member_claim(request(count=8)))
FOUR = member(member_claim(request(count=4)))


def of_pods(count: int, devices: int, number: int = 1) -> Gang:
    """Ask for some pods of so many devices each."""
    pods = member(member_claim(request(count=devices)), count=count)
    return gang(pods, name=f"g{number}", uid=DRAWN_UID.format(number))


def nodes_used(placements: tuple[GangPlacement, ...]) -> Counter[str]:
    """Count the pods on each node."""
    return Counter(
        str(pod.node)
        for placement in placements
        for pods in placement.members
        for pod in pods
    )


def test_single_pods_break_one_whole_node() -> None:
    """What is left on the first one is of no use to whole-node pods any more."""
    gangs = [of_pods(1, 1, number) for number in range(6)]
    demand, kinds = demand_and_kinds(
        nodes_of_sizes(8, 8, 8, 8), *gangs, expected=[EIGHT], size=8000
    )
    placements = GreedySearch(demand, kinds).run(range(6))
    assert nodes_used(placements) == {"n0": 6}


def test_once_too_much_was_listed_pods_go_where_they_have_room(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The best place may be missed, but none that is there."""
    monkeypatch.setattr(states, "MOST_WORK", -1)
    gangs = [of_pods(1, 3, number) for number in range(4)]
    demand, kinds = demand_and_kinds(
        nodes_of_sizes(2, 6, 3, 3), *gangs, expected=[EIGHT], size=8000
    )
    placements = GreedySearch(demand, kinds).run(range(4))
    assert nodes_used(placements) == {"n1": 2, "n2": 1, "n3": 1}


def test_a_partly_used_node_goes_first() -> None:
    """The node of three devices can hold no pod of four anyway."""
    demand, kinds = demand_and_kinds(
        nodes_of_sizes(4, 3, 8), of_pods(3, 1), expected=[FOUR], size=4000
    )
    assert nodes_used(GreedySearch(demand, kinds).run([0])) == {"n1": 3}


def test_a_gang_that_does_not_fit_leaves_all_as_it_was() -> None:
    """Its first pods go back, and the next gang has their places."""
    demand, kinds = demand_and_kinds(
        nodes_of_sizes(4, 4),
        of_pods(3, 3, 1),
        of_pods(2, 4, 2),
        expected=[EIGHT],
    )
    (placement,) = GreedySearch(demand, kinds).run([0, 1])
    assert placement.gang == 1
    assert nodes_used((placement,)) == {"n0": 1, "n1": 1}


def test_no_device_is_given_twice() -> None:
    """Pods of several gangs share nodes; each has devices of its own."""
    gangs = [of_pods(2, size, size) for size in (1, 2, 3)]
    demand, kinds = demand_and_kinds(nodes_of_sizes(8, 4), *gangs, expected=[FOUR])
    placements = GreedySearch(demand, kinds).run([2, 1, 0])
    taken = [
        name
        for placement in placements
        for pods in placement.members
        for pod in pods
        for devices in pod.devices
        for name in devices
    ]
    assert len(taken) == len(set(taken)) == 12


def test_the_better_alternative_goes_before_what_is_left() -> None:
    """A first choice is taken even where it breaks a whole node."""
    either = request(
        first_available=(sub_request("two", count=2), sub_request("one", count=1))
    )
    asked = gang(member(member_claim(either)), uid=DRAWN_UID.format(1))
    demand, kinds = demand_and_kinds(
        nodes_of_sizes(1, 8), asked, expected=[EIGHT], size=8000
    )
    (placement,) = GreedySearch(demand, kinds).run([0])
    ((pod,),) = placement.members
    assert (pod.node, pod.alternatives) == ("n1", (0,))


def test_what_the_node_has_left_counts() -> None:
    """A pod without room for its CPU goes elsewhere; CPU that others need is kept."""
    sizes = {"n0": 2, "n1": 9, "n2": 4}
    known = [
        node(name, allocatable={"cpu": cpu, "pods": 100}) for name, cpu in sizes.items()
    ]
    asked = gang(
        member(member_claim(request()), resources={"cpu": 3}), uid=DRAWN_UID.format(1)
    )
    snapshot = observe_core(snapshot_of(nodes_of_sizes(8, 8, 8), [asked]), *known)
    coming: Member = member(member_claim(request()), resources={"cpu": 9})
    problem = problem_of(snapshot, PARAMETERS, expected_of(snapshot, coming))
    demand = Demand(problem.gangs, expected=problem.expected)
    kinds = find_node_kinds(problem, demand.query)
    assert nodes_used(GreedySearch(demand, kinds).run([0])) == {"n2": 1}


def test_shares_go_where_a_part_is_left() -> None:
    """Pods that take parts of devices fill one before they break the next."""
    shared = {
        name: [
            pool(
                device("a", capacity={"memory": "8"}, allow_multiple_allocations=True),
                device("b", capacity={"memory": "8"}, allow_multiple_allocations=True),
                name=name,
            )
        ]
        for name in ("n0", "n1")
    }
    part = member_claim(request(capacity={"memory": "3"}))
    gangs = [
        gang(member(part), name=f"g{i}", uid=DRAWN_UID.format(i)) for i in range(4)
    ]
    whole = member(member_claim(request(count=2)))
    demand, kinds = demand_and_kinds(shared, *gangs, expected=[whole], size=2000)
    assert nodes_used(GreedySearch(demand, kinds).run(range(4))) == {"n0": 4}
