"""A real kubelet runs pods on devices that our agent prepares.

Only the container runtime is played (`tests.lab.node.light_runtime`): it resolves the
CDI files as containerd does, and writes down what a container would get.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import secrets
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from msgspec import Struct

from tests.lab.cluster import Stack, started
from tests.lab.cluster import gang_pod as make_gang_pod
from tests.lab.controlplane import objects
from tests.lab.controlplane.client import Json, Kube, named
from tests.lab.controlplane.fleet import runs
from tests.lab.controlplane.server import ControlPlane
from tests.lab.node import light
from tests.lab.node.light import LightNode
from tests.lab.services import Process, eventually

FLEET = """
apiVersion: moorings.dev/v1alpha1
kind: Fleet
name: light
nodes:
- shape: n
  name: {node}
  count: 1
  devices:
  - {{driver: {driver}, count: 64, pool: "{{node}}", name: "gpu-{{index}}"}}
"""
RUNNING_S = 60.0


class Site(Struct, frozen=True, kw_only=True):
    """A node with its agent, beside a whole Moorings."""

    kube: Kube
    namespace: str
    node: LightNode
    stack: Stack
    folder: Path
    driver: str

    def agent(self, instance: str = "", **more: str) -> Process:
        """Make the agent of the node, or another instance of it."""
        return Process(
            "nodeagent",
            self.folder / f"agent-{instance}.log",
            NODEAGENT_SERVERS=self.stack.nats.url,
            NODEAGENT_FLEET=str(self.folder / "fleet.yaml"),
            NODEAGENT_FAULTS_FILE=str(self.folder / "faults.yaml"),
            NODEAGENT_NODE=self.node.name,
            NODEAGENT_KUBELET_FOLDER=str(self.node.kubelet_folder),
            NODEAGENT_CDI_FOLDER=str(self.node.cdi_folder),
            NODEAGENT_KUBECONFIG=str(self.folder / "admin.kubeconfig"),
            NODEAGENT_INSTANCE=instance,
            NODEAGENT_UNKNOWN_AFTER_S="0.5",
            NODEAGENT_GOOD_READINGS="1",
            NODEAGENT_RECOVERY_S="0",
            **more,
        )

    @contextlib.asynccontextmanager
    async def running(self, agent: Process) -> AsyncIterator[Process]:
        """Run an agent while the block runs; kubelet knows it when this yields."""
        agent.start()
        try:
            await eventually(
                lambda: '"plugin.registered"' in agent.log(), "registered", 60.0
            )
            yield agent
        finally:
            agent.close()

    async def start(self, name: str, *command: str) -> Json:
        """Create a pod of a gang of its own with one device."""
        pod = make_gang_pod(
            self.namespace,
            name,
            gang=name,
            size=1,
            templates={"d": "one"},
            nodeSelector={"light": self.node.name},
            tolerations=[{"operator": "Exists"}],
            automountServiceAccountToken=False,
            enableServiceLinks=False,
            hostNetwork=True,
            restartPolicy="Never",
            terminationGracePeriodSeconds=1,
        )
        pod["spec"]["containers"][0]["command"] = list(command) or ["wait"]
        return await self.kube.create(pod)

    async def until_runs(self, pod: Json) -> Json:
        """Wait until kubelet says that a pod runs."""
        return await self.kube.until(pod, runs, RUNNING_S)

    async def end(self, pod: Json, *, nothing_left: bool = True) -> None:
        """Delete a pod and wait until it is gone, and unprepared."""
        await self.kube.delete(pod)
        await self.kube.until_gone(pod)
        if nothing_left:
            await eventually(lambda: self.records() == [], "unprepared")

    async def claim_of(self, pod: Json) -> Json:
        """Read the one claim of a pod."""
        pod = await self.kube.get(pod)
        (entry,) = pod["status"]["resourceClaimStatuses"]
        name = entry["resourceClaimName"]
        return await self.kube.get(
            named(objects.RESOURCE, "ResourceClaim", name, self.namespace)
        )

    def inject(self, faults: str) -> None:
        """Have the agent find these faults from now on."""
        staged = self.folder / "faults.tmp"
        staged.write_text(faults)
        staged.rename(self.folder / "faults.yaml")

    def forget_log(self, instance: str) -> None:
        """Empty the log of an agent, so that what it says next is new."""
        (self.folder / f"agent-{instance}.log").write_text("")

    async def slices(self) -> set[str]:
        """Read the uids of the slices of the driver."""
        select = f"spec.driver={self.driver}"
        found = await self.kube.list(
            objects.RESOURCE, "ResourceSlice", fieldSelector=select
        )
        return {entry["metadata"]["uid"] for entry in found}

    async def are_new(self, before: set[str]) -> bool:
        """Whether there are slices, and none of those from before."""
        now = await self.slices()
        return bool(now) and not now & before

    async def event_of(self, pod: Json, reason: str) -> str:
        """Wait for an event about a pod; gives its message."""
        said: list[str] = []

        async def told() -> bool:
            events = await self.kube.list("v1", "Event", self.namespace)
            said[:] = [
                event["message"]
                for event in events
                if event["reason"] == reason
                and event["involvedObject"]["uid"] == pod["metadata"]["uid"]
            ]
            return bool(said)

        await eventually(told, reason, 60.0)
        return said[0]

    async def reasons(self) -> set[str]:
        """Give the reasons of all events of the namespace."""
        events = await self.kube.list("v1", "Event", self.namespace)
        return {event["reason"] for event in events}

    def folder_of_records(self) -> Path:
        """Where the agent keeps its records."""
        return self.node.kubelet_folder / "plugins" / self.driver / "claims"

    def records(self) -> list[str]:
        """List the claims that the agent keeps."""
        return sorted(path.stem for path in self.folder_of_records().glob("*.json"))

    def cdi_files(self) -> list[str]:
        """List the CDI files."""
        return sorted(path.name for path in self.node.cdi_folder.glob("*.json"))


class _Running(NamedTuple):
    node: LightNode
    stack: Stack
    folder: Path
    driver: str


@pytest.fixture(scope="module")
def running(
    control_plane: ControlPlane,
    kubelet_programs: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[_Running]:
    """A node, NATS, solver and publisher that all tests here share."""
    folder = tmp_path_factory.mktemp("light")
    name = f"light-{secrets.token_hex(4)}"
    driver = f"{name}.example.com"
    (folder / "fleet.yaml").write_text(FLEET.format(node=name, driver=driver))
    (folder / "admin.kubeconfig").write_text(control_plane.kubeconfig().read_text())
    with (
        started(control_plane, folder) as stack,
        light.running(control_plane, kubelet_programs, name) as node,
    ):
        yield _Running(node, stack, folder, driver)


@pytest.fixture
async def site(running: _Running, kube: Kube, namespace: str) -> AsyncIterator[Site]:
    """What a test needs of it, with a class and a template of its own."""
    device_class = await kube.create(objects.device_class(namespace, running.driver))
    await kube.create(objects.template(namespace, "one", objects.requests(namespace)))
    (running.folder / "faults.yaml").unlink(missing_ok=True)
    site = Site(kube=kube, namespace=namespace, **running._asdict())
    yield site
    await kube.delete(device_class)


async def test_a_pod_runs_on_what_moorings_decided_and_its_runtime_sees_the_device(
    site: Site,
) -> None:
    """From the agent's announcement to the environment of the container, and back."""
    async with site.running(site.agent("first")):
        pod = await site.until_runs(await site.start("a"))
        claim = await site.claim_of(pod)
        (device,) = claim["status"]["allocation"]["devices"]["results"]
        seen = site.node.container(site.namespace, "a")
        whole = f"{site.driver}/{device['pool']}/{device['device']}"
        assert [entry.partition("=")[2] for entry in seen["env"]] == [whole]
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
        logs = site.node.folder / "logs"
        await eventually(lambda: list(logs.iterdir()) == [], "its log is gone", 60.0)


