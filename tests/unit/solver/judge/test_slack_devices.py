"""Devices that look alike to expected pods have one look, and no others."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from contracts.device import Device
from contracts.ids import NodeName
from solver.allocate import allocate
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
    gang,
    member,
    member_claim,
    pool,
    request,
)
from tests.builders.problems import expected_of, problem_of, snapshot_of

A100 = f'device.attributes["{DRIVER}"].model == "A100"'
ROOT = f"{DRIVER}/root"


def problem(*contents: Device, matched: bool = False, count: int = 1) -> Problem:
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
    assert {seen.look for seen in seen_in(problem(*cards("xyz")))} == {0}


def test_what_a_selector_reads_makes_a_look() -> None:
    """A100s are one, H100s another."""
    seen = seen_in(problem(*cards("xx"), *cards("xx", "H100")))
    assert [each.look for each in seen] == [0, 0, 1, 1]


def test_what_is_compared_is_kept_beside_the_look() -> None:
    """Roots differ; looks do not."""
    seen = seen_in(problem(*cards("xyx"), matched=True))
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
    asked = problem(*cards(roots), matched=True, count=2)
    decision = allocate(asked)
    assert judge(asked, decision) == ()
    (value,) = [t.value for t in decision.objective if t.tier is Tier.LEFTOVER]
    assert value == lost
