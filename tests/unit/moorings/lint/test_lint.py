"""Lint holds the whole input against itself, and counts what it looked at."""

from __future__ import annotations

from typing import Any

from contracts.codec import to_builtins
from contracts.kubernetes.decode import to_kubernetes
from moorings.lint.findings import Lint, LintRule, Severity
from tests import builders
from tests.builders.inputs import written_job, written_pod
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
    assert finding.message == "unknown field"
    raw["metadata"]["resourceVersion"] = "7"
    (finding,) = lint_objects(raw, SLICE).findings
    assert (finding.field, finding.severity) == ("spec.selector", Severity.WARNING)


def test_errors_and_warnings_are_counted_apart() -> None:
    """A class that matches nothing works, for now."""
    empty = builders.device_class("empty", 'device.driver == "none"')
    unknown = builders.claim(builders.request(device_class="gone"))
    result = lint_objects(CLASS, SLICE, empty, unknown)
    assert (result.errors, result.warnings) == (1, 1)


def test_pods_that_plan_refuses_are_errors() -> None:
    """How many there are is not known, or nobody offers what they ask for."""
    rollout = {**written_job("r", 1, claim="claim"), "kind": "Rollout"}
    rollout["apiVersion"] = "argoproj.io/v1alpha1"
    rollout["spec"] = {"template": rollout["spec"]["template"]}
    resources = {"limits": {"example.com/gpu": "1"}}
    pod = written_pod("p", containers=[{"name": "c", "resources": resources}])
    claim = builders.claim(name="claim")
    found = lint_objects(CLASS, SLICE, claim, rollout, pod).findings
    assert {each.severity for each in found} == {Severity.ERROR}
    assert [(each.rule, each.message.split()[0].strip(":")) for each in found] == [
        (LintRule.GANG_WAITS, "UnknownDeviceClass"),
        (LintRule.GANG_WAITS, "NotModelled"),
    ]


def test_what_is_invalid_is_told_once() -> None:
    resources = {"limits": {"example.com/gpu": "500m"}}
    pod = written_pod("p", containers=[{"name": "c", "resources": resources}])
    (finding,) = lint_objects(pod).findings
    assert finding.rule is LintRule.INVALID


def test_what_names_no_namespace_is_in_the_default_one() -> None:
    """All that is wrong with a Gang stands under one name."""
    gang = builders.gang(builders.member(builders.member_claim(template="t")))
    raw = to_builtins(to_kubernetes(gang))
    raw["spec"]["colour"] = 1
    del raw["metadata"]["namespace"]
    subjects = [each.subject for each in lint_objects(raw).findings]
    assert subjects == [f"gang/default/{gang.metadata.name}"] * 2
    template = builders.claim_template(name="t", namespace="default")
    (finding,) = lint_objects(CLASS, SLICE, raw, template).findings
    assert finding.rule is LintRule.UNKNOWN_FIELD


def test_admin_access_needs_the_label_of_its_namespace() -> None:
    """Where the input has the namespace; else nobody knows its labels (KEP-5018)."""
    watching = builders.claim(builders.request(admin_access=True), namespace="ops")
    space: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": "ops"},
    }
    (finding,) = lint_objects(CLASS, SLICE, watching, space).findings
    assert finding.rule is LintRule.INVALID
    assert finding.field == "spec.devices.requests[0].exactly.adminAccess"
    assert lint_objects(CLASS, SLICE, watching).findings == ()
    space["metadata"]["labels"] = {"resource.kubernetes.io/admin-access": "true"}
    assert lint_objects(CLASS, SLICE, watching, space).findings == ()


def test_a_claim_without_a_name_is_found_and_no_more() -> None:
    found = lint_objects(CLASS, SLICE, builders.claim(name="")).findings
    assert [finding.rule for finding in found] == [LintRule.INVALID]
