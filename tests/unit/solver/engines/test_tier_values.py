"""What an answer is worth, tier by tier, by where the pods went."""

from __future__ import annotations

from typing import Any

from contracts.gang import Member
from contracts.ids import DeviceID, DeviceName, DriverName, NodeName, PoolName
from solver.decision import Status, TierValue
from solver.engines.goals import EngineResult
from solver.engines.tier_values import tier_values_of
from solver.kinds.slack import value_of_shape
from solver.placement import GangPlacement, PodPlacement
from solver.tiers import Tier
from tests.builders import DRIVER, gang, member, member_claim, request, sub_request
from tests.builders.patterns import demand_and_kinds, nodes_of_sizes

PAIR = member(member_claim(request(count=2)))
EITHER = member(
    member_claim(
        request(first_available=[sub_request("two", count=2), sub_request("one")])
    ),
    count=2,
)
UID = "00000000-0000-4000-8000-{:012}"


def pod_on(node: str, *devices: int, alternative: int = 0) -> PodPlacement:
    """Place a pod of one request on these devices of a node."""
    return PodPlacement(
        NodeName(node),
        (
            tuple(
                DeviceID(DriverName(DRIVER), PoolName(node), DeviceName(f"gpu-{i}"))
                for i in devices
            ),
        ),
        (alternative,),
    )


def worth(
    pods: Member,
    placed: tuple[PodPlacement, ...],
    bounds: dict[Any, int | None] | None = None,
    *,
    expected: tuple[Member, ...] = (),
    priority: int = 0,
) -> dict[Tier, TierValue]:
    """Compute the values of one gang's placement on nodes of 4 and 3 devices."""
    demand, kinds = demand_and_kinds(
        nodes_of_sizes(4, 3), gang(pods, priority=priority), expected=expected
    )
    placements = (GangPlacement(0, (placed,)),) if placed else ()
    result = EngineResult(
        status=Status.OPTIMAL, placements=placements, bounds=bounds or {}
    )
    values = tier_values_of(demand, demand, kinds, result, Tier.NODES)
    return {value.tier: value for value in values}


def test_a_gang_that_is_in_counts_its_weight_at_its_priority() -> None:
    """What is left out of the bounds was reached."""
    pods = member(count=3)
    placed = tuple(pod_on("n0", index) for index in range(3))
    values = worth(pods, placed, priority=7)
    assert values[Tier.GANGS] == TierValue(
        tier=Tier.GANGS, priority=7, value=3, bound=3
    )


def test_each_priority_counts_its_own_gangs() -> None:
    """A gang of low priority makes up for none of high priority."""
    gangs = [
        gang(member(), name=f"g{priority}", uid=UID.format(priority), priority=priority)
        for priority in (1, 7)
    ]
    demand, kinds = demand_and_kinds(nodes_of_sizes(4), *gangs)
    low = next(i for i, each in enumerate(demand.gangs) if each.priority == 1)
    placements = (GangPlacement(low, ((pod_on("n0", 0),),)),)
    result = EngineResult(status=Status.FEASIBLE, placements=placements)
    values = tier_values_of(demand, demand, kinds, result, Tier.GANGS)
    assert [(value.priority, value.value) for value in values] == [(7, 0), (1, 1)]


def test_ranks_are_those_of_the_alternatives_taken() -> None:
    """Over all pods."""
    placed = (pod_on("n0", 0, 1), pod_on("n0", 2, alternative=1))
    values = worth(EITHER, placed, {(Tier.ALTERNATIVES, None): 1})
    assert values[Tier.ALTERNATIVES] == TierValue(
        tier=Tier.ALTERNATIVES, value=1, bound=1
    )


def test_nodes_are_counted_once_and_a_bound_only_if_it_was_proven() -> None:
    """Two pods on one node touch one."""
    pods = member(count=3)
    placed = (pod_on("n0", 0), pod_on("n0", 1), pod_on("n1", 0))
    assert worth(pods, placed)[Tier.NODES] == TierValue(
        tier=Tier.NODES, value=2, bound=None
    )
    proven = worth(pods, placed, {(Tier.NODES, None): 1})
    assert proven[Tier.NODES].bound == 1


def test_slack_is_what_the_touched_nodes_are_worth_less() -> None:
    """An odd device is no room for a pair; one of four is."""
    demand, kinds = demand_and_kinds(nodes_of_sizes(4, 2), gang(), expected=[PAIR])
    shapes = {view.name: kind.shape for kind in kinds for view in kind.nodes}
    pair_lost = value_of_shape(demand.expected, shapes[NodeName("n0")]) - (
        value_of_shape(demand.expected, shapes[NodeName("n1")])
    )
    odd = worth(member(), (pod_on("n1", 0),), expected=(PAIR,))
    even = worth(member(), (pod_on("n0", 0),), expected=(PAIR,))
    assert odd[Tier.LEFTOVER].value == 0
    assert even[Tier.LEFTOVER].value == pair_lost > 0


def test_nothing_is_lost_where_nothing_is_placed() -> None:
    """That needs no proof."""
    values = worth(member(), (), expected=(PAIR,))
    assert (values[Tier.LEFTOVER].value, values[Tier.LEFTOVER].bound) == (0, 0)
    assert (values[Tier.NODES].value, values[Tier.NODES].bound) == (0, 0)
