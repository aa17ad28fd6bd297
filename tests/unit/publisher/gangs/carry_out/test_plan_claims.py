"""The next write of each claim: prepare, allocate, reserve; then the gates."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from contracts.claim import ResourceClaim
from contracts.names import ATTEMPT, INDEX
from publisher.errors import DecisionError
from publisher.gangs.carry_out.plan_claims import (
    ClaimWrites,
    assignments_of,
    plan_claims,
    plan_gates,
)
from publisher.gangs.patches import Purpose
from publisher.gangs.submit.readiness import plan_prepare
from tests import builders
from tests.builders.decisions import gang_allocated, member_allocated
from tests.builders.plans import context_of, submission_of, view_of
from tests.builders.pods import real_claim, waiting_pod

POD = waiting_pod("a", gang="train", templates=["gpus"])
SUBMITTED = submission_of((POD,))
DECISION = gang_allocated()
ASSIGNED = assignments_of(DECISION, SUBMITTED)
HELD = builders.allocation()
KEY = f"{builders.NAMESPACE}/a-gpus"


def planned(
    *claims: ResourceClaim, nodes: tuple[str, ...] = ("node-1",)
) -> ClaimWrites:
    """Plan the claims of a gang of one pod."""
    return plan_claims(ASSIGNED, context_of(view_of([POD], claims, (), nodes)))


def test_a_claim_gets_one_write_at_a_time() -> None:
    """Its finalizer, its allocation with the reservation, and then nothing."""
    steps = [
        (real_claim("a-gpus", managed=False), [Purpose.PREPARE]),
        (real_claim("a-gpus"), [Purpose.ALLOCATE]),
        (real_claim("a-gpus", allocated=HELD), [Purpose.RESERVE]),
        (real_claim("a-gpus", allocated=HELD, reserved=["a"]), []),
    ]
    for claim, purposes in steps:
        writes = planned(claim)
        assert [patch.purpose for patch in writes.patches] == purposes
        assert writes.refusals == ()


def test_what_cannot_be_written_is_refused_by_name() -> None:
    """And then nothing of the decision is written."""
    other = builders.allocation(builders.result("gpu-9"))
    holder = real_claim("other", allocated=HELD)
    foreign = real_claim("secret", namespace="a-rival", allocated=HELD)
    free = real_claim("a-gpus")
    cases = [
        (planned(), f"ResourceClaim {KEY} is gone"),
        (planned(real_claim("a-gpus", deleting=True)), f"ResourceClaim {KEY} is gone"),
        (planned(real_claim("a-gpus", allocated=other)), "allocated by somebody else"),
        (planned(free, holder), f"held by ResourceClaim {builders.NAMESPACE}/other"),
        (planned(free, foreign), "held by a ResourceClaim of another namespace"),
        (
            planned(free, foreign, holder),
            f"held by ResourceClaim {builders.NAMESPACE}/other",
        ),
        (planned(free, nodes=()), "node node-1 is gone"),
    ]
    for writes, text in cases:
        (refusal,) = writes.refusals
        assert text in refusal
        assert writes.patches == ()


def test_a_gate_is_opened_with_what_the_pod_runs_for() -> None:
    """Its place and attempt; a pod that is gone is left out."""
    (patch,) = plan_gates(DECISION, ASSIGNED, view_of([POD]))
    annotations = patch.body["metadata"]["annotations"]
    assert (annotations[INDEX], annotations[ATTEMPT]) == ("worker/0", "1")
    assert list(plan_gates(DECISION, ASSIGNED, view_of())) == []
    again = waiting_pod("a", gang="train", templates=["gpus"], uid="uid-anew")
    assert list(plan_gates(DECISION, ASSIGNED, view_of([again]))) == []


def test_finalizers_come_ahead_only_where_they_are_needed() -> None:
    """Not on what has one, is allocated, leaves, is not there, or is not ours."""
    claims = [
        real_claim("new", managed=False),
        real_claim("ready"),
        real_claim("held", managed=False, allocated=HELD),
        real_claim("leaving", managed=False, deleting=True),
    ]
    view = view_of(claims=claims)
    keys = [f"{builders.NAMESPACE}/{claim.metadata.name}" for claim in claims]
    context = context_of(view)
    patches = plan_prepare([*keys, *keys, "x/none"], context)
    assert [patch.name for patch in patches] == ["new"]
    assert list(plan_prepare(keys, replace(context, owns=lambda _: False))) == []


def test_a_decision_is_about_each_place_once() -> None:
    """One that names another place, or leaves one out, is not written."""
    second = gang_allocated(member_allocated(), member_allocated(index=1))
    with pytest.raises(DecisionError, match="worker/1: there is no such pod"):
        assignments_of(second, SUBMITTED)
    twice = gang_allocated(member_allocated(), member_allocated())
    with pytest.raises(DecisionError, match="or more than one"):
        assignments_of(twice, SUBMITTED)
    with pytest.raises(DecisionError, match="worker/0: nothing was decided"):
        assignments_of(replace(DECISION, members=()), SUBMITTED)


def test_a_decision_is_about_each_claim_once() -> None:
    """The claims of a place have the names that the gang gives them."""
    wrong = gang_allocated(member_allocated(claim="nics"))
    with pytest.raises(DecisionError, match="not each of its claims once"):
        assignments_of(wrong, SUBMITTED)
    ((key, allocation),) = ASSIGNED[0].claims
    assert (key, allocation) == (KEY, HELD)