async def test_health_is_told_in_the_status_of_a_running_pod(site: Site) -> None:
    """By kubelet, from our stream: with the message, and well again."""
    async with site.running(site.agent("health")):
        pod = await site.until_runs(await site.start("a"))
        await site.kube.until(pod, lambda found: health_of(found) == [("Healthy", "")])
        claim = await site.claim_of(pod)
        (device,) = claim["status"]["allocation"]["devices"]["results"]
        fault = {
            "node": site.node.name,
            "device": device["device"],
            "verdict": "Unknown",
            "message": "no answer",
        }
        site.inject(json.dumps({"faults": [fault]}))
        sick = [("Unknown", "no answer")]
        await site.kube.until(pod, lambda found: health_of(found) == sick)
        site.inject("")
        await site.kube.until(pod, lambda found: health_of(found)[0][0] == "Healthy")
        await site.end(pod)


async def test_restarts_of_agent_and_kubelet_leave_running_pods_alone(
    site: Site,
) -> None:
    """Killed at once; afterwards pods start, end, and the slices are back."""
    agent = site.agent("restart")
    async with site.running(agent):
        first = await site.until_runs(await site.start("a"))
        agent.kill()
        site.forget_log("restart")
        async with site.running(agent):
            second = await site.until_runs(await site.start("b"))
            before = await site.slices()
            site.forget_log("restart")
            site.node.kill_kubelet()
            await asyncio.to_thread(site.node.start_kubelet)
            # kubelet's start deletes the slices of its node.
            await eventually(lambda: site.are_new(before), "slices are back", 60.0)
            await eventually(
                lambda: '"plugin.registered"' in agent.log(), "registered again", 60.0
            )
            third = await site.until_runs(await site.start("c"))
            for pod in (first, second, third):
                found = await site.kube.get(pod)
                assert runs(found)
                assert found["status"]["containerStatuses"][0]["restartCount"] == 0
            assert len(site.records()) == 3
            for pod in (first, second, third):
                await site.end(pod, nothing_left=False)
            await eventually(lambda: site.records() == [], "all unprepared")


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
    """A container without a record of ours, then a record without its claim."""
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
        kind = "PreparedClaimGone"
        assert not told("drift.began", kind)
        record.write_bytes(kept)
        await eventually(lambda: told("drift.began", kind), kind, 60.0)
        record.unlink()
        await eventually(lambda: told("drift.ended", kind), kind, 60.0)


