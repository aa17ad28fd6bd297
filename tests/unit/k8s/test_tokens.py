"""k8s/components/tokens: the callout, its keys, and what agents show instead."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from authcallout.config import AuthCalloutConfig
from authcallout.login import AgentLogin, read_login
from authcallout.nkeys import AccountKey, CurveKey
from runtime.bus.permissions import CALLOUT_KEYS, PASSWORDS, server_configuration
from runtime.config import read_config
from runtime.users import CALLOUT, logins_of, password_variable
from tests.lab.manifests import K8S, KUSTOMIZATION, TOKENS, Manifest, workloads


def _thing(name: str) -> Manifest:
    thing: Manifest = yaml.safe_load((TOKENS / f"{name}.yaml").read_text())
    return thing


def _pod(name: str) -> Manifest:
    pod: Manifest = _thing(name)["spec"]["template"]["spec"]
    return pod


def test_every_file_is_applied() -> None:
    said = yaml.safe_load((TOKENS / KUSTOMIZATION).read_text())
    (files,) = (generated["files"] for generated in said["configMapGenerator"])
    patches = {patch["path"] for patch in said["patches"]}
    listed = {*said["resources"], *patches, *files, KUSTOMIZATION}

    assert {path.name for path in TOKENS.iterdir()} == listed


def test_permissions_are_those_of_the_table() -> None:
    """Else: `moorings permissions --tokens >k8s/components/tokens/permissions.conf`."""
    written = (TOKENS / "permissions.conf").read_text()

    assert written == server_configuration(tokens=True)


def test_the_callout_is_set_up_by_its_variables() -> None:
    (container,) = _pod("authcallout-deployment")["containers"]
    variables = {entry["name"]: entry["value"] for entry in container["env"]}
    config = read_config(AuthCalloutConfig, "AUTHCALLOUT_", variables)
    solver = workloads()["solver"]["spec"]["template"]["spec"]["containers"][0]
    servers = {entry["name"]: entry.get("value") for entry in solver["env"]}

    assert config.bus_user == CALLOUT
    assert ",".join(config.servers) == servers["SOLVER_SERVERS"]
    assert container["args"] == [CALLOUT]
    assert container["image"] == solver["image"]
    assert config.agents == ("system:serviceaccount:moorings-system:nodeagent",)


def test_the_callout_has_no_more_than_it_needs() -> None:
    """As the services of k8s/base; and it reviews, which is all."""
    pod = _pod("authcallout-deployment")
    publisher = workloads()["publisher"]["spec"]["template"]["spec"]
    for field in ("securityContext", "priorityClassName", "enableServiceLinks"):
        assert pod[field] == publisher[field]
    (container,), (other,) = pod["containers"], publisher["containers"]
    assert container["securityContext"] == other["securityContext"]
    assert "memory" in container["resources"]["limits"]
    rules = _thing("moorings-authcallout-clusterrole")["rules"]
    assert [(rule["resources"], rule["verbs"]) for rule in rules] == [
        (["tokenreviews"], ["create"]),
        (["subjectaccessreviews"], ["create"]),
    ]


def test_an_agent_asks_for_its_node_with_a_token_for_the_bus() -> None:
    (container,) = _pod("nodeagent-patch")["containers"]
    names = [entry["name"] for entry in container["env"]]
    said = {entry["name"]: entry.get("value", "") for entry in container["env"]}
    user = said["NODEAGENT_BUS_USER"].replace("$(NODEAGENT_NODE)", "node-1")
    ((volume,),) = (_pod("nodeagent-patch")["volumes"],)
    certificate, token = volume["projected"]["sources"]
    base = workloads()["nodeagent"]["spec"]["template"]["spec"]
    (mount,) = (m for m in base["containers"][0]["volumeMounts"] if m["name"] == "bus")

    assert read_login(user) == AgentLogin("node-1")
    assert certificate["secret"]["name"] == "nats-tls"
    asked = token["serviceAccountToken"]
    assert (
        asked["audience"] == AuthCalloutConfig(issuer_file="i", curve_file="c").audience
    )
    assert (
        said["NODEAGENT_BUS_PASSWORD_FILE"] == f"{mount['mountPath']}/{asked['path']}"
    )
    # A variable sees those alone that stand before it, and what kustomize merges in
    # stands before what was there.
    assert names.index("NODEAGENT_NODE") < names.index("NODEAGENT_BUS_USER")


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl")
def test_keys_belong_together() -> None:
    """Made by a shell without our code, read by our code; new ones each time."""
    issuers = set()
    for _ in range(20):
        made = subprocess.run(
            ["bash", str(K8S / "callout-secrets.sh")], check=True, capture_output=True
        )
        for_nats, ours = (
            secret["stringData"] for secret in yaml.safe_load_all(made.stdout)
        )
        said = dict(
            line.split(": ") for line in for_nats["callout.conf"].strip().splitlines()
        )
        assert AccountKey(ours["issuer"]).public == said["AUTHCALLOUT_ISSUER"]
        assert CurveKey(ours["curve"]).public == said["AUTHCALLOUT_XKEY"]
        login, _, password = ours["password"].partition(":")
        assert login in logins_of(CALLOUT)
        assert said[password_variable(login)] == password
        issuers.add(said["AUTHCALLOUT_ISSUER"])
    assert len(issuers) == 20


def test_nats_reads_what_it_is_given() -> None:
    """Every variable of its configuration is in a file that is mounted there."""
    (volume,) = _pod("nats-patch")["volumes"]
    (mount,) = _pod("nats-patch")["containers"][0]["volumeMounts"]
    text = (TOKENS / "permissions.conf").read_text()
    script = (K8S / "callout-secrets.sh").read_text()

    assert f"include ./{CALLOUT_KEYS}" in text
    assert f"include ./{PASSWORDS}" in text
    assert mount["mountPath"] == f"/etc/nats/{Path(CALLOUT_KEYS).parent}"
    assert f"name: {volume['secret']['secretName']}," in script
    wanted = {name for name in re.findall(r"\$(\w+)", text) if CALLOUT.upper() in name}
    wanted -= {f"{CALLOUT.upper()}_PERMISSIONS"}
    assert wanted == set(re.findall(r"^    (\w+): ", script, re.MULTILINE))
