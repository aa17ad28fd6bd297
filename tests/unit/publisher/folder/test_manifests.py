"""Claims say all of a decision, and nothing that Kubernetes would refuse."""

from __future__ import annotations

from uuid import uuid4

import pytest

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
from publisher.folder.sources import find_references, find_sources
from publisher.steps import ObjectKey
from tests import builders
from tests.builders import decisions

NOW = "2026-11-20T12:00:00Z"


def claims(decision: GangAllocated, **gang: object) -> tuple[ResourceClaim, ...]:
    """Write a decision about the builders' gang, or the gang given."""
    member = gang.get("member") or builders.member(count=8)
    submission = decisions.submission(builders.gang(member))  # type: ignore[arg-type] # a Member
    return build_claims(decision, find_sources(submission, {}), NOW)


def test_claim_says_whose_it_is_and_by_which_decision() -> None:
    """Gang, member, index and attempt can be read from the claim."""
    (claim,) = claims(decisions.gang_allocated(attempt=3))
    annotations = claim.metadata.annotations
    assert claim.metadata.labels == {GANG: "train"}
    assert annotations[GANG_UID] == builders.UID
    assert annotations[MEMBER] == "worker"
    assert annotations[INDEX] == "0"
    assert annotations[ATTEMPT] == "3"
    assert claim.metadata.finalizers == (FINALIZER,)


def test_derived_uid_is_an_annotation_and_no_uid() -> None:
    """Only Kubernetes gives uids."""
    (claim,) = claims(decisions.gang_allocated())
    assert claim.metadata.uid == ""
    assert claim.metadata.annotations[CLAIM_UID] == decisions.DERIVED_UID


def test_uid_of_kubernetes_stays_a_uid() -> None:
    """A claim that exists keeps its own."""
    uid = str(uuid4())
    member = decisions.member_allocated(uid=uid)
    (claim,) = claims(decisions.gang_allocated(member))
    assert claim.metadata.uid == uid
    assert CLAIM_UID not in claim.metadata.annotations


def test_document_is_valid_and_reads_back() -> None:
    """The API server would take what we write."""
    for claim in claims(decisions.gang_allocated(pods=8)):
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
    (claim,) = claims(decisions.gang_allocated(), member=member)
    body = to_document(claim)
    assert "spec" not in body
    assert body["metadata"]["annotations"][SPEC_OMITTED] == "true"
    assert body["metadata"]["annotations"][SPEC_FROM] == "ResourceClaimTemplate gpus"


def test_name_too_long_for_a_label_is_no_label() -> None:
    """The annotation still has it whole."""
    member = decisions.member_allocated(name="claim")
    (claim,) = claims(decisions.gang_allocated(member, name="a" * 64))
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
        claims(decisions.gang_allocated(member))  # type: ignore[arg-type] # a MemberAllocated
    assert caught.value.gang == GangUID(builders.UID)


def test_one_claim_with_two_allocations_is_refused() -> None:
    """A shared claim has one allocation."""
    members = (
        decisions.member_allocated(name="shared"),
        decisions.member_allocated(name="shared", index=1),
    )
    with pytest.raises(DecisionError, match="two different allocations"):
        claims(decisions.gang_allocated(*members))