async def test_fifty_pods_start_while_one_instance_replaces_another(site: Site) -> None:
    """The newer one is there before the older one leaves: no start fails."""
    older, newer = site.agent("uid-1"), site.agent("uid-2")
    async with site.running(older):
        pods = [await site.start(f"p-{number}") for number in range(25)]
        async with site.running(newer):
            pods += [await site.start(f"p-{number}") for number in range(25, 50)]
            assert older.stop() == 0
            await asyncio.gather(*map(site.until_runs, pods))
            reasons = await site.reasons()
            assert "FailedPrepareDynamicResources" not in reasons
            registry = site.node.kubelet_folder / "plugins_registry"
            sockets = [path.name for path in registry.glob(f"{site.driver}*")]
            assert sockets == [f"{site.driver}-uid-2-reg.sock"]
            for pod in pods:
                await site.kube.delete(pod)
            # What the older one prepared, the newer one unprepares.
            await eventually(lambda: site.records() == [], "unprepared", 60.0)
            assert site.cdi_files() == []


def health_of(pod: Json) -> list[tuple[str, str]]:
    """Give health and message of each device that the status of a pod lists."""
    return [
        (found["health"], found.get("message", ""))
        for container in pod["status"].get("containerStatuses", ())
        for resource in container.get("allocatedResourcesStatus", ())
        for found in resource["resources"]
    ]
