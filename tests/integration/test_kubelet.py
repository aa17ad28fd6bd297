"""A real kubelet runs pods on devices that our agent prepares.

Only the container runtime is played (`tests.lab.node.light_runtime`): it resolves the
CDI files as containerd does, and writes down what a container would get.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.lab.command_line import drain
from tests.lab.controlplane import objects
from tests.lab.controlplane.client import Json, Kube
from tests.lab.controlplane.server import ControlPlane
from tests.lab.node import light_site
from tests.lab.node.light_site import LightSite
from tests.lab.node.scenarios import hear_of_health, restart_agent_and_kubelet, roll
from tests.lab.node.site import Site
from tests.lab.services import eventually
from tests.lab.soak import sized
from tests.lab.waits import until_told

PODS = sized(10, 50)
"""Started while one instance of the agent replaces another."""


@pytest.fixture(scope="module")
def running(
    control_plane: ControlPlane,
    kubelet_programs: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[LightSite]:
    """A node, NATS, solver and publisher that all tests here share."""
    folder = tmp_path_factory.mktemp("light")
    with light_site.running(control_plane, kubelet_programs, folder) as site:
        yield site


@pytest.fixture
async def site(running: LightSite, kube: Kube, namespace: str) -> AsyncIterator[Site]:
    """What a test needs of it, with a class and a template of its own."""
    async with running.of(kube, namespace) as site:
        yield site


async def test_a_pod_runs_on_what_moorings_decided_and_its_runtime_sees_the_device(
    site: Site,
) -> None:
    """From the agent's announcement to the environment of the container, and back."""
    async with site.running(site.agent("first")):
        pod = await site.until_runs(await site.start("a"))
        claim = await site.claim_of(pod)
        (device,) = claim["status"]["allocation"]["devices"]["results"]
        whole = f"{site.driver}/{device['pool']}/{device['device']}"
        assert site.node.devices_seen(pod) == {whole}
        assert site.records() == [claim["metadata"]["uid"]]
        assert len(site.cdi_files()) == 1
        claim = await site.kube.until(
            claim, lambda found: bool(found["status"].get("devices"))
        )
        (entry,) = claim["status"]["devices"]
        uid = claim["metadata"]["uid"]
        name = f"k8s.{site.driver}/claim={uid}-0-{device['device']}"
        assert entry["data"] == {"cdiDevices": [name]}
        await site.end(pod)
        assert site.cdi_files() == []
        # kubelet deletes what the runtime says is the log: never a file of the machine.
        logs = site.node.kubelet_folder.parent / "logs"
        await eventually(lambda: list(logs.iterdir()) == [], "its log is gone", 60.0)


async def test_what_a_command_says_of_a_nic_follows_in_its_claim(site: Site) -> None:
    """A pod's network comes after its claim was prepared, and links change."""
    answer, sources = site.folder / "answer", site.folder / "sources.yaml"
    nics: Json = {"name": "nics", "kind": "command", "driver": site.driver}
    nics |= {"exec": ["/bin/cat", str(answer)], "readSeconds": 0.5}
    about = {"apiVersion": "moorings.dev/v1alpha1", "kind": "Sources"}
    sources.write_text(json.dumps({**about, "sources": [nics]}))

    def say(status: str, *ips: str) -> None:
        condition = {"type": "LinkUp", "status": status, "reason": "Carrier"}
        network = {"interfaceName": "net1", "ips": ips}
        nic = {"name": "nic-0", "data": {"port": 1}, "conditions": [condition]}
        staged = answer.with_suffix(".new")
        staged.write_text(json.dumps({"devices": [{**nic, "networkData": network}]}))
        staged.rename(answer)

    def says(status: str, ips: list[str]) -> Callable[[Json], bool]:
        def holds(claim: Json) -> bool:
            return any(
                entry["networkData"].get("ips", []) == ips
                and [(c["type"], c["status"]) for c in entry["conditions"]]
                == [("LinkUp", status)]
                for entry in claim["status"].get("devices", ())
                if entry["data"]["port"] == 1
            )

        return holds

    say("False")
    async with site.running(site.agent_of_sources(sources, "nics")):
        # Its pod must not get what is announced no more, nor that of the next test.
        await eventually(partial(has_only, site, "nic"), "the NIC is announced", 60.0)
        pod = await site.until_runs(await site.start("a"))
        claim = await site.claim_of(pod)
        await site.kube.until(claim, says("False", []))
        say("True", "10.1.0.5/24")
        await site.kube.until(claim, says("True", ["10.1.0.5/24"]))
        await site.end(pod)
    async with site.running(site.agent("gpus")):
        await eventually(partial(has_only, site, "gpu"), "the fleet is announced", 60.0)


async def has_only(site: Site, kind: str) -> bool:
    """True once slices have devices of a kind, and no others."""
    select = f"spec.driver={site.driver}"
    slices = await site.kube.list(
        objects.RESOURCE, "ResourceSlice", fieldSelector=select
    )
    devices = [device for each in slices for device in each["spec"].get("devices", ())]
    names = {device["name"].partition("-")[0] for device in devices}
    return names == {kind}


