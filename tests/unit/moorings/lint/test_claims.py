"""Lint looks at every claim spec of the input, and says where it stands."""

from __future__ import annotations

from contracts.codec import to_builtins
from contracts.features import Features
from contracts.kubernetes.decode import WritableObject, decode_object, to_kubernetes
from moorings.lint.claims import LintClaim, gather_claims, make_probe_gang
from moorings.lint.findings import LintRule, Severity
from moorings.plan.objects import PlanObject
from solver.problem.assemble import SnapshotLookup
from tests import builders
from tests.builders.problems import snapshot_of


def gathered(*values: WritableObject) -> list[LintClaim]:
    """Gather the claims of these objects; there is one class."""
    entries = []
    for value in values:
        raw = to_builtins(to_kubernetes(value))
        entries.append(PlanObject.of("x", raw, decode_object(raw)))
    return gather_claims(entries, SnapshotLookup(snapshot_of({})), Features())


def test_claims_stand_in_three_kinds_of_objects() -> None:
    """Each finding names the field of its own object."""
    gang = builders.gang(
        builders.member(builders.member_claim(template="t")),
        builders.member(builders.member_claim(), name="ps"),
    )
    claims = gathered(builders.claim(), builders.claim_template(), gang)
    assert [(claim.kind, claim.path) for claim in claims] == [
        ("ResourceClaim", "spec"),
        ("ResourceClaimTemplate", "spec.spec"),
        ("Gang", "spec.members[1].claims[0].spec"),
    ]


def test_an_allocated_claim_has_what_it_asked_for() -> None:
    """Whatever it says, it works."""
    assert gathered(builders.claim(allocated=builders.allocation())) == []


def test_a_finding_is_about_the_object_of_the_claim() -> None:
    """As kubectl names it; an error unless it is said."""
    (claim,) = gathered(builders.claim())
    finding = claim.report("spec.x", LintRule.INVALID, "no")
    assert finding.subject == f"resourceclaim/{builders.NAMESPACE}/claim-1"
    assert finding.severity is Severity.ERROR


def test_the_probe_has_the_selectors_of_claims_and_classes() -> None:
    """Also of a class that no claim asks for."""
    claims = gathered(builders.claim(builders.request(select=['"own" == ""'])))
    classes = [builders.device_class("unused", '"class" == ""')]
    (member,) = make_probe_gang(claims, classes).members
    selectors = [
        text
        for claim in member.claims
        for request in claim.requests
        for alternative in request.alternatives
        for text in alternative.selectors
    ]
    assert selectors == ["true", '"own" == ""', '"class" == ""']
