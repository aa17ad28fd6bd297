"""DeviceTaintRules that taint more, or less, than whoever wrote them can have meant."""

from __future__ import annotations

from collections.abc import Iterator

from contracts.device import DeviceTaintRule, DeviceTaintSelector
from moorings.lint.findings import Finding, LintRule, Severity


def check_taint_rule(rule: DeviceTaintRule) -> Iterator[Finding]:
    """Find a rule without a selector, and one whose selector is empty."""
    selector = rule.spec.device_selector
    if selector is not None and selector != DeviceTaintSelector():
        return
    message = "is empty: every device of the cluster is tainted"
    if selector is None:
        message = "is missing: no device is tainted"
    yield Finding(
        severity=Severity.WARNING,
        kind="DeviceTaintRule",
        name=rule.metadata.name,
        field="spec.deviceSelector",
        rule=LintRule.TAINT_SCOPE,
        message=message,
    )
