"""Rules that name only versions of old are told what they miss."""

from __future__ import annotations

from typing import Any

import pytest

from moorings.doctor.check_admission import check_admission
from moorings.doctor.facts import Unread
from tests.builders.doctor import RESOURCES, cluster_facts

OLD = ["v1alpha3", "v1beta1"]
V1 = {"v1": RESOURCES}
BOTH = {"v1": RESOURCES, "v1beta1": RESOURCES}


def rule(versions: list[str], *resources: str, **more: Any) -> dict[str, Any]:
    return {
        "apiGroups": ["resource.k8s.io"],
        "apiVersions": versions,
        "operations": ["CREATE", "UPDATE"],
        "resources": list(resources or ("resourceclaims",)),
        **more,
    }


def policy(*rules: dict[str, Any], match_policy: str = "Equivalent") -> dict[str, Any]:
    constraints = {"matchPolicy": match_policy, "resourceRules": list(rules)}
    return {
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "claims"},
        "spec": {"matchConstraints": constraints},
    }


def test_a_policy_of_versions_that_are_not_served_sees_nothing() -> None:
    """As the guide's: also with Equivalent, which converts to what is served."""
    facts = cluster_facts(served=V1, admission=(policy(rule(OLD)),))
    (line,) = check_admission(facts)
    assert (line.check, line.level) == ("kubernetes.admission", "warn")
    assert line.why == (
        "ValidatingAdmissionPolicy claims does not see resourceclaims of v1: "
        "spec.matchConstraints.resourceRules[0].apiVersions is v1alpha3, v1beta1"
    )
    assert line.remedy == "add v1 there, and read its fields"


def test_exact_sees_only_what_it_names() -> None:
    blind = policy(rule(OLD), match_policy="Exact")
    (line,) = check_admission(cluster_facts(served=BOTH, admission=(blind,)))
    assert "does not see resourceclaims of v1:" in line.why
    assert line.remedy.endswith("; or set matchPolicy: Equivalent")


@pytest.mark.parametrize(
    "sees",
    [
        policy(rule(["v1"])),
        policy(rule(["*"]), match_policy="Exact"),
        policy(rule(["v1", "v1beta1"]), match_policy="Exact"),
        policy(rule(OLD)),
        policy(rule(OLD), rule(["v1"]), match_policy="Exact"),
        policy(rule(["v1alpha3"], "podschedulingcontexts")),
        policy(rule(["v1beta1"], apiGroups=["apps"])),
    ],
)
def test_what_sees_everything_or_is_about_others_is_fine(sees: dict[str, Any]) -> None:
    (line,) = check_admission(cluster_facts(served=BOTH, admission=(sees,)))
    assert line.level == "ok", line


def test_each_operation_and_resource_is_seen_by_itself() -> None:
    """Another rule that sees v1 helps only where it is about the same."""
    updates = rule(["v1"], operations=["UPDATE"])
    templates = rule(["v1"], "resourceclaimtemplates")
    facts = cluster_facts(
        served=V1,
        admission=(policy(rule(OLD, "resourceclaims"), updates, templates),),
    )
    assert [line.level for line in check_admission(facts)] == ["warn"]
    facts = cluster_facts(
        served=V1, admission=(policy(rule(OLD), rule(["v1"], operations=["*"])),)
    )
    assert [line.level for line in check_admission(facts)] == ["ok"]


def test_each_webhook_is_judged_by_itself() -> None:
    webhooks = [
        {"name": "a", "rules": [rule(["v1"])]},
        {"name": "b", "rules": [rule(OLD, "resourceclaims/status")]},
    ]
    item = {
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "hooks"},
        "webhooks": webhooks,
    }
    (line,) = check_admission(cluster_facts(served=V1, admission=(item,)))
    assert "hooks does not see resourceclaims/status of v1: webhooks[1]" in line.why


def test_what_cannot_be_read_is_said() -> None:
    facts = cluster_facts(admission=Unread("denied"))
    assert [line.level for line in check_admission(facts)] == ["warn"]
    facts = cluster_facts(served=Unread("denied"), admission=())
    assert not list(check_admission(facts))
