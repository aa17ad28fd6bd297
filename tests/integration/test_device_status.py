"""A device that fails shows in the claims that hold it, on the real API server."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.lab.agent_objects import Agents, said, taints
from tests.lab.controlplane import objects
from tests.lab.controlplane.client import APPLY, Json, Kube, named, path_of
from tests.lab.controlplane.fleet import only
from tests.lab.controlplane.server import ControlPlane

RBAC = "rbac.authorization.k8s.io/v1"


async def held(agents: Agents, namespace: str, *devices: str) -> Json:
    """Make a claim that holds devices of the agent's pool."""
    spec = objects.requests("none", len(devices))
    claim = await agents.kube.create(objects.claim(namespace, "held", spec))
    results = [
        {"request": "r", "driver": agents.driver, "pool": agents.node, "device": name}
        for name in devices
    ]
    terms = [{"matchFields": [only(agents.node)]}]
    allocation = {
        "devices": {"results": results},
        "nodeSelector": {"nodeSelectorTerms": terms},
    }
    status = {"allocation": allocation}
    return await agents.kube.update({**claim, "status": status}, "status")


def ready(claim: Json) -> dict[str, tuple[str, str]]:
    """Give status and reason of the condition Ready of each device that has one."""
    return {
        entry["device"]: (condition["status"], condition["reason"])
        for entry in claim["status"].get("devices", ())
        for condition in entry.get("conditions") or ()
        if condition["type"] == "Ready"
    }


async def test_health_shows_in_claims_beside_what_others_say(
    agents: Agents, namespace: str
) -> None:
    claim = await held(agents, namespace, "gpu-0", "gpu-1")
    entry = {"driver": agents.driver, "pool": agents.node, "device": "gpu-0"}
    theirs = named(claim["apiVersion"], claim["kind"], "held", namespace)
    theirs["status"] = {"devices": [{**entry, "data": {"link": "up"}}]}
    path = path_of(theirs, "status")
    await agents.kube.request("PATCH", path, theirs, media=APPLY, fieldManager="driver")
    async with agents.running():
        await agents.announce(agents.pool(2))
        await agents.judge("gpu-0")
        sick = {"gpu-0": ("False", "Unhealthy")}
        found = await agents.kube.until(claim, lambda item: ready(item) == sick)
        assert found["status"]["devices"][0]["data"] == {"link": "up"}
        await agents.judge("gpu-1")
        turned = {"gpu-0": ("True", "Healthy"), "gpu-1": ("False", "Unhealthy")}
        await agents.kube.until(claim, lambda item: ready(item) == turned)


async def test_claim_that_gets_a_sick_device_says_so(
    agents: Agents, namespace: str
) -> None:
    async with agents.running():
        await agents.announce(agents.pool(2))
        await agents.judge("gpu-0")
        await agents.slices(lambda items: bool(taints(items)))
        claim = await held(agents, namespace, "gpu-0")
        sick = {"gpu-0": ("False", "Unhealthy")}
        await agents.kube.until(claim, lambda item: ready(item) == sick)


async def test_missing_permission_is_named_once_and_slices_go_on(
    agents: Agents,
    namespace: str,
    control_plane: ControlPlane,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    token = await token_without_driver_rule(agents.kube, namespace)
    control_plane.write_kubeconfig(kubeconfig, token)
    limited = replace(agents, kubeconfig=kubeconfig)
    claim = await held(agents, namespace, "gpu-0")
    async with limited.running():
        await agents.announce(agents.pool(2))
        await agents.judge("gpu-0")
        output = await said(capsys, "resourceclaims/driver")
        await agents.judge("gpu-0", "gpu-1")
        await agents.slices(lambda items: len(taints(items)) == 2)
    output += capsys.readouterr().out
    assert output.count("outage.began") == 1
    assert "verb arbitrary-node:patch on resourceclaims/driver" in output
    assert ready(await agents.kube.get(claim)) == {}


async def token_without_driver_rule(kube: Kube, namespace: str) -> str:
    """Make an account that may all but speak for drivers; gives its token."""
    resource = "resource.k8s.io"
    everything = ["get", "list", "watch", "create", "patch", "update", "delete"]
    objects_of_ours = ["resourceslices", "devicetaintrules", "resourceclaims"]
    rules = [
        {"apiGroups": [""], "resources": ["nodes"], "verbs": everything},
        {"apiGroups": [resource], "resources": objects_of_ours, "verbs": everything},
        {
            "apiGroups": [resource],
            "resources": ["resourceclaims/status"],
            "verbs": ["patch"],
        },
    ]
    role = named(RBAC, "ClusterRole", namespace)
    binding = named(RBAC, "ClusterRoleBinding", namespace)
    subject = {"kind": "ServiceAccount", "name": "default", "namespace": namespace}
    reference = {"apiGroup": RBAC.partition("/")[0], "kind": "ClusterRole"}
    await kube.create({**role, "rules": rules})
    await kube.create(
        {**binding, "roleRef": {**reference, "name": namespace}, "subjects": [subject]}
    )
    account = named("v1", "ServiceAccount", "default", namespace)
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest"}
    answer = await kube.request(
        "POST", path_of(account, "token"), {**request, "spec": {}}
    )
    return str(answer["status"]["token"])
