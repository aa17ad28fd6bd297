"""The roles of k8s/base say what they grant, thing by thing."""

from __future__ import annotations

from tests.lab.manifests import base


def test_no_rule_has_a_wildcard() -> None:
    """Neither a verb, nor a resource, nor a group, nor a URL is `*`."""
    rules = [
        (thing["metadata"]["name"], rule)
        for thing in base()
        if thing["kind"] in {"ClusterRole", "Role"}
        for rule in thing["rules"]
    ]

    assert rules
    assert [name for name, rule in rules for part in rule.values() if "*" in part] == []


def test_drivers_of_the_roles_are_those_of_the_ownership() -> None:
    """RBAC wants a list, which kustomize cannot make of the ConfigMap."""
    (owned,) = [
        thing["data"]["drivers"].split(",")
        for thing in base()
        if thing["metadata"]["name"] == "ownership"
    ]
    granted = {
        thing["metadata"]["name"]: rule["resourceNames"]
        for thing in base()
        if thing["kind"] == "ClusterRole"
        for rule in thing["rules"]
        if "resourceclaims/driver" in rule["resources"]
    }

    assert granted == {
        "moorings-publisher-drivers": owned,
        "moorings-nodeagent-drivers": owned,
    }
