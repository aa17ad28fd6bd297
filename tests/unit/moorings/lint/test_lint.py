"""Lint holds the whole input against itself, and counts what it looked at."""

from __future__ import annotations

from contracts.codec import to_builtins
from contracts.kubernetes.decode import to_kubernetes
from moorings.lint.findings import Lint, LintRule, Severity
from tests import builders
from tests.builders.lint import lint_objects

CLASS = builders.device_class()
SLICE = builders.resource_slice(*builders.devices(2))


def test_an_input_that_works_has_no_findings() -> None:
    """It says what it was: so many objects and devices."""
    result = lint_objects(CLASS, SLICE, builders.claim())
    assert result == Lint(objects=3, devices=2)


def test_a_template_that_a_gang_names_must_be_there() -> None:
    """In the gang's own namespace."""
    gang = builders.gang(builders.member(builders.member_claim(template="t")))
    template = builders.claim_template(name="t")
    elsewhere = builders.claim_template(name="t", namespace="other")
    assert lint_objects(CLASS, SLICE, gang, template).findings == ()
    (finding,) = lint_objects(CLASS, SLICE, gang, elsewhere).findings
    assert finding.rule is LintRule.UNKNOWN_TEMPLATE
    assert finding.field == "spec.members[0].claims[0].templateName"


def test_what_the_api_server_would_refuse_is_found() -> None:
    """Once it has filled in its defaults."""
    bad = builders.claim(builders.request(count=-1))
    rules = {finding.rule for finding in lint_objects(CLASS, SLICE, bad).findings}
    assert LintRule.INVALID in rules


def test_a_field_that_the_kind_lacks_is_found() -> None:
    """An error, unless a cluster has the object: it may be a newer one."""
    raw = to_builtins(to_kubernetes(CLASS))
    raw["spec"] |= {"selector": []}
    (finding,) = lint_objects(raw, SLICE).findings
    assert finding.rule is LintRule.UNKNOWN_FIELD
    assert (finding.field, finding.severity) == ("spec.selector", Severity.ERROR)
    raw["metadata"]["resourceVersion"] = "7"
    (finding,) = lint_objects(raw, SLICE).findings
    assert (finding.field, finding.severity) == ("spec.selector", Severity.WARNING)


def test_errors_and_warnings_are_counted_apart() -> None:
    """A class that matches nothing works, for now."""
    empty = builders.device_class("empty", 'device.driver == "none"')
    unknown = builders.claim(builders.request(device_class="gone"))
    result = lint_objects(CLASS, SLICE, empty, unknown)
    assert (result.errors, result.warnings) == (1, 1)
