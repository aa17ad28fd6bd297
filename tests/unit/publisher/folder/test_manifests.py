"""Claims in a folder of manifests: how they are written, and which steps that takes."""

from __future__ import annotations

from uuid import uuid4

import pytest
from msgspec.structs import replace

from contracts.claim import ResourceClaim
from contracts.ids import GangUID
from contracts.kubernetes.decode import decode_object
from contracts.messages import GangAllocated
from contracts.names import (
    ATTEMPT,
    CLAIM_UID,
    FINALIZER,
    GANG,
    GANG_UID,
    INDEX,
    MEMBER,
    SPEC_FROM,
    SPEC_OMITTED,
)
from contracts.validate import validate
from publisher.errors import DecisionError
from publisher.folder.manifests import build_claims, to_document
from publisher.folder.plan_claims import is_written, plan_claims
from publisher.folder.sources import find_references, find_sources
from publisher.steps import Create, Delete, ObjectKey, Update
from tests import builders
from tests.builders import decisions

NOW = "2026-11-20T12:00:00Z"


def written_claims(
    decision: GangAllocated, **gang: object
) -> tuple[ResourceClaim, ...]:
    """Write a decision about the builders' gang, or the gang given."""
    member = gang.get("member") or builders.member(count=8)
    submission = decisions.submission(builders.gang(member))  # type: ignore[arg-type] # a Member
    return build_claims(decision, find_sources(submission, {}), NOW)


def test_claim_says_whose_it_is_and_by_which_decision() -> None:
    """Gang, member, index and attempt can be read from the claim."""
    (claim,) = written_claims(decisions.gang_allocated(attempt=3))
    annotations = claim.metadata.annotations
    assert claim.metadata.labels == {GANG: "train"}
    assert annotations[GANG_UID] == builders.UID
    assert annotations[MEMBER] == "worker"
    assert annotations[INDEX] == "0"
    assert annotations[ATTEMPT] == "3"
    assert claim.metadata.finalizers == (FINALIZER,)


def test_derived_uid_is_an_annotation_and_no_uid() -> None:
    """Only Kubernetes gives uids."""
    (claim,) = written_claims(decisions.gang_allocated())
    assert claim.metadata.uid == ""
    assert claim.metadata.annotations[CLAIM_UID] == decisions.DERIVED_UID


def test_uid_of_kubernetes_stays_a_uid() -> None:
    """A claim that exists keeps its own."""
    uid = str(uuid4())
    member = decisions.member_allocated(uid=uid)
    (claim,) = written_claims(decisions.gang_allocated(member))
    assert claim.metadata.uid == uid
    assert CLAIM_UID not in claim.metadata.annotations


def test_document_is_valid_and_reads_back() -> None:
    """The API server would take what we write."""
    for claim in written_claims(decisions.gang_allocated(pods=8)):
        body = to_document(claim)
        assert body["status"]["allocation"]["allocationTimestamp"] == NOW
        assert "reservedFor" not in body["status"]
        decoded = decode_object(body)
        assert decoded.value == claim
        assert decoded.unknown == ()
        assert validate(claim) == ()


def test_template_gives_the_spec_where_it_is_known() -> None:
    """And the claim says which template it is from."""
    member = builders.member(builders.member_claim(template="gpus"))
    submission = decisions.submission(builders.gang(member))
    (key,) = find_references(submission)
    assert key == ObjectKey("ResourceClaimTemplate", builders.NAMESPACE, "gpus")
    template = builders.claim_template(name="gpus")
    sources = find_sources(submission, {key: template})
    (claim,) = build_claims(decisions.gang_allocated(), sources, NOW)
    assert claim.spec == template.spec.spec
    assert claim.metadata.annotations[SPEC_FROM] == "ResourceClaimTemplate gpus"
    assert SPEC_OMITTED not in claim.metadata.annotations


def test_unknown_template_leaves_the_spec_out_and_says_so() -> None:
    """Nothing is made up."""
    member = builders.member(builders.member_claim(template="gpus"))
    (claim,) = written_claims(decisions.gang_allocated(), member=member)
    body = to_document(claim)
    assert "spec" not in body
    assert body["metadata"]["annotations"][SPEC_OMITTED] == "true"
    assert body["metadata"]["annotations"][SPEC_FROM] == "ResourceClaimTemplate gpus"


def test_name_too_long_for_a_label_is_no_label() -> None:
    """The annotation still has it whole."""
    member = decisions.member_allocated(name="claim")
    (claim,) = written_claims(decisions.gang_allocated(member, name="a" * 64))
    assert claim.metadata.labels == {}


@pytest.mark.parametrize(
    ("member", "reason"),
    [
        (decisions.member_allocated(claim="disks"), "no claim worker/disks"),
        (decisions.member_allocated(namespace="other"), "namespace 'other'"),
        (decisions.member_allocated(name="../../etc"), "metadata.name"),
        (decisions.member_allocated(device="Bad Name"), "device"),
    ],
)
def test_decision_that_does_not_fit_is_refused(member: object, reason: str) -> None:
    """A decision about members or claims that were not asked for is not written."""
    with pytest.raises(DecisionError, match=reason) as caught:
        written_claims(decisions.gang_allocated(member))  # type: ignore[arg-type] # a MemberAllocated
    assert caught.value.gang == GangUID(builders.UID)


def test_one_claim_with_two_allocations_is_refused() -> None:
    """A shared claim has one allocation."""
    members = (
        decisions.member_allocated(name="shared"),
        decisions.member_allocated(name="shared", index=1),
    )
    with pytest.raises(DecisionError, match="two different allocations"):
        written_claims(decisions.gang_allocated(*members))


