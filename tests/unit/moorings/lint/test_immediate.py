"""The label by which a claim is allocated without a pod, where it means nothing."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from contracts.claim import ResourceClaim, ResourceClaimTemplate
from contracts.meta import ObjectMeta
from contracts.names import ALLOCATE, IMMEDIATE
from moorings.lint.findings import Finding, LintRule, Severity
from moorings.lint.immediate import check_allocate_marks
from tests import builders
from tests.builders.inputs import entries
from tests.builders.lint import lint_objects

MARK = {ALLOCATE: IMMEDIATE}


def find(value: ResourceClaim | ResourceClaimTemplate) -> list[Finding]:
    (entry,) = entries(value)
    return list(check_allocate_marks(entry))


def made(**metadata: Any) -> ResourceClaimTemplate:
    """Make a template whose claims have labels or annotations."""
    template = builders.claim_template()
    spec = replace(template.spec, metadata=ObjectMeta(**metadata))
    return replace(template, spec=spec)


def test_claims_with_the_label_or_without_are_as_they_should_be() -> None:
    claim = builders.claim()
    assert find(claim) == find(builders.labelled(claim)) == []
    assert find(builders.claim_template()) == []


def test_another_value_is_an_error() -> None:
    (found,) = find(builders.labelled(builders.claim(), "immediate"))
    assert (found.rule, found.severity) == (LintRule.NO_EFFECT, Severity.ERROR)
    assert found.field == f"metadata.labels[{ALLOCATE}]"
    assert found.message.startswith("'immediate' is unknown; it is Immediate, and")
    (found,) = find(made(labels={ALLOCATE: "Now"}))
    assert found.field == f"spec.metadata.labels[{ALLOCATE}]"


@pytest.mark.parametrize("what", ["labels", "annotations"])
def test_a_template_says_it_of_its_claims_and_as_a_label(what: str) -> None:
    template = builders.claim_template()
    own = replace(template.metadata, **{what: MARK})
    (found,) = find(replace(template, metadata=own))
    assert (found.rule, found.field) == (
        LintRule.NO_EFFECT,
        f"metadata.{what}[{ALLOCATE}]",
    )
    assert found.message.endswith("write it to spec.metadata.labels")
    (found,) = find(made(annotations=MARK))
    assert (found.rule, found.message) == (LintRule.NO_EFFECT, "it is a label")


def test_claims_of_a_template_are_said_to_be_allocated_before_their_pods() -> None:
    (found,) = find(made(labels=MARK))
    assert (found.rule, found.severity) == (LintRule.IMMEDIATE, Severity.WARNING)


def test_a_claim_that_needs_no_pod_is_no_gang_to_lint() -> None:
    """It is checked once, as the claim that it is."""
    claim = builders.labelled(builders.claim(builders.request(count=9), name="data"))
    found = lint_objects(
        builders.device_class(), builders.resource_slice(*builders.devices(2)), claim
    )
    assert [f.kind for f in found.findings if f.kind == "Gang"] == []
