"""Lint tells gangs that a ResourceQuota refuses from those that it refuses for now."""

from __future__ import annotations

import pytest

from moorings.lint.findings import LintRule, Severity
from tests import builders
from tests.builders.inputs import Json, written_job
from tests.builders.lint import lint_objects

NAME = f"{builders.DEVICE_CLASS}.deviceclass.resource.k8s.io/devices"
CLASS = builders.device_class()
TEMPLATE = builders.claim_template(name="one")


def quota(hard: int, used: int) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "gpus", "namespace": builders.NAMESPACE},
        "spec": {"hard": {NAME: str(hard)}},
        "status": {"used": {NAME: str(used)}},
    }


@pytest.mark.parametrize(
    ("hard", "used", "severity"),
    [(8, 4, None), (8, 6, Severity.WARNING), (3, 0, Severity.ERROR)],
)
def test_a_gang_may_need_more_than_is_left_or_than_is_allowed(
    hard: int, used: int, severity: Severity | None
) -> None:
    job = written_job("train", 4, gang="train", size=4, template="one")
    linted = lint_objects(CLASS, TEMPLATE, job, quota(hard, used))
    found = [each for each in linted.findings if each.rule is LintRule.QUOTA]
    assert [each.severity for each in found] == ([severity] if severity else [])
    for each in found:
        assert each.subject == "gang/team-a/train"
        assert each.message.startswith(f"ResourceQuota team-a/gpus: {hard} of ")


def test_a_claim_that_no_pod_uses_is_refused_itself() -> None:
    claim = builders.claim(name="alone")
    (found,) = lint_objects(CLASS, claim, quota(0, 0)).findings
    assert found.subject == "resourceclaim/team-a/alone"
