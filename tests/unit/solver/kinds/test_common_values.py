"""Gangs that no common values can serve are refused by counting, and no others."""

from __future__ import annotations

import random

import pytest

from contracts.allocation import Rule
from contracts.gang import Gang
from contracts.gang_rules import GangConstraint
from solver.allocate import allocate
from solver.decision import Decision, Status
from solver.kinds import common_values
from tests.builders import (
    DRIVER,
    device,
    gang,
    gang_constraint,
    member,
    member_claim,
    pool,
    request,
)
from tests.builders.problems import problem_of, snapshot_of

RAIL, SIDE = f"{DRIVER}/rail", f"{DRIVER}/side"
SQUARE = ((0, 0), (0, 1), (1, 0), (1, 1))


def asked(*constraints: GangConstraint, pods: int, number: int = 0) -> Gang:
    uid = f"00000000-0000-4000-8000-{number:012}"
    made = member(count=pods)
    return gang(made, name=f"g{number}", uid=uid, constraints=constraints)


def decided(*gangs: Gang, nodes: int = 4) -> Decision:
    """Decide on nodes of four devices: each rail on each side."""
    content = [
        device(f"d{n}", attributes={"rail": rail, "side": side})
        for n, (rail, side) in enumerate(SQUARE)
    ]
    pools = {f"n{n}": [pool(*content, name=f"n{n}")] for n in range(nodes)}
    return allocate(problem_of(snapshot_of(pools, gangs)))


def test_values_that_serve_one_by_one_may_not_serve_together() -> None:
    """Eight devices are on each rail and on each side, but four on both."""
    rules = gang_constraint(RAIL), gang_constraint(SIDE)
    decision = decided(asked(*rules, pods=5))
    assert decision.status is Status.OPTIMAL
    assert decision.statistics.models == 0
    (reason,) = decision.gangs[0].reasons
    assert reason.rule is Rule.CONSTRAINT
    assert reason.message == (
        f"no values of {RAIL} and {SIDE} together have devices for its 5 pods"
    )


@pytest.mark.parametrize("pods", [1, 4])
def test_who_has_enough_is_in(pods: int) -> None:
    """All four devices of a rail and a side are to be had."""
    rules = gang_constraint(RAIL), gang_constraint(SIDE)
    (found,) = decided(asked(*rules, pods=pods)).gangs
    assert found.verdict == "allocated"


def test_each_request_has_a_value_of_its_own() -> None:
    """Constraints on different requests leave each other's devices alone."""
    both = member_claim(request("a"), request("b"))
    rules = (
        gang_constraint(RAIL, "worker/gpus/a"),
        gang_constraint(SIDE, "worker/gpus/b"),
    )
    wants = gang(member(both, count=4), constraints=rules)
    (found,) = decided(wants).gangs
    assert found.verdict == "allocated"


def test_many_large_gangs_are_refused_without_a_model() -> None:
    """12 gangs under 16 constraints, each of which could be met by itself."""
    drawn = random.Random(1)
    names = [f"a{n}" for n in range(16)]
    pools = {
        f"n{n}": [
            pool(
                *(
                    device(
                        f"d{d}",
                        attributes={a: "ab"[drawn.random() < 0.1] for a in names},
                    )
                    for d in range(8)
                ),
                name=f"n{n}",
            )
        ]
        for n in range(60)
    }
    rules = tuple(gang_constraint(f"{DRIVER}/{name}") for name in names)
    gangs = [asked(*rules, pods=300, number=n) for n in range(12)]
    decision = allocate(problem_of(snapshot_of(pools, gangs)))
    assert decision.status is Status.OPTIMAL
    assert decision.statistics.models == 0
    assert {found.verdict for found in decision.gangs} == {"none"}


def test_what_was_not_counted_is_left_to_engines(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Beyond its limit counting refuses nobody."""
    monkeypatch.setattr(common_values, "MOST_LOOKED", 0)
    rules = gang_constraint(RAIL), gang_constraint(SIDE)
    decision = decided(asked(*rules, pods=5))
    assert decision.gangs[0].verdict == "none"
    assert decision.statistics.models > 0
