"""A constraint that counting alone refutes is found; what may work is left alone."""

from __future__ import annotations

from collections.abc import Sequence

from contracts.claim import DeviceRequest
from moorings.lint.constraints import check_constraints
from moorings.lint.findings import Finding, LintRule, Severity
from tests import builders
from tests.builders.lint import lint_claim

ROOT = "resource.kubernetes.io/pcieRoot"


def findings(
    *requests: DeviceRequest, roots: Sequence[str | None], distinct: str | None = None
) -> list[Finding]:
    """Hold a constraint on the root against devices of these roots."""
    devices = [
        builders.device(f"gpu-{index}", attributes={ROOT: root} if root else {})
        for index, root in enumerate(roots)
    ]
    claim, matches = lint_claim(
        *requests, devices=devices, constraints=[builders.constraint(distinct=distinct)]
    )
    return list(check_constraints(claim, matches))


def test_devices_that_share_a_value_are_enough() -> None:
    """On one node, and for each request by itself: counting is not deciding."""
    assert findings(builders.request(count=2), roots=["a", "b", "b"]) == []


def test_too_few_devices_that_share_a_value_are_an_error() -> None:
    """However many there are in all."""
    (finding,) = findings(builders.request(count=2), roots=["a", "b", "c"])
    assert (finding.rule, finding.severity) == (LintRule.CONSTRAINT, Severity.ERROR)
    assert finding.field == "spec.devices.constraints[0]"
    assert f"with one value of {ROOT}" in finding.message


def test_devices_that_lack_the_attribute_are_counted() -> None:
    """A warning: others may do."""
    (finding,) = findings(builders.request(count=2), roots=["a", "a", None])
    assert finding.rule is LintRule.ATTRIBUTE_MISSING
    assert finding.severity is Severity.WARNING
    assert finding.message == f"1 of 3 matching devices lack {ROOT}"


def test_values_that_differ_need_not_be_shared() -> None:
    """A distinct attribute is never refuted by counting."""
    assert findings(builders.request(count=2), roots=["a", "b"], distinct=ROOT) == []


def test_requests_with_alternatives_are_left_alone() -> None:
    """Which of them is taken is for the solver."""
    either = builders.request(
        first_available=[
            builders.sub_request("two", count=2),
            builders.sub_request("one"),
        ]
    )
    assert findings(either, roots=["a", "b"]) == []


def test_without_devices_nothing_is_said() -> None:
    """Nothing is known of nodes."""
    assert findings(builders.request(count=2), roots=[]) == []
