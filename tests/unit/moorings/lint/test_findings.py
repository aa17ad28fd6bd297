"""Findings in the order in which people read them."""

from __future__ import annotations

from moorings.lint.findings import Finding, LintRule, Severity, collect_findings


def finding(name: str, severity: Severity, *, namespace: str = "") -> Finding:
    """Find something about a claim."""
    return Finding(
        severity=severity,
        kind="ResourceClaim",
        namespace=namespace,
        name=name,
        rule=LintRule.INVALID,
        message="no",
    )


def test_findings_stand_by_object_errors_first_and_each_once() -> None:
    """Whatever order the rules were tried in."""
    warning, error = (finding("b", severity) for severity in reversed(Severity))
    other = finding("a", Severity.WARNING)
    lint = collect_findings([warning, error, other, error], objects=2, devices=0)
    assert lint.findings == (other, error, warning)
    assert (lint.errors, lint.warnings) == (1, 2)


def test_an_object_is_named_as_kubectl_names_it() -> None:
    """With its namespace, where it has one."""
    assert finding("a", Severity.ERROR).subject == "resourceclaim/a"
    assert finding("a", Severity.ERROR, namespace="n").subject == "resourceclaim/n/a"
