"""The judge counts what is left over and the nodes touched on its own."""

from __future__ import annotations

import pytest
from msgspec import structs

from solver.allocate import allocate
from solver.decision import Decision, TierValue
from solver.judge.rules import judge
from solver.problem.problem import Problem
from solver.tiers import Tier
from tests.builders import device, devices, gang, member, member_claim, pool, request
from tests.builders.problems import expected_of, problem_of, snapshot_of

LEFT, TOUCHED = Tier.LEFTOVER, Tier.NODES


def problem(*, shared: bool = False) -> Problem:
    """Two nodes of four devices, or of one that may be shared; pods of one device."""
    each = {
        node: [
            pool(
                *devices(4)
                if not shared
                else [
                    device(
                        "d", capacity={"memory": "8"}, allow_multiple_allocations=True
                    )
                ],
                name=node,
            )
        ]
        for node in ("a", "b")
    }
    one = member_claim(request(capacity={"memory": "3"}) if shared else request())
    asked = gang(member(one, count=2))
    snapshot = snapshot_of(each, [asked])
    pair = request(capacity={"memory": "2"}) if shared else request(count=2)
    coming = member(member_claim(pair))
    return problem_of(snapshot, expected=expected_of(snapshot, coming, size=2000))


def changed(decision: Decision, tier: Tier, **fields: int) -> Decision:
    return structs.replace(
        decision,
        objective=tuple(
            structs.replace(item, **fields) if item.tier == tier else item
            for item in decision.objective
        ),
    )


def tier(decision: Decision, number: Tier) -> TierValue:
    (found,) = (item for item in decision.objective if item.tier == number)
    return found


@pytest.mark.parametrize("shared", [False, True])
def test_an_honest_value_passes(shared: bool) -> None:  # a parameter
    """The judge counts what the engine counted."""
    asked = problem(shared=shared)
    assert judge(asked, allocate(asked)) == ()


def test_two_pods_on_one_node_cost_room_for_one() -> None:
    """Room for two pairs on each node; one pair less on one of them."""
    asked = problem()
    assert tier(allocate(asked), LEFT).value == 2000


def test_shares_cost_room_for_as_many_as_they_consume() -> None:
    """Eight hold four shares of two; after one of three they hold two."""
    asked = problem(shared=True)
    found = tier(allocate(asked), LEFT)
    assert found.value in (2 * 2 * 2000, 3 * 2000)


@pytest.mark.parametrize("number", [LEFT, TOUCHED])
@pytest.mark.parametrize("change", [-1, 1])
def test_a_later_value_that_is_not_true_is_named(number: Tier, change: int) -> None:
    """Slack value and nodes touched are counted anew."""
    asked = problem()
    decision = allocate(asked)
    lie = changed(decision, number, value=tier(decision, number).value + change)
    assert any(item.startswith("valueIsTrue") for item in judge(asked, lie))


@pytest.mark.parametrize("number", [LEFT, TOUCHED])
def test_a_later_tier_that_is_missing_is_named(number: Tier) -> None:
    """Every tier that the Problem asks for is answered."""
    asked = problem()
    decision = allocate(asked)
    rest = tuple(item for item in decision.objective if item.tier != number)
    missing = structs.replace(decision, objective=rest)
    assert any(item.startswith("valueIsTrue") for item in judge(asked, missing))


@pytest.mark.parametrize("number", [LEFT, TOUCHED])
def test_a_bound_above_what_was_lost_is_named(number: Tier) -> None:
    """Nobody can prove that more is lost than was."""
    asked = problem()
    decision = allocate(asked)
    lie = changed(decision, number, bound=tier(decision, number).value + 1)
    assert any("bound" in item for item in judge(asked, lie))
