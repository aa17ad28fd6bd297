"""The roles of k8s/base say what they grant, thing by thing."""

from __future__ import annotations

import yaml

from tests.lab.manifests import SIMULATED, base


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


def test_drivers_of_the_roles_are_those_of_the_agents() -> None:
    """Who may write the device status of a claim: RBAC and policy say the same."""
    named = {(thing["kind"], thing["metadata"]["name"]): thing for thing in base()}
    fleet = yaml.safe_load((SIMULATED / "fleet.yaml").read_text())
    announced = [
        devices["driver"] for node in fleet["nodes"] for devices in node["devices"]
    ]
    granted = {
        thing["metadata"]["name"]: rule["resourceNames"]
        for thing in base()
        if thing["kind"] == "ClusterRole"
        for rule in thing["rules"]
        if "resourceclaims/driver" in rule["resources"]
    }
    listed = {
        item["expression"]
        for policy in (
            "moorings-nodeagent",
            "moorings-publisher-claims",
            "moorings-publisher-slices",
        )
        for item in named["ValidatingAdmissionPolicy", policy]["spec"]["variables"]
        if item["name"] == "drivers"
    }

    for service in ("publisher", "solver"):
        pod = named["Deployment", service]["spec"]["template"]["spec"]
        variables = {item["name"]: item for item in pod["containers"][0]["env"]}
        said = variables[f"{service.upper()}_AGENT_DRIVERS"]["value"]
        assert said.split(",") == announced, service
    assert granted == {
        "moorings-publisher-drivers": announced,
        "moorings-nodeagent-drivers": announced,
    }
    assert listed == {f"'{','.join(announced)}'.split(',')"}
