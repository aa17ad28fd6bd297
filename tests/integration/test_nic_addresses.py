"""The addresses of a NIC that a pod was given, read from the agent's own pod.

In real network namespaces, joined as a pod's and its node's are, by pairs of veth; and
the component that gives the agent the capability for it.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
import yaml

from tests.lab.controlplane.client import Kube, RefusedError, named
from tests.lab.controlplane.kubectl import build
from tests.lab.manifests import BASE, K8S, write_site

MAC = "02:00:00:00:00:05"
NODE = """
set -eu
unshare -n sleep 60 & agent=$!
unshare -n sleep 60 & pod=$!
trap 'kill $agent $pod' EXIT
for one in $agent $pod; do
  while [ "$(readlink /proc/$one/ns/net)" = "$(readlink /proc/$$/ns/net)" ]; do :; done
done
ip link add agent0 type veth peer name eth0 netns $agent
ip link add pod0 type veth peer name eth0 netns $pod
ip link add nic type veth peer name wire
ip link set nic address %(mac)s
ip addr add 10.0.0.5/24 dev nic
nsenter -t $agent -n setpriv --bounding-set "$1" --inh-caps -all "$2" -c "$3"
ip link set nic netns $pod
nsenter -t $pod -n ip addr add 10.1.0.5/24 dev nic
nsenter -t $agent -n setpriv --bounding-set "$1" --inh-caps -all "$2" -c "$3"
"""
"""A node with an agent in a pod's network; its NIC goes to another pod."""
LOOK = f"""
import json
from nodeagent.sources.sysfs.addresses import find_network
from nodeagent.sources.sysfs.functions import Interface
found = find_network("0000:3b:00.0", Interface(name="nic", path="", mac={MAC!r}))
print(json.dumps(found.addresses))
"""


def look_from_a_pod(capabilities: str) -> list[list[str]]:
    """Return what an agent sees of a NIC in the node and then in a pod."""
    script = NODE % {"mac": MAC}
    command = ["unshare", "-n", "sh", "-c", script, "sh", capabilities]
    told = subprocess.run(
        [*command, sys.executable, LOOK],
        capture_output=True,
        check=True,
        text=True,
        timeout=120,
    )
    return [json.loads(line) for line in told.stdout.splitlines()]


def has_namespaces() -> bool:
    """True if this machine lets us make networks of our own."""
    programs = ("unshare", "nsenter", "setpriv", "ip")
    if os.geteuid() != 0 or not all(map(shutil.which, programs)):
        return False
    probe = ["unshare", "-n", "ip", "link", "add", "probe0", "type", "veth"]
    return subprocess.run(probe, capture_output=True, check=False).returncode == 0


@pytest.mark.skipif("not has_namespaces()", reason="no network namespaces here")
def test_addresses_are_read_from_the_node_and_from_pods_with_one_capability() -> None:
    """CAP_NET_ADMIN alone; without it nothing is told and nothing fails."""
    assert look_from_a_pod("-all,+net_admin") == [["10.0.0.5/24"], ["10.1.0.5/24"]]
    assert look_from_a_pod("-all") == [[], []]


async def test_agents_that_read_nic_addresses_have_one_capability(
    control_plane_programs: Path, kube: Kube, tmp_path: Path
) -> None:
    """The policy of their namespace lets them, and nobody else, and nothing more."""
    built = build(control_plane_programs, _write_site(tmp_path / "site"))
    (agent,) = (thing for thing in built if thing["kind"] == "DaemonSet")
    (container,) = agent["spec"]["template"]["spec"]["containers"]
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"], "add": ["NET_ADMIN"]},
    }
    (policy,) = (
        thing
        for thing in built
        if thing["kind"] == "ValidatingAdmissionPolicy"
        and thing["metadata"]["name"] == "moorings-pods"
    )
    _, rule, *_ = policy["spec"]["validations"]
    variables = policy["spec"]["variables"]
    name = f"nic-addresses-{secrets.token_hex(4)}"
    space = await kube.create(named("v1", "Namespace", name))
    kind = "admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy"
    selector = {"matchLabels": {"kubernetes.io/metadata.name": name}}
    constraints = {
        **policy["spec"]["matchConstraints"],
        "namespaceSelector": selector,
    }
    made = await kube.create(
        {
            **named(*kind, name),
            "spec": {
                "matchConstraints": constraints,
                "variables": variables,
                "validations": [rule],
            },
        }
    )
    binding = await kube.create(
        {
            **named(kind[0], f"{kind[1]}Binding", name),
            "spec": {"policyName": name, "validationActions": ["Deny"]},
        }
    )
    reason = "no capability but an agent's NET_ADMIN, and gains no privilege"
    async with asyncio.timeout(60):
        while await _try_pod(kube, name, "solver", "NET_ADMIN") == "":  # noqa: ASYNC110 # until it holds
            await asyncio.sleep(0.2)
    assert reason in await _try_pod(kube, name, "solver", "NET_ADMIN")
    assert reason in await _try_pod(kube, name, "nodeagent", "SYS_ADMIN")
    assert await _try_pod(kube, name, "nodeagent", "NET_ADMIN") == ""
    assert await _try_pod(kube, name, "solver") == ""
    for thing in (binding, made, space):
        await kube.delete(thing)


def _write_site(folder: Path) -> Path:
    site = write_site(folder, BASE, {"drivers": "", "classes": ""})
    written = yaml.safe_load((site / "kustomization.yaml").read_text())
    component = os.path.relpath(K8S / "components" / "nic-addresses", site)
    written["components"].append(component)
    (site / "kustomization.yaml").write_text(yaml.safe_dump(written))
    return site


async def _try_pod(kube: Kube, space: str, account: str, *added: str) -> str:
    """Try a pod of a service account with some capabilities; returns the refusal."""
    capabilities = {"drop": ["ALL"], "add": list(added)}
    container = {
        "name": "c",
        "image": "i",
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": capabilities,
        },
    }
    account_of = named("v1", "ServiceAccount", account, space)
    with suppress(RefusedError):
        await kube.create(account_of)
    spec = {"serviceAccountName": account, "containers": [container]}
    pod = {**named("v1", "Pod", "p", space), "spec": spec}
    try:
        await kube.create(pod, dryRun="All")
    except RefusedError as error:
        return str(error)
    return ""
