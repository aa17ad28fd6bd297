"""The direct model pursues what is left over and nodes touched, after all else."""

from __future__ import annotations

from typing import Any

import pytest

from contracts.gang import Member
from solver.decision import Status, TierValue
from solver.engines.choose import DIRECT
from solver.engines.direct import search
from solver.engines.solve import Answer, answer
from solver.problem.problem import MAX_SIZE, MAX_WEIGHT
from solver.tiers import Tier
from tests.builders import device, devices, gang, member, member_claim, pool, request
from tests.builders.problems import PARAMETERS, expected_of, problem_of, snapshot_of

PAIR = member(member_claim(request(count=2)))


def decided(sizes: dict[str, int], pods: Member, **expected: Any) -> Answer:
    nodes = {n: [pool(*devices(size), name=n)] for n, size in sizes.items()}
    snapshot = snapshot_of(nodes, [gang(pods)])
    coming = expected_of(snapshot, PAIR, **expected) if expected else ()
    return answer(problem_of(snapshot, PARAMETERS, coming), DIRECT)


def later(found: Answer) -> list[TierValue]:
    return [tier for tier in found.tiers if tier.tier in (Tier.LEFTOVER, Tier.NODES)]


def nodes_of(found: Answer) -> set[str]:
    return {
        p.node for item in found.placements for places in item.members for p in places
    }


def test_a_pod_goes_where_no_room_is_lost() -> None:
    """Of 4 and 3 devices, one of the 3 is of no use to a pair."""
    found = decided({"a": 4, "b": 3}, member(member_claim(request())), size=2000)
    assert nodes_of(found) == {"b"}
    assert [(t.tier, t.value, t.bound) for t in later(found)] == [
        (Tier.LEFTOVER, 0, 0),
        (Tier.NODES, 1, 1),
    ]


def test_what_is_left_over_comes_before_nodes_touched() -> None:
    """The odd device of each node costs nothing; two of one node cost a pair."""
    found = decided(
        {"a": 3, "b": 3}, member(member_claim(request()), count=2), size=2000
    )
    assert nodes_of(found) == {"a", "b"}
    assert [(t.tier, t.value, t.bound) for t in later(found)] == [
        (Tier.LEFTOVER, 0, 0),
        (Tier.NODES, 2, 2),
    ]


def test_pods_stay_together_where_nothing_is_expected() -> None:
    """Then only the nodes touched count."""
    found = decided(
        {"a": 1, "b": 1, "c": 2, "d": 1}, member(member_claim(request()), count=2)
    )
    assert nodes_of(found) == {"c"}
    assert later(found) == [TierValue(tier=Tier.NODES, value=1, bound=1)]


def test_as_few_nodes_as_counting_allows_are_proven_without_a_complete_model() -> None:
    """The first small model is enough."""
    sizes = {f"n{number:03}": 8 - number % 3 for number in range(200)}
    found = decided(sizes, member(member_claim(request(count=4)), count=1))
    assert later(found) == [TierValue(tier=Tier.NODES, value=1, bound=1)]
    assert found.statistics.models == 1


def test_values_past_what_the_model_can_count_are_true_but_not_proven() -> None:
    """A share of a capacity without end: more room than 53 bits hold values of."""
    endless = device("d", capacity={"memory": "8E"}, allow_multiple_allocations=True)
    asked = request(capacity={"memory": "4E"})
    snapshot = snapshot_of(
        {"n": [pool(endless, name="n")]}, [gang(member(member_claim(asked)))]
    )
    coming = member(member_claim(request(capacity={"memory": "1"})))
    expected = expected_of(snapshot, coming, weight=MAX_WEIGHT, size=MAX_SIZE)
    found = answer(problem_of(snapshot, PARAMETERS, expected), DIRECT)
    left, touched = later(found)
    assert (left.tier, left.bound) == (Tier.LEFTOVER, None)
    assert (touched.value, touched.bound) == (1, None)


def test_a_model_that_is_too_large_is_not_built(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """So that a batch of many kinds takes neither time nor memory.

    What is constructed is the answer, and nothing is bound but by all gangs.
    """
    monkeypatch.setattr(search, "MOST_KINDS", 1)
    found = decided({"a": 1, "b": 1}, member(member_claim(request()), count=2))
    assert found.status is Status.FEASIBLE
    assert found.statistics.models == 0
    assert [(tier.value, tier.bound) for tier in found.tiers] == [(2, 2), (2, None)]
