"""What is counted: room that is worth something, and never too few pods a node."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs

from contracts.features import Features
from contracts.gang import Gang, Member
from solver.allocate import allocate
from solver.decision import TierValue
from solver.errors import ExpectedError
from solver.kinds.counting import bound_pods, bound_weight
from solver.kinds.demand import Demand
from solver.kinds.nodes import find_node_kinds
from solver.kinds.slack import count_rooms, value_of_shape
from solver.problem.gangs import MemberPart
from solver.problem.problem import ExpectedPart, Problem
from solver.record import PartCache
from solver.tiers import Tier
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
    sub_request,
)
from tests.builders.models import DRAWN_UID
from tests.builders.problems import (
    PARAMETERS,
    expected_of,
    observe_core,
    problem_of,
    snapshot_of,
)

NUMA = f"{DRIVER}/numa"
ONE = member(member_claim(request()))
EIGHT = {"n": [pool(*devices(8), name="n")]}


SAME_NUMA = constraint(match=NUMA)
OTHER_NUMA = constraint(distinct=NUMA)
FOUR_OR_ONE = (sub_request("four", count=4), sub_request("one"))


def asked(*members: Member, number: int = 1) -> Gang:
    return gang(
        *members, name=f"g{number}", uid=f"00000000-0000-4000-8000-{number:012}"
    )


def problem(
    nodes: dict[str, Any], *gangs: Gang, coming: Member, known: Any = (), **more: Any
) -> Problem:
    snapshot = observe_core(snapshot_of(nodes, gangs), *known)
    return problem_of(snapshot, expected=expected_of(snapshot, coming, **more))


def rooms(made: Problem) -> list[int]:
    """Count the room on each kind of node."""
    demand = Demand(made.gangs, expected=made.expected)
    (coming,) = demand.expected
    kinds = find_node_kinds(made, demand.query)
    return [count_rooms((coming.member,), kind.shape)[0] for kind in kinds]


def later(made: Problem) -> list[TierValue]:
    return [
        tier
        for tier in allocate(made).objective
        if tier.tier in (Tier.LEFTOVER, Tier.NODES)
    ]


def on_numa(*sizes: int) -> dict[str, Any]:
    content = [
        device(f"d{numa}-{i}", attributes={"numa": numa})
        for numa, size in enumerate(sizes)
        for i in range(size)
    ]
    return {"n": [pool(*content, name="n")]}


def claims(*requests: Any, **constraints: Any) -> Member:
    return member(member_claim(*requests, **constraints))


@pytest.mark.parametrize(
    ("nodes", "coming", "room"),
    [
        (EIGHT, claims(request(count=3)), 2),
        # Each request alone: it is an estimate.
        (EIGHT, claims(request(name="a", count=2), request(name="b")), 4),
        # First choices: what would be taken otherwise does not count.
        (EIGHT, claims(request(first_available=FOUR_OR_ONE)), 2),
        # Devices that may not be had together make no room; that they differ, and
        # which, is left out of the estimate.
        (on_numa(3, 3, 1), claims(request(count=2), constraints=(SAME_NUMA,)), 2),
        (on_numa(4), claims(request(count=2), constraints=(OTHER_NUMA,)), 2),
    ],
)
def test_room_is_what_is_free_by_what_is_asked(
    nodes: dict[str, Any], coming: Member, room: int
) -> None:
    """As many pods as devices do for."""
    assert rooms(problem(nodes, coming=coming)) == [room]


def card(slices: int, *parts: int) -> dict[str, Any]:
    """Make a node with one card of so many slices, and parts that draw so many."""
    content = [
        device(f"d{n}", attributes={"numa": n % 2}, consumes={"card": {"slices": part}})
        for n, part in enumerate(parts)
    ]
    return {
        "n": [pool(*content, name="n", counters=[counter_set("card", slices=slices)])]
    }


@pytest.mark.parametrize(
    ("nodes", "coming", "room"),
    [
        # Four could be had, each for itself; the counter suffices for three of them.
        (card(3, 1, 1, 1, 1), claims(request()), 3),
        # A part that draws more than there is is no room.
        (card(3, 1, 4), claims(request()), 1),
        # Of those that draw the same, value by value.
        (
            card(3, 1, 1, 1, 1),
            claims(request(count=2), constraints=(SAME_NUMA,)),
            1,
        ),
    ],
)
def test_parts_are_room_as_far_as_their_counters_suffice(
    nodes: dict[str, Any], coming: Member, room: int
) -> None:
    """Those that draw different amounts do not compete: it is an estimate."""
    assert rooms(problem(nodes, coming=coming)) == [room]


def test_a_part_that_is_taken_costs_the_room_of_what_it_excludes() -> None:
    """Of three slices a part of one leaves no whole card, and two parts of one."""
    one = device("one", consumes={"card": {"slices": 1}}, attributes={"size": "one"})
    two = device("two", consumes={"card": {"slices": 2}}, attributes={"size": "two"})
    all_of = device("all", consumes={"card": {"slices": 3}}, attributes={"size": "all"})
    nodes = {
        "n": [
            pool(one, two, all_of, name="n", counters=[counter_set("card", slices=3)])
        ]
    }
    small = request(select=[f'device.attributes["{DRIVER}"].size == "one"'])
    lost, _ = later(problem(nodes, asked(claims(small)), coming=claims(request())))
    assert (lost.value, lost.bound) == (2 * 1000, 2 * 1000)


def test_a_device_of_several_values_is_counted_once() -> None:
    """It cannot serve two pods."""
    links = {"links": (1, 2, 3)}
    content = [device(f"d{i}", attributes=links) for i in range(2)]
    one = member_claim(request(), constraints=(constraint(f"{DRIVER}/links"),))
    nodes = {"n": [pool(*content, name="n")]}
    snapshot = snapshot_of(nodes, [])
    listing = structs.replace(PARAMETERS, features=Features(list_type_attributes=True))
    expected = expected_of(snapshot, member(one))
    assert rooms(problem_of(snapshot, listing, expected)) == [2]


@pytest.mark.parametrize(
    ("known", "coming", "room"),
    [
        # Devices without CPU are no room.
        ({"allocatable": {"cpu": 9, "pods": 100}}, {"resources": {"cpu": 4}}, 2),
        # Room is counted on nodes that the pod could be on.
        ({"labels": {"zone": "west"}}, {"node_selector": {"zone": "east"}}, 0),
    ],
)
def test_room_is_bounded_by_the_node(
    known: dict[str, Any], coming: dict[str, Any], room: int
) -> None:
    """By its amounts, and by who may be there."""
    pods = member(member_claim(request()), **coming)
    made = problem(EIGHT, asked(ONE), coming=pods, known=[node("n", **known)])
    assert rooms(made) == [room]


def test_amounts_bound_room_for_requests_that_share_their_devices() -> None:
    """Two requests of a pod count the same devices; its CPUs bound it before them."""
    half = node("n", allocatable={"cpu": 8, "pods": 100})
    coming = member(
        member_claim(request(name="a"), request(name="b")), resources={"cpu": 2}
    )
    assert rooms(problem(EIGHT, coming=coming, known=[half])) == [4]


def test_what_nothing_bounds_has_no_room() -> None:
    """Admin access takes nothing, so it loses nothing."""
    admin = member(member_claim(request(admin_access=True)))
    assert rooms(problem(EIGHT, asked(ONE), coming=admin)) == [0]


SHARED = {
    "n": [
        pool(
            device("d", capacity={"memory": 8}, allow_multiple_allocations=True),
            name="n",
        )
    ]
}


@pytest.mark.parametrize(
    ("nodes", "coming", "size", "worth"),
    [
        (EIGHT, claims(request(count=2)), 2000, 8000),
        (EIGHT, claims(request(count=2)), 300, 1200),
        (SHARED, claims(request(capacity={"memory": 2})), 300, 1200 + 4 * 1000),
    ],
)
def test_first_room_for_shares_of_a_device_counts_five_times(
    nodes: dict[str, Any], coming: Member, size: int, worth: int
) -> None:
    """Room for whole devices and partitions is worth the same wherever it is."""
    made = problem(nodes, coming=coming, weight=3, size=size)
    demand = Demand(made.gangs, expected=made.expected)
    (kind,) = find_node_kinds(made, demand.query)
    assert value_of_shape(demand.expected, kind.shape) == 3 * worth


def test_lost_is_what_room_was_worth_before() -> None:
    """Less what it is worth afterwards, on the nodes touched."""
    pair = member(member_claim(request(count=2)))
    made = problem(EIGHT, asked(ONE), coming=pair, size=2000, weight=3)
    lost, nodes = later(made)
    assert (lost.tier, lost.value) == (Tier.LEFTOVER, 3 * 2000)
    assert (nodes.tier, nodes.value) == (Tier.NODES, 1)


def test_lost_includes_what_the_pods_need_of_the_node() -> None:
    """CPU that is gone is room that is gone."""
    known = node("n", allocatable={"cpu": 8, "pods": 100})
    pod = member(member_claim(request()), resources={"cpu": 5})
    coming = member(member_claim(request()), resources={"cpu": 1})
    lost, _ = later(problem(EIGHT, asked(pod), coming=coming, known=[known]))
    assert lost.value == 5 * 1000


def test_nothing_is_lost_where_nothing_fits() -> None:
    """And that is proven without a model."""
    made = problem(EIGHT, asked(member(member_claim(request(count=9)))), coming=ONE)
    assert [(t.tier, t.value, t.bound) for t in later(made)] == [
        (Tier.LEFTOVER, 0, 0),
        (Tier.NODES, 0, 0),
    ]


def test_tiers_past_the_last_one_are_not_reported() -> None:
    """The Problem says how far an answer goes."""
    made = problem(EIGHT, asked(ONE), coming=ONE)
    reported = [Tier.GANGS, Tier.LEFTOVER, Tier.NODES]
    for last in Tier:
        limited = structs.replace(made.parameters, last_tier=last)
        again = Problem(made.pages, made.gangs, made.selectors, limited, made.expected)
        assert [tier.tier for tier in allocate(again).objective] == [
            tier for tier in reported if tier.place <= last.place
        ]


def test_what_is_expected_is_recorded_only_where_there_is_some() -> None:
    """So that older records keep their bytes."""
    made = problem(EIGHT, asked(ONE), coming=ONE)
    cache = PartCache()
    again = cache.problem(made.data, {page.sha: page.data for page in made.pages})
    assert again.expected == made.expected
    assert again.hash == made.hash
    plain = problem_of(snapshot_of(EIGHT, [asked(ONE)]), PARAMETERS)
    assert b"expected" not in plain.data


@pytest.mark.parametrize(("weight", "size"), [(-1, 1000), (1, -1), (10_001, 1)])
def test_numbers_out_of_range_are_no_expected_kind(weight: int, size: int) -> None:
    """Sums of them must fit 64 bits."""
    with pytest.raises(ExpectedError):
        ExpectedPart(member=MemberPart(name="m"), weight=weight, size=size)


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