async def test_health_is_told_in_the_status_of_a_running_pod(site: Site) -> None:
    """By kubelet, from our stream: with the message, and well again."""
    async with site.running(site.agent("health")):
        pod = await site.until_runs(await site.start("a"))
        await hear_of_health(site, pod)
        await site.end(pod)


async def test_restarts_of_agent_and_kubelet_leave_running_pods_alone(
    site: Site,
) -> None:
    """Killed at once; afterwards pods start, end, and the slices are back."""
    await restart_agent_and_kubelet(site)


async def test_a_refusal_is_an_event_of_the_pod(site: Site) -> None:
    """In our words; once what is in the way is gone, the pod runs."""
    async with site.running(site.agent("refusal")):
        holder = await site.until_runs(await site.start("a"))
        (record,) = site.folder_of_records().glob("*.json")
        kept = record.read_bytes()
        await site.end(holder)
        # As if kubelet had forgotten the claim: its record is still there.
        record.write_bytes(kept)
        pod = await site.start("b")
        said = await site.event_of(pod, "FailedPrepareDynamicResources")
        assert "is prepared for ResourceClaim" in said
        record.unlink()
        await site.until_runs(pod)
        await site.end(pod)


async def test_what_runs_otherwise_than_was_decided_is_told_until_it_is_over(
    site: Site,
) -> None:
    """A container without a record of ours, a record without its claim.

    Then a pod whose device that record keeps from being prepared, and one whose claim
    somebody frees.
    """
    agent = site.agent("drift", NODEAGENT_DRIFT_LASTS_S="0.5")

    def told(event: str, kind: str) -> bool:
        lines = map(json.loads, agent.log().splitlines())
        return any((line["event"], line.get("kind")) == (event, kind) for line in lines)

    async with site.running(agent):
        pod = await site.until_runs(await site.start("a"))
        (record,) = site.folder_of_records().glob("*.json")
        kept = record.read_bytes()
        kind = "InUseNotPrepared"
        record.unlink()
        await eventually(lambda: told("drift.began", kind), kind, 60.0)
        record.write_bytes(kept)
        await eventually(lambda: told("drift.ended", kind), kind, 60.0)
        await site.end(pod)
        assert not told("drift.began", "PreparedClaimGone")
        assert await site.drifted() == {}
        record.write_bytes(kept)
        waiting = await site.start("b")
        both = ["AllocatedNotPrepared", "PreparedClaimGone"]
        await eventually(partial(are_shown, site, both), "both are shown", 60.0)
        record.unlink()
        for kind in both:
            await eventually(partial(told, "drift.ended", kind), kind, 60.0)
        await site.until_runs(waiting)
        assert await site.drifted() == {}
        freed = {"status": {"allocation": None, "reservedFor": None}}
        await site.kube.patch(await site.claim_of(waiting), freed, "status")
        both = ["InUseNotAllocated", "PreparedClaimGone"]
        await eventually(partial(are_shown, site, both), "both are shown", 60.0)
        await site.end(waiting)


async def are_shown(site: Site, kinds: list[str]) -> bool:
    """Whether one device has drifted, in these ways."""
    return list((await site.drifted()).values()) == [kinds]


async def test_a_drained_node_is_free_once_its_driver_has_unprepared(
    site: Site, control_plane: ControlPlane, tmp_path: Path
) -> None:
    """The driver goes on unpreparing; what comes meanwhile gets nothing there."""
    admin = control_plane.kubeconfig()
    where = f"--node={site.node.name}"
    async with site.running(site.agent("drain")):
        pod = await site.until_runs(await site.start("a"))
        waiting = asyncio.create_task(drain(admin, tmp_path, where))
        late = await eventually_tainted(site)
        assert not waiting.done()
        assert len(site.records()) == 1
        await site.kube.delete(pod)
        done = await waiting
        assert (done.returncode, site.records()) == (0, []), done.stderr
        assert "Running" not in json.dumps((await site.kube.get(late))["status"])
        undone = await drain(admin, tmp_path, where, "--undo")
        assert undone.returncode == 0, undone.stderr
        await site.until_runs(late)
        await site.end(late)


async def eventually_tainted(site: Site) -> Json:
    """Wait until the node gives out nothing; gives a pod that waits for it."""

    async def marked() -> bool:
        rules = await site.kube.list(objects.RESOURCE, "DeviceTaintRule")
        pools = [rule["spec"]["deviceSelector"].get("pool") for rule in rules]
        return site.node.name in pools

    await eventually(marked, "the node is marked", 60.0)
    pod = await site.start("late")
    await until_told(site.kube, pod, "GangDevicesTainted", 60.0)
    return pod


async def test_pods_start_while_one_instance_replaces_another(site: Site) -> None:
    """The newer one is there before the older one leaves: no start fails."""
    await roll(site, PODS)
