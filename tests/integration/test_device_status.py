"""What is known of devices shows in the claims that hold them, on a real API server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace

from contracts.ids import ClaimRef, ClaimUID, DeviceID, DriverName, Namespace, NodeName
from contracts.names import AGENT_MANAGER
from nodeagent.kubelet.claims import ClaimReader
from nodeagent.kubelet.metadata_files import MetadataFiles
from nodeagent.kubelet.preparer import Preparer
from nodeagent.kubelet.status_writer import PreparedStatusWriter
from nodeagent.prepare.cdi_files import CdiFiles
from nodeagent.prepare.checkpoint import Checkpoint
from nodeagent.sources.source import (
    DeviceCondition,
    DeviceDescription,
    NetworkDescription,
)
from runtime.bus.bus import Bus
from runtime.kube.api import KubernetesApi
from tests.builders.prepared import Bench
from tests.conftest import OwnControlPlane
from tests.lab.agent_objects import Agents, agents_of, said, taints
from tests.lab.controlplane import objects
from tests.lab.controlplane.client import APPLY, Json, Kube, named, path_of
from tests.lab.controlplane.fleet import only
from tests.lab.controlplane.options import API_SERVER, ETCD, Options
from tests.lab.controlplane.server import ControlPlane
from tests.lab.nats_server import LabServer

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


class Nics(Bench):
    """A source of NICs."""

    addresses: tuple[str, ...] = ("10.0.0.5/24", "fd00::5/64")
    link = DeviceCondition(type="LinkUp", status="True", reason="Carrier")

    async def describe(self, device: DeviceID) -> DeviceDescription:
        """Say what a NIC does."""
        network = NetworkDescription(
            interface="eth0",
            hardware_address="02:00:00:00:00:05",
            addresses=self.addresses,
        )
        data = {"numaNode": len(device.device)}
        return DeviceDescription(data=data, conditions=(self.link,), network=network)


@asynccontextmanager
async def preparing(
    agents: Agents, folder: Path, kubeconfig: Path, source: Nics | None = None
) -> AsyncIterator[Preparer]:
    """Prepare claims as an agent does that writes what it knows of their devices."""
    driver, node = DriverName(agents.driver), NodeName(agents.node)
    source = source or Nics("gpu-0", "gpu-1")
    stop = asyncio.Event()
    async with KubernetesApi.open(str(kubeconfig), manager=AGENT_MANAGER) as api:
        reader = ClaimReader(api)
        preparers: list[Preparer] = []
        status = PreparedStatusWriter(reader, source, preparers, follow_s=0.1)
        cdi = CdiFiles(folder / "cdi", driver)
        checkpoint = Checkpoint(folder / "claims", driver, cdi)
        preparer = Preparer(
            driver,
            node,
            source,
            reader.read,
            checkpoint=checkpoint,
            cdi=cdi,
            metadata=MetadataFiles(folder / "m", node, source, are_wanted=False),
            on_prepared=status.note,
        )
        preparer.open()
        preparers.append(preparer)
        writing = asyncio.create_task(status.run(stop))
        try:
            yield preparer
        finally:
            stop.set()
            await writing


def ref_of(claim: Json) -> ClaimRef:
    metadata = claim["metadata"]
    uid = ClaimUID(metadata["uid"])
    return ClaimRef(Namespace(metadata["namespace"]), metadata["name"], uid)


def link_up(claim: Json) -> Json:
    """Give the condition of that type."""
    (entry,) = claim["status"]["devices"]
    found: Json
    (found,) = (one for one in entry["conditions"] if one["type"] == "LinkUp")
    return found


def has_network(claim: Json) -> bool:
    return any("networkData" in entry for entry in claim["status"].get("devices", ()))


async def test_what_the_node_knows_and_health_are_in_one_entry(
    agents: Agents, namespace: str, tmp_path: Path
) -> None:
    """Neither writer takes back what the other said."""
    claim = await held(agents, namespace, "gpu-0")
    uid = claim["metadata"]["uid"]
    data = {"numaNode": 5, "cdiDevices": [f"k8s.{agents.driver}/claim={uid}-0-gpu-0"]}
    network = {
        "interfaceName": "eth0",
        "hardwareAddress": "02:00:00:00:00:05",
        "ips": ["10.0.0.5/24", "fd00::5/64"],
    }
    async with agents.running():
        await agents.announce(agents.pool(2))
        await agents.judge("gpu-0")
        sick = {"gpu-0": ("False", "Unhealthy")}
        await agents.kube.until(claim, lambda item: ready(item) == sick)
        async with preparing(agents, tmp_path, agents.kubeconfig) as preparer:
            await preparer.prepare(ref_of(claim))
            found = await agents.kube.until(claim, has_network)
            (entry,) = found["status"]["devices"]
            assert (entry["data"], entry["networkData"]) == (data, network)
            assert ready(found) == sick
            assert link_up(found)["status"] == "True"
        await agents.judge()
        well = {"gpu-0": ("True", "Healthy")}
        found = await agents.kube.until(claim, lambda item: ready(item) == well)
        (entry,) = found["status"]["devices"]
        assert (entry["data"], entry["networkData"]) == (data, network)


async def test_addresses_and_conditions_follow_the_device(
    agents: Agents, namespace: str, tmp_path: Path
) -> None:
    """A pod's network comes after its claim was prepared, and may change."""
    claim, source = await held(agents, namespace, "gpu-0"), Nics("gpu-0")
    source.addresses = ()
    async with preparing(agents, tmp_path, agents.kubeconfig, source) as preparer:
        await preparer.prepare(ref_of(claim))
        found = await agents.kube.until(claim, has_network)
        since = link_up(found)["lastTransitionTime"]
        assert "ips" not in found["status"]["devices"][0]["networkData"]
        source.addresses = ("10.1.0.5/24",)
        found = await agents.kube.until(claim, lambda item: addresses(item) != [])
        assert addresses(found) == ["10.1.0.5/24"]
        assert link_up(found)["lastTransitionTime"] == since
        source.link = replace(source.link, status="False", reason="NoCarrier")
        found = await agents.kube.until(
            claim, lambda item: link_up(item)["status"] == "False"
        )
        assert addresses(found) == ["10.1.0.5/24"]


