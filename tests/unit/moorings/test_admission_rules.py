"""Rules that name only versions of old are told what they miss."""

from __future__ import annotations

from typing import Any

import pytest

from moorings.admission_rules import find_blind_rules
from tests.builders.doctor import RESOURCES

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
    (blind,) = find_blind_rules(policy(rule(OLD)), V1)
    assert str(blind) == (
        "does not see resourceclaims of v1: "
        "spec.matchConstraints.resourceRules[0].apiVersions is v1alpha3, v1beta1"
    )
    assert blind.remedy == "add v1 there, and read its fields"


def test_exact_sees_only_what_it_names() -> None:
    (blind,) = find_blind_rules(policy(rule(OLD), match_policy="Exact"), BOTH)
    assert blind.unseen == ("v1",)
    assert blind.remedy.endswith("; or set matchPolicy: Equivalent")


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
        {"kind": "ValidatingAdmissionPolicy", "spec": {"matchConstraints": None}},
        {"webhooks": [None, {"rules": ["none", {"apiGroups": ["*"]}]}]},
    ],
)
def test_what_sees_everything_or_is_about_others_is_fine(sees: dict[str, Any]) -> None:
    assert list(find_blind_rules(sees, BOTH)) == []


def test_each_operation_and_resource_is_seen_by_itself() -> None:
    """Another rule that sees v1 helps only where it is about the same."""
    updates = rule(["v1"], operations=["UPDATE"])
    templates = rule(["v1"], "resourceclaimtemplates")
    blind = policy(rule(OLD, "resourceclaims"), updates, templates)
    assert len(list(find_blind_rules(blind, V1))) == 1
    sees = policy(rule(OLD), rule(["v1"], operations=["*"]))
    assert list(find_blind_rules(sees, V1)) == []


def test_each_webhook_is_judged_by_itself() -> None:
    webhooks = [
        {"name": "a", "rules": [rule(["v1"])]},
        {"name": "b", "rules": [rule(OLD, "resourceclaims/status")]},
    ]
    (blind,) = find_blind_rules({"webhooks": webhooks}, V1)
    assert str(blind).startswith(
        "does not see resourceclaims/status of v1: webhooks[1]"
    )
