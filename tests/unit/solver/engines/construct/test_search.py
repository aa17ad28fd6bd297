"""The best of several orders, what is kept, and when it ends."""

from __future__ import annotations

import pytest

from contracts.gang import Gang
from solver.decision import Status
from solver.engines.construct import search
from solver.engines.construct.floor import complete, raise_to, value_of
from solver.engines.construct.search import Constructed, construct, find_unknown
from solver.engines.goals import EngineResult, Goal
from solver.kinds.demand import Demand
from solver.kinds.nodes import find_node_kinds
from solver.kinds.sharing import SharedClaimLayouts
from solver.problem.problem import Problem
from solver.tiers import Tier
from tests.builders import gang, member, member_claim, request, topology_rule
from tests.builders.patterns import demand_and_kinds, nodes_of_sizes
from tests.builders.sharing import channels_of, fabric, shared_channel, workers

UID = "00000000-0000-4000-8000-{:012}"
GPU = member_claim(request("gpu", device_class="gpus"), name="gpu")


def of(number: int, pods: int, devices: int, priority: int = 0) -> Gang:
    """Make a gang of equal pods."""
    asked = member(member_claim(request(count=devices)), count=pods)
    return gang(asked, name=f"g{number}", uid=UID.format(number), priority=priority)


def test_the_order_that_comes_to_most_counts() -> None:
    """By age the small one is in, and no room is left for the large one."""
    gangs = [of(1, 1, 1), of(2, 2, 4), of(3, 1, 1)]
    found = construct(*demand_and_kinds(nodes_of_sizes(4, 4), *gangs))
    assert found.value == (8, 0)
    assert [item.gang for item in found.placements] == [1]


def test_who_found_no_place_goes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """No order but the age is tried: the rest is learnt from who is left out."""
    monkeypatch.setattr(search, "ORDERS", (search.order_by_age,))
    gangs = [of(1, 1, 1), of(2, 2, 4)]
    demand, kinds = demand_and_kinds(nodes_of_sizes(4, 4), *gangs)
    assert construct(demand, kinds).value == (8, 0)
    monkeypatch.setattr(search, "MOST_TURNS", 0)
    assert construct(demand, kinds).value == (1, 0)


def test_without_steps_little_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is placed is the same each time: steps are counted, not time."""
    gangs = [of(number, 1, 1) for number in range(40)]
    demand, kinds = demand_and_kinds(nodes_of_sizes(8, 8), *gangs)
    monkeypatch.setattr(search, "MOST_STEPS", 10)
    monkeypatch.setattr(search, "REPEAT_STEPS", 10)
    found = construct(demand, kinds)
    assert found == construct(demand, kinds)
    assert 0 < found.value[0] < 16


def test_gangs_that_are_kept_stay() -> None:
    """Others come on what is left, from whatever node it was."""
    demand, kinds = demand_and_kinds(nodes_of_sizes(4, 4), of(1, 1, 3), of(2, 1, 3))
    first = construct(demand, kinds)
    kept = first.placements[1:]
    found = construct(demand, kinds, kept)
    assert found.placements[1:] == kept
    assert value_of(demand, found.placements) == (6, 0)


def test_more_gangs_are_added_to_an_answer() -> None:
    """What is proven of the first priority stays, and its bound holds."""
    gangs = [of(1, 1, 3, priority=1), of(2, 1, 3), of(3, 1, 1)]
    demand, kinds = demand_and_kinds(nodes_of_sizes(4, 4), *gangs)
    urgent = construct(demand, kinds).placements[:1]
    bounds: dict[Goal, int | None] = {(Tier.GANGS, 1): 3, (Tier.GANGS, 0): None}
    answer = EngineResult(status=Status.FEASIBLE, placements=urgent, bounds=bounds)
    better = complete(demand, kinds, answer, Tier.NODES)
    assert value_of(demand, better.placements) == (3, 4, 0, 0)
    assert better.bounds[Tier.GANGS, 1] == 3
    assert better.bounds[Tier.GANGS, 0] == 4


def test_a_proven_answer_is_never_replaced() -> None:
    """Nor is one that is worth as much."""
    demand, kinds = demand_and_kinds(nodes_of_sizes(4), of(1, 1, 3))
    found = construct(demand, kinds)
    nothing = EngineResult(status=Status.OPTIMAL)
    assert raise_to(demand, nothing, found, Tier.NODES) is nothing
    same = EngineResult(status=Status.FEASIBLE, placements=found.placements)
    assert raise_to(demand, same, found, Tier.NODES) is same
    assert raise_to(demand, same, Constructed(), Tier.NODES) is same


def shared(problem: Problem) -> tuple[int, frozenset[int]]:
    """Count the gangs that are in, and list those whose rules are not known."""
    decided = SharedClaimLayouts(problem).problem
    demand = Demand(decided.gangs)
    kinds = find_node_kinds(decided, demand.query)
    return len(construct(demand, kinds).placements), find_unknown(demand)


def test_pods_are_where_the_claim_that_they_share_is_reached() -> None:
    """Three of one rack are one too many, until all nodes see the channel."""
    assert shared(fabric("aab", workers(2))) == (1, frozenset())
    assert shared(fabric("aab", workers(3))) == (0, frozenset())
    everywhere = [channels_of("x", all_nodes=True)]
    assert shared(fabric("aab", workers(3), channels=everywhere)) == (1, frozenset())


def test_rules_that_are_not_known_leave_the_gang_out() -> None:
    """All devices depend on the node; so do domains of what is shared."""
    asked = request("channel", device_class="channels", mode="All")
    whole = workers(2, GPU, shared_channel(asked=asked))
    assert shared(fabric("aab", whole)) == (0, frozenset({0}))
    by_device = workers(2, topology=(topology_rule("attribute:gpu.example.com/index"),))
    assert shared(fabric("aab", by_device)) == (0, frozenset({0}))
