"""The judge counts what room an answer loses, and reads devices for it."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from msgspec import structs

from contracts.device import Device
from contracts.ids import NodeName
from solver.allocate import allocate
from solver.decision import Decision, TierValue
from solver.judge.facts import Facts
from solver.judge.rules import judge
from solver.judge.slack_devices import DeviceLooks, SeenDevice
from solver.judge.slack_kinds import NumberedKinds
from solver.problem.problem import Problem
from solver.tiers import Tier
from tests.builders import (
    DRIVER,
    constraint,
    device,
    devices,
    gang,
    member,
    member_claim,
    pool,
    request,
)
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


A100 = f'device.attributes["{DRIVER}"].model == "A100"'
ROOT = f"{DRIVER}/root"


def beside_expected(
    *contents: Device, matched: bool = False, count: int = 1
) -> Problem:
    """One node with these devices; a pod comes, and pods for A100s are expected."""
    snapshot = snapshot_of(
        {"a": [pool(*contents, name="a")]}, [gang(member(member_claim(request())))]
    )
    same_root = (constraint(match=ROOT),) if matched else ()
    asked = request(count=count, select=(A100,))
    coming = member(member_claim(asked, constraints=same_root))
    return problem_of(snapshot, expected=expected_of(snapshot, coming, size=1000))


def seen_in(asked: Problem) -> list[SeenDevice]:
    """List the devices of the node as they are seen."""
    kinds = NumberedKinds(asked.expected)
    facts = Facts(asked)
    looks = DeviceLooks(facts, kinds.asks.things, kinds.comparisons.things)
    return looks.on(NodeName("a"))


def cards(roots: Iterable[str], model: str = "A100") -> list[Device]:
    """A card on each PCIe root, with a serial number."""
    return [
        device(
            f"{model}-{index}",
            attributes={"model": model, "root": root, "serial": f"{model}{index}"},
        )
        for index, root in enumerate(roots)
    ]


def test_what_no_expected_pod_reads_makes_no_look() -> None:
    """Serial numbers and roots differ, and nobody asks for them."""
    assert {seen.look for seen in seen_in(beside_expected(*cards("xyz")))} == {0}


def test_what_a_selector_reads_makes_a_look() -> None:
    """A100s are one, H100s another."""
    seen = seen_in(beside_expected(*cards("xx"), *cards("xx", "H100")))
    assert [each.look for each in seen] == [0, 0, 1, 1]


def test_what_is_compared_is_kept_beside_the_look() -> None:
    """Roots differ; looks do not."""
    seen = seen_in(beside_expected(*cards("xyx"), matched=True))
    assert [each.look for each in seen] == [0, 0, 0]
    assert seen[0].values == seen[2].values != seen[1].values


@pytest.mark.parametrize(
    ("roots", "lost"),
    [
        pytest.param("xxyy", 1000, id="a pair is broken"),
        pytest.param("xxxyy", 0, id="the odd one is taken"),
        pytest.param("xyz", 0, id="there was no pair"),
    ],
)
def test_pairs_of_one_root_are_counted_root_by_root(roots: str, lost: int) -> None:
    """Pods of two A100s on one root; whoever comes takes one where least is lost."""
    asked = beside_expected(*cards(roots), matched=True, count=2)
    decision = allocate(asked)
    assert judge(asked, decision) == ()
    (value,) = [t.value for t in decision.objective if t.tier is Tier.LEFTOVER]
    assert value == lost
