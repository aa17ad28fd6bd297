"""Of an expected pod only what bounds room is counted."""

from __future__ import annotations

from typing import Any

import pytest

from contracts.gang import Member
from solver.problem.gangs import ClaimPart
from solver.problem.problem import keep_countable
from tests.builders import (
    DRIVER,
    constraint,
    member,
    member_claim,
    request,
    sub_request,
)
from tests.builders.problems import expected_of, snapshot_of


def counted_claim(pod: Member) -> ClaimPart:
    """Leave of a pod's one claim what is counted."""
    (part,) = expected_of(snapshot_of({}), pod)
    (claim,) = keep_countable(part.member).claims
    return claim


@pytest.mark.parametrize(
    "unbounded", [{"mode": "All"}, {"admin_access": True}], ids=["all", "admin"]
)
def test_a_request_that_bounds_nothing_is_left_out(unbounded: dict[str, Any]) -> None:
    """All devices, or devices that others keep, say nothing of how many fit."""
    pod = member(member_claim(request("one"), request("other", **unbounded)))
    assert [r.name for r in counted_claim(pod).requests] == ["one"]


def test_only_the_first_choice_is_counted() -> None:
    """Room is counted by what would be taken first."""
    either = request(first_available=[sub_request("a", count=2), sub_request("b")])
    (found,) = counted_claim(member(member_claim(either))).requests
    assert [alternative.count for alternative in found.alternatives] == [2]


def test_constraints_that_devices_differ_are_left_out() -> None:
    """It is an estimate: only equal values keep devices apart."""
    same, distinct = constraint(), constraint(None, distinct=f"{DRIVER}/i")
    pod = member(member_claim(request(count=2), constraints=[same, distinct]))
    assert len(counted_claim(pod).constraints) == 1
