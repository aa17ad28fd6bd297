"""Only the next right step is planned, and never on what is somebody else's."""

from __future__ import annotations

from msgspec.structs import replace

from contracts.claim import ResourceClaim
from contracts.ids import GangUID
from contracts.messages import GangAllocated
from contracts.names import ATTEMPT, FINALIZER, GANG_UID
from publisher.folder.manifests import build_claims
from publisher.folder.plan_claims import is_written, plan_claims
from publisher.folder.sources import find_sources
from publisher.steps import Create, Delete, Update
from tests import builders
from tests.builders import decisions

NOW = "2026-11-20T12:00:00Z"
LATER = "2026-11-20T12:00:09Z"
GANG = GangUID(builders.UID)


def claims(decision: GangAllocated, now: str = NOW) -> tuple[ResourceClaim, ...]:
    """Write a decision about the builders' gang."""
    gang = builders.gang(builders.member(count=8))
    sources = find_sources(decisions.submission(gang), {})
    return build_claims(decision, sources, now)


def test_missing_claims_are_created() -> None:
    wanted = claims(decisions.gang_allocated(pods=2))
    assert plan_claims(wanted, (), GANG).steps == tuple(map(Create, wanted))


def test_claims_that_are_there_are_left_alone_whatever_the_time() -> None:
    decision = decisions.gang_allocated(pods=2)
    there = claims(decision)
    assert plan_claims(claims(decision, LATER), there, GANG).steps == ()
    assert is_written(decision, there)


def test_new_attempt_replaces_and_keeps_the_time_of_equal_allocations() -> None:
    same = decisions.member_allocated()
    old = claims(decisions.gang_allocated(same))
    decision = decisions.gang_allocated(same, attempt=2)
    assert not is_written(decision, old)
    (step,) = plan_claims(claims(decision, LATER), old, GANG).steps
    assert isinstance(step, Update)
    assert isinstance(step.object, ResourceClaim)
    assert step.object.status == old[0].status
    assert step.object.metadata.annotations[ATTEMPT] == "2"


def test_claims_of_any_attempt_are_left_alone_where_that_is_asked() -> None:
    """What is beyond them goes, and what is missing or differs is written."""
    there = claims(decisions.gang_allocated(pods=3))
    decision = decisions.gang_allocated(pods=2, attempt=2)
    wanted = claims(decision, LATER)
    plan = plan_claims(wanted, there, GANG, any_attempt=True)
    assert plan.steps == (Delete(there[2]),)
    assert not is_written(decision, there, any_attempt=True)
    assert is_written(decision, there[:2], any_attempt=True)
    assert plan_claims(wanted, there[:1], GANG, any_attempt=True).steps == (
        Create(wanted[1]),
    )
    moved = decisions.gang_allocated(decisions.member_allocated(device="b"), attempt=2)
    assert not is_written(moved, there[:1], any_attempt=True)
    (step,) = plan_claims(claims(moved), there[:1], GANG, any_attempt=True).steps
    assert isinstance(step, Update)
    foreign = replace(
        there[0], metadata=replace(there[0].metadata, annotations={GANG_UID: "else"})
    )
    assert plan_claims(wanted[:1], (foreign,), GANG, any_attempt=True).refusals


def test_new_attempt_with_other_devices_takes_a_new_time() -> None:
    old = claims(decisions.gang_allocated(decisions.member_allocated(device="a")))
    member = decisions.member_allocated(device="b")
    (wanted,) = claims(decisions.gang_allocated(member, attempt=2), LATER)
    (step,) = plan_claims((wanted,), old, GANG).steps
    assert isinstance(step.object, ResourceClaim)
    assert step.object.status == wanted.status


def test_claims_no_longer_wanted_are_removed_first() -> None:
    there = claims(decisions.gang_allocated(pods=3))
    wanted = claims(decisions.gang_allocated(pods=1, attempt=2))
    steps = plan_claims(wanted, there, GANG).steps
    assert [type(step) for step in steps] == [Delete, Delete, Update]
    assert not is_written(decisions.gang_allocated(pods=1), there)


def test_released_gang_leaves_nothing() -> None:
    there = claims(decisions.gang_allocated(pods=3))
    assert plan_claims((), there, GANG).steps == tuple(map(Delete, there))


def test_claim_of_another_gang_is_refused_and_nothing_is_done() -> None:
    wanted = claims(decisions.gang_allocated(pods=2))
    foreign = replace(
        wanted[0], metadata=replace(wanted[0].metadata, annotations={GANG_UID: "else"})
    )
    plan = plan_claims(wanted, (foreign,), GANG)
    assert plan.steps == ()
    name = f"{builders.NAMESPACE}/train-worker-0-gpus"
    assert plan.refusals == (f"claim {name} is already allocated for gang else",)
    assert plan_claims((), (foreign,), GANG).steps == ()


def test_claim_that_was_there_is_adopted_and_given_back() -> None:
    (wanted,) = claims(decisions.gang_allocated())
    there = builders.claim(name=wanted.metadata.name, uid="of-kubernetes")
    (step,) = plan_claims((wanted,), (there,), GANG).steps
    assert isinstance(step, Update)
    assert isinstance(step.object, ResourceClaim)
    assert step.object.spec == there.spec
    assert step.object.metadata.uid == "of-kubernetes"
    assert step.object.metadata.finalizers == (FINALIZER,)
    (back,) = plan_claims((), (step.object,), GANG).steps
    assert back == Update(there)


def test_claim_that_is_being_deleted_or_another_one_is_refused() -> None:
    (wanted,) = claims(decisions.gang_allocated())
    going = builders.claim(name=wanted.metadata.name)
    going = replace(going, metadata=replace(going.metadata, deletion_timestamp=NOW))
    assert "being deleted" in plan_claims((wanted,), (going,), GANG).refusals[0]
    known = replace(wanted, metadata=replace(wanted.metadata, uid="one"))
    other = builders.claim(name=wanted.metadata.name, uid="other")
    assert "another one" in plan_claims((known,), (other,), GANG).refusals[0]