LATER = "2026-11-20T12:00:09Z"
OF_GANG = GangUID(builders.UID)


def claims(decision: GangAllocated, now: str = NOW) -> tuple[ResourceClaim, ...]:
    """Write a decision about the builders' gang."""
    gang = builders.gang(builders.member(count=8))
    sources = find_sources(decisions.submission(gang), {})
    return build_claims(decision, sources, now)


def test_missing_claims_are_created() -> None:
    wanted = claims(decisions.gang_allocated(pods=2))
    assert plan_claims(wanted, (), OF_GANG).steps == tuple(map(Create, wanted))


def test_claims_that_are_there_are_left_alone_whatever_the_time() -> None:
    decision = decisions.gang_allocated(pods=2)
    there = claims(decision)
    assert plan_claims(claims(decision, LATER), there, OF_GANG).steps == ()
    assert is_written(decision, there)


def test_new_attempt_replaces_and_keeps_the_time_of_equal_allocations() -> None:
    same = decisions.member_allocated()
    old = claims(decisions.gang_allocated(same))
    decision = decisions.gang_allocated(same, attempt=2)
    assert not is_written(decision, old)
    (step,) = plan_claims(claims(decision, LATER), old, OF_GANG).steps
    assert isinstance(step, Update)
    assert isinstance(step.object, ResourceClaim)
    assert step.object.status == old[0].status
    assert step.object.metadata.annotations[ATTEMPT] == "2"


def test_claims_of_any_attempt_are_left_alone_where_that_is_asked() -> None:
    """What is beyond them goes, and what is missing or differs is written."""
    there = claims(decisions.gang_allocated(pods=3))
    decision = decisions.gang_allocated(pods=2, attempt=2)
    wanted = claims(decision, LATER)
    plan = plan_claims(wanted, there, OF_GANG, any_attempt=True)
    assert plan.steps == (Delete(there[2]),)
    assert not is_written(decision, there, any_attempt=True)
    assert is_written(decision, there[:2], any_attempt=True)
    assert plan_claims(wanted, there[:1], OF_GANG, any_attempt=True).steps == (
        Create(wanted[1]),
    )
    moved = decisions.gang_allocated(decisions.member_allocated(device="b"), attempt=2)
    assert not is_written(moved, there[:1], any_attempt=True)
    (step,) = plan_claims(claims(moved), there[:1], OF_GANG, any_attempt=True).steps
    assert isinstance(step, Update)
    foreign = replace(
        there[0], metadata=replace(there[0].metadata, annotations={GANG_UID: "else"})
    )
    assert plan_claims(wanted[:1], (foreign,), OF_GANG, any_attempt=True).refusals


def test_new_attempt_with_other_devices_takes_a_new_time() -> None:
    old = claims(decisions.gang_allocated(decisions.member_allocated(device="a")))
    member = decisions.member_allocated(device="b")
    (wanted,) = claims(decisions.gang_allocated(member, attempt=2), LATER)
    (step,) = plan_claims((wanted,), old, OF_GANG).steps
    assert isinstance(step.object, ResourceClaim)
    assert step.object.status == wanted.status


def test_claims_no_longer_wanted_are_removed_first() -> None:
    there = claims(decisions.gang_allocated(pods=3))
    wanted = claims(decisions.gang_allocated(pods=1, attempt=2))
    steps = plan_claims(wanted, there, OF_GANG).steps
    assert [type(step) for step in steps] == [Delete, Delete, Update]
    assert not is_written(decisions.gang_allocated(pods=1), there)


def test_released_gang_leaves_nothing() -> None:
    there = claims(decisions.gang_allocated(pods=3))
    assert plan_claims((), there, OF_GANG).steps == tuple(map(Delete, there))


def test_claim_of_another_gang_is_refused_and_nothing_is_done() -> None:
    wanted = claims(decisions.gang_allocated(pods=2))
    foreign = replace(
        wanted[0], metadata=replace(wanted[0].metadata, annotations={GANG_UID: "else"})
    )
    plan = plan_claims(wanted, (foreign,), OF_GANG)
    assert plan.steps == ()
    name = f"{builders.NAMESPACE}/train-worker-0-gpus"
    assert plan.refusals == (f"claim {name} is already allocated for gang else",)
    assert plan_claims((), (foreign,), OF_GANG).steps == ()


def test_claim_that_was_there_is_adopted_and_given_back() -> None:
    (wanted,) = claims(decisions.gang_allocated())
    there = builders.claim(name=wanted.metadata.name, uid="of-kubernetes")
    (step,) = plan_claims((wanted,), (there,), OF_GANG).steps
    assert isinstance(step, Update)
    assert isinstance(step.object, ResourceClaim)
    assert step.object.spec == there.spec
    assert step.object.metadata.uid == "of-kubernetes"
    assert step.object.metadata.finalizers == (FINALIZER,)
    (back,) = plan_claims((), (step.object,), OF_GANG).steps
    assert back == Update(there)


def test_claim_that_is_being_deleted_or_another_one_is_refused() -> None:
    (wanted,) = claims(decisions.gang_allocated())
    going = builders.claim(name=wanted.metadata.name)
    going = replace(going, metadata=replace(going.metadata, deletion_timestamp=NOW))
    assert "being deleted" in plan_claims((wanted,), (going,), OF_GANG).refusals[0]
    known = replace(wanted, metadata=replace(wanted.metadata, uid="one"))
    other = builders.claim(name=wanted.metadata.name, uid="other")
    assert "not the one" in plan_claims((known,), (other,), OF_GANG).refusals[0]
