"""A node of a real kubelet with our agent, beside a whole Moorings."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Protocol

from msgspec import Struct

from tests.lab.cluster import Stack
from tests.lab.cluster import gang_pod as make_gang_pod
from tests.lab.command_line import moorings
from tests.lab.controlplane import objects
from tests.lab.controlplane.client import Json, Kube, named
from tests.lab.controlplane.fleet import runs
from tests.lab.node.node import BUSYBOX
from tests.lab.services import Process, eventually

_FLEET = """
apiVersion: moorings.dev/v1alpha1
kind: Fleet
name: node
nodes:
- shape: n
  name: {node}
  count: 1
  devices:
  - {{driver: {driver}, count: {count}, pool: "{{node}}", name: "{name}-{{index}}"}}
"""
WAITS = (*("sh", "-c"), "env; trap 'exit 0' TERM; while :; do sleep 0.2; done")
"""What a container runs until it is told to end."""
RUNNING_S = 120.0


def write_fleet(
    folder: Path, node: str, driver: str, *, count: int = 64, name: str = "gpu"
) -> None:
    """Say to the agents of a folder which devices the one node has."""
    text = _FLEET.format(node=node, driver=driver, count=count, name=name)
    (folder / "fleet.yaml").write_text(text)


class KubeletNode(Protocol):
    """A node of either tier: containers that run, or that are only written down."""

    name: str
    kubelet_folder: Path
    cdi_folder: Path

    def devices_seen(self, pod: Json) -> set[str]:
        """Give the devices that the environment of a pod's container names."""

    def kill_kubelet(self) -> None:
        """End kubelet at once; containers go on."""

    def start_kubelet(self) -> None:
        """Start kubelet again."""


class Site(Struct, frozen=True, kw_only=True):
    """A node with its agent, beside a whole Moorings."""

    kube: Kube
    namespace: str
    node: KubeletNode
    stack: Stack
    folder: Path
    driver: str

    def agent(self, instance: str = "", **more: str) -> Process:
        """Make the agent of the node, or another instance of it."""
        return self._make_agent(
            instance,
            NODEAGENT_FLEET=str(self.folder / "fleet.yaml"),
            NODEAGENT_FAULTS_FILE=str(self.folder / "faults.yaml"),
            **more,
        )

    def agent_of_sources(self, sources: Path, instance: str) -> Process:
        """Make an agent of the node that has what a sources file names."""
        return self._make_agent(instance, NODEAGENT_SOURCES=str(sources))

    def _make_agent(self, instance: str, **more: str) -> Process:
        return Process(
            "nodeagent",
            self.folder / f"agent-{instance}.log",
            NODEAGENT_SERVERS=self.stack.nats.url,
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
            nodeSelector={"kubernetes.io/hostname": self.node.name},
            tolerations=[{"operator": "Exists"}],
            automountServiceAccountToken=False,
            enableServiceLinks=False,
            hostNetwork=True,
            restartPolicy="Never",
            terminationGracePeriodSeconds=1,
        )
        image = {"image": BUSYBOX, "imagePullPolicy": "IfNotPresent"}
        pod["spec"]["containers"][0] |= {"command": list(command or WAITS), **image}
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

    async def drifted(self) -> dict[str, list[str]]:
        """Ask `moorings get devices` what drifted: kinds by device."""
        answer = await asyncio.to_thread(
            moorings,
            *("get", "devices", "--state=drifted", f"--node={self.node.name}"),
            *("-o", "json"),
            home=self.folder,
            server=self.stack.nats.url,
        )
        assert answer.returncode == 0, answer.stderr
        return {
            row["name"]: sorted(drift["kind"] for drift in row["drift"])
            for row in json.loads(answer.stdout)
        }

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


def health_of(pod: Json) -> list[tuple[str, str]]:
    """Give health and message of each device that the status of a pod lists."""
    return [
        (found["health"], found.get("message", ""))
        for container in pod["status"].get("containerStatuses", ())
        for resource in container.get("allocatedResourcesStatus", ())
        for found in resource["resources"]
    ]
