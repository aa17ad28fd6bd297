"""A few nodes with devices of one driver, for tests of what becomes of claims.

Everything is named after the namespace, so that many fleets live on one control plane.
Allocations are written by hand, as the test says: nothing of ours decides.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from datetime import UTC, datetime
from typing import Any

from tests.lab.controlplane import kubelet, objects
from tests.lab.controlplane.client import Json, Kube, RefusedError, named
from tests.lab.controlplane.objects import RESOURCE

FINALIZER = "resource.kubernetes.io/delete-protection"


class Fleet:
    """Nodes with devices, and objects for them in one namespace."""

    def __init__(self, kube: Kube, namespace: str, nodes: Sequence[str]) -> None:
        self.kube = kube
        self.namespace = namespace
        self.nodes = [f"{namespace}-{name}" for name in nodes]
        self.driver = f"{namespace}.example.com"
        self.device_class = namespace
        self.labels = {"test": namespace}
        """Of every node; pods ask for it, to stay off the nodes of others."""
        self.kubelets: kubelet.Kubelets
        self._published: list[Json] = []

    @property
    def a(self) -> str:
        """The first node."""
        return self.nodes[0]

    @property
    def b(self) -> str:
        """The second node."""
        return self.nodes[1]

    @property
    def c(self) -> str:
        """The third node."""
        return self.nodes[2]

    async def publish(self, *resources: Json) -> None:
        """Create what belongs to no namespace; it goes with the nodes."""
        self._published += resources
        await asyncio.gather(*map(self.kube.create, resources))

    async def withdraw(self) -> None:
        """Delete all that was published and is there still."""
        for resource in self._published:
            with contextlib.suppress(RefusedError):
                await self.kube.delete(resource)

    async def claim(self, name: str, count: int = 1, **request: Any) -> Json:
        """Create a claim with one request."""
        spec = objects.requests(self.device_class, count, **request)
        return await self.kube.create(objects.claim(self.namespace, name, spec))

    async def template(self, name: str) -> Json:
        """Create a claim template with one request."""
        spec = objects.requests(self.device_class)
        return await self.kube.create(objects.template(self.namespace, name, spec))

    def pod(self, name: str, *claims: Json, **spec: Any) -> Json:
        """Describe a pod that uses claims."""
        names = {
            claim["metadata"]["name"]: claim["metadata"]["name"] for claim in claims
        }
        return objects.pod(
            self.namespace, name, claims=names, node_selector=self.labels, **spec
        )

    async def create_pod(self, name: str, *claims: Json, **spec: Any) -> Json:
        """Create a pod that uses claims."""
        return await self.kube.create(self.pod(name, *claims, **spec))

    async def generated(self, pod: Json) -> Json:
        """Wait for the claim that is made for a pod from its one template."""
        pod = await self.kube.until(
            pod, lambda p: "resourceClaimStatuses" in p["status"]
        )
        name = pod["status"]["resourceClaimStatuses"][0]["resourceClaimName"]
        return await self.kube.get(
            named(RESOURCE, "ResourceClaim", name, self.namespace)
        )

    async def failed(self, pod: Json, *, times: int, within_s: float = 120.0) -> None:
        """Wait until kube-scheduler has tried in vain to schedule a pod, so often."""
        path = f"/api/v1/namespaces/{self.namespace}/events"
        selected = f"involvedObject.uid={pod['metadata']['uid']}"
        selected += ",reason=FailedScheduling"
        async with (
            asyncio.timeout(within_s),
            aclosing(self.kube.watch(path, "0", fieldSelector=selected)) as events,
        ):
            event_count = 0
            async for event in events:
                event_count += event["type"] in {"ADDED", "MODIFIED"}
                if event_count == times:
                    return

    def allocation(
        self,
        node: str,
        device: str = "dev-0",
        *,
        stamped: bool = True,
        result: Mapping[str, Any] = {},
    ) -> Json:
        """Describe the allocation of a node's device."""
        fields = {"request": "r", "driver": self.driver, "pool": node, "device": device}
        made: Json = {
            "devices": {"results": [{**fields, **result}]},
            "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [only(node)]}]},
        }
        if stamped:
            made["allocationTimestamp"] = now()
        return made

    async def allocate(
        self,
        claim: Json,
        node: str,
        device: str = "dev-0",
        *,
        pods: Sequence[Json] = (),
        stamped: bool = True,
        protected: bool = True,
        result: Mapping[str, Any] = {},
    ) -> Json:
        """Write the finalizer, then the allocation with its reservations."""
        if protected:
            claim = await self.protect(claim)
        status = {
            "allocation": self.allocation(node, device, stamped=stamped, result=result),
            "reservedFor": [reservation(pod) for pod in pods],
        }
        return await self.kube.update({**claim, "status": status}, "status")

    async def protect(self, claim: Json) -> Json:
        """Write Kubernetes' finalizer on a claim."""
        meta = claim["metadata"]
        patch = {
            "resourceVersion": meta["resourceVersion"],
            "finalizers": [*meta.get("finalizers", ()), FINALIZER],
        }
        return await self.kube.patch(claim, {"metadata": patch})

    async def open_gate(self, pod: Json) -> None:
        """Hand a pod over to kube-scheduler."""
        await self.kube.patch(pod, [{"op": "remove", "path": "/spec/schedulingGates"}])

    async def controller_manager_caught_up(self) -> None:
        """Wait until kube-controller-manager has acted on all that was written before.

        It takes what changed in order: a later claim that came and went is the proof.
        """
        name = f"last-{secrets.token_hex(4)}"
        await self.template(name)
        pod = objects.pod(self.namespace, name, templates={"d": name}, gated=True)
        pod = await self.kube.create(pod)
        claim = await self.generated(pod)
        await self.kube.delete(pod)
        await self.kube.until_gone(claim)