def addresses(claim: Json) -> list[str]:
    (entry,) = claim["status"]["devices"]
    ips: list[str] = entry["networkData"].get("ips", [])
    return ips


async def test_with_the_gate_off_no_line_says_that_status_was_written(
    own_control_plane: OwnControlPlane,
    bus: Bus,
    nats_server: LabServer,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Neither the agent's nor the publisher's; each says once what is dropped."""
    options = Options(
        programs=(ETCD, API_SERVER),
        emulated_version="1.35",
        feature_gates=("DRAResourceClaimDeviceStatus=false",),
    )
    control_plane = own_control_plane(options)
    async with control_plane.client() as kube:
        agents = await agents_of(control_plane, kube, bus, nats_server)
        claim = await held(agents, "default", "gpu-0")
        async with agents.running():
            await agents.announce(agents.pool(2))
            await agents.judge("gpu-0")
            output = await said(capsys, "device_status.dropped")
            async with preparing(agents, tmp_path, agents.kubeconfig) as preparer:
                await preparer.prepare(ref_of(claim))
                output += await said(capsys, "device_status.dropped")
        assert not (await kube.get(claim))["status"].get("devices")
    output += capsys.readouterr().out
    assert output.count("device_status.dropped") == 2
    assert "its gate DRAResourceClaimDeviceStatus is off" in output
    assert "device_status.written" not in output


async def test_what_was_prepared_before_a_start_is_written_after_it(
    agents: Agents, namespace: str, tmp_path: Path
) -> None:
    """The agent before may have been killed between the two."""
    claim = await held(agents, namespace, "gpu-0")
    async with preparing(agents, tmp_path, agents.kubeconfig) as preparer:
        await preparer.prepare(ref_of(claim))
        found = await agents.kube.until(claim, has_network)
    cleared = {**found, "status": {**found["status"], "devices": []}}
    await agents.kube.update(cleared, "status")
    async with preparing(agents, tmp_path, agents.kubeconfig):
        await agents.kube.until(claim, has_network)


async def test_claims_are_prepared_without_the_right_to_write_of_them(
    agents: Agents,
    namespace: str,
    control_plane: ControlPlane,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The missing right is named once."""
    kubeconfig = tmp_path / "kubeconfig"
    token = await token_without_driver_rule(agents.kube, namespace)
    control_plane.write_kubeconfig(kubeconfig, token)
    claim = await held(agents, namespace, "gpu-0", "gpu-1")
    async with preparing(agents, tmp_path, kubeconfig) as preparer:
        for _ in range(3):
            await preparer.prepare(ref_of(claim))
        output = await said(capsys, "outage.began")
        await preparer.prepare(ref_of(claim))
        assert preparer.checkpoint.claims.keys() == {claim["metadata"]["uid"]}
    output += capsys.readouterr().out
    assert output.count("outage.began") == 1
    assert "patch on resourceclaims/driver" in output
    assert not has_network(await agents.kube.get(claim))


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