@asynccontextmanager
async def running(
    kube: Kube,
    namespace: str,
    nodes: Sequence[str] = ("a", "b"),
    devices: Sequence[Json] = tuple(objects.devices(4)),
    *,
    cordoned: Sequence[str] = (),
    labels: Mapping[str, Mapping[str, str]] = {},
) -> AsyncIterator[Fleet]:
    """Make nodes, each with a pool of devices, and their class while the block runs.

    Nodes are cordoned from the start, so that kube-scheduler never sees them otherwise.
    `labels`: what some nodes have besides those of all.
    """
    fleet = Fleet(kube, namespace, nodes)
    made = [objects.device_class(fleet.device_class, fleet.driver)]
    if devices:
        made += [objects.resource_slice(fleet.driver, n, devices) for n in fleet.nodes]
    hosts = [
        objects.node(name, {**fleet.labels, **labels.get(short, {})})
        for name, short in zip(fleet.nodes, nodes, strict=True)
    ]
    for host, name in zip(hosts, nodes, strict=True):
        host["spec"] = {"unschedulable": name in cordoned}
    try:
        await fleet.publish(*made)
        async with kubelet.running(kube, hosts) as fleet.kubelets:
            yield fleet
    finally:
        await fleet.withdraw()


def only(node: str) -> Json:
    """Describe that one node, as a field to be matched."""
    return {"key": "metadata.name", "operator": "In", "values": [node]}


def pinned(node: str) -> Json:
    """Describe the affinity of a pod that may run on one node only."""
    terms = {"nodeSelectorTerms": [{"matchFields": [only(node)]}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}


def reservation(pod: Json) -> Json:
    """Describe that a pod uses a claim."""
    meta = pod["metadata"]
    return {"resource": "pods", "name": meta["name"], "uid": meta["uid"]}


def now() -> str:
    """Give the time as allocations carry it: whole seconds."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def allocated(claim: Json) -> bool:
    """Tell whether a claim has devices."""
    return "allocation" in claim.get("status", {})


def users(claim: Json) -> list[str]:
    """Name those for whom a claim is reserved."""
    return [entry["name"] for entry in claim["status"].get("reservedFor", ())]


def runs(pod: Json) -> bool:
    """Tell whether a pod's containers run."""
    return bool(pod["status"]["phase"] == "Running")


def waits(because: str) -> Callable[[Json], bool]:
    """Make the question whether kube-scheduler says why it does not bind a pod."""

    def says(pod: Json) -> bool:
        conditions: Sequence[Mapping[str, str]] = pod["status"].get("conditions", ())
        return any(
            entry["type"] == "PodScheduled" and because in entry.get("message", "")
            for entry in conditions
        )

    return says
