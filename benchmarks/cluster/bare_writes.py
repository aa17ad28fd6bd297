"""A bare loop of the writes by which a gang is allocated: what a publisher could reach.

The publisher's own patches through its own transport, from a process of its own: all
claims, then all gates. Nothing is decided, decoded, planned or verified.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime
from multiprocessing import get_context

import msgspec
from msgspec import Struct

from benchmarks.cluster.setup import DEVICES_EACH, DRIVER
from contracts.allocation import (
    AllocationResult,
    DeviceAllocationResult,
    DeviceRequestAllocationResult,
)
from contracts.claim import ResourceClaim
from contracts.device import NodeSelector
from contracts.ids import DeviceName, DriverName, NodeName, PoolName
from contracts.kubernetes.decode import decode_object
from contracts.messages import PodRef
from contracts.names import ATTEMPT, GANG_UID, INDEX, SOLVE
from contracts.workload import Pod
from publisher.gangs import patches
from publisher.gangs.patches import Patch
from publisher.gangs.view import claim_keys
from runtime.kube.api import IN_FLIGHT, PUBLISHER
from runtime.kube.kinds import POD, RESOURCE_CLAIM
from runtime.kube.transport import Transport
from tests.lab.controlplane.client import Json, Kube
from tests.lab.controlplane.objects import RESOURCE

_PARAMETERS = {"fieldManager": PUBLISHER, "fieldValidation": "Strict"}
_KINDS = {kind.name: kind for kind in (POD, RESOURCE_CLAIM)}
_UID = "00000000-0000-0000-0000-000000000000"


class Write(Struct, frozen=True):
    """One merge patch."""

    path: str
    body: bytes


async def prepare(kube: Kube, namespace: str, kubeconfig: str) -> None:
    """Set the finalizers, as the publisher does ahead of the decision."""
    claims = await _claims(kube, namespace)
    await send(kubeconfig, [_writes(map(patches.prepare, claims.values()))])


async def open_gates(kube: Kube, namespace: str, kubeconfig: str) -> float:
    """Allocate every claim, then open every gate; says when that began."""
    claims = await _claims(kube, namespace)
    listed = await kube.list("v1", "Pod", namespace)
    pods = [pod for raw in listed if isinstance(pod := _decoded(raw), Pod)]
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    allocations, gates = [], []
    for number, pod in enumerate(pods):
        node = f"node-{number // DEVICES_EACH}"
        device = f"dev-{number % DEVICES_EACH}"
        (key,) = claim_keys(pod).values()
        ref = PodRef(name=pod.metadata.name, uid=pod.metadata.uid)
        allocation = _allocation(node, device)
        allocations.append(patches.allocate(claims[key], allocation, [ref], now))
        notes = {GANG_UID: _UID, ATTEMPT: "1", SOLVE: _UID, INDEX: f"pod/{number}"}
        gates.append(patches.open_gate(pod, NodeName(node), notes))
    return await send(kubeconfig, [_writes(allocations), _writes(gates)])


async def send(kubeconfig: str, steps: Sequence[Sequence[Write]]) -> float:
    """Send writes in a process of its own, step by step; says when that began."""
    spawned = get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=spawned) as process:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(process, _send, kubeconfig, steps)


def _send(kubeconfig: str, steps: Sequence[Sequence[Write]]) -> float:
    return asyncio.run(_send_all(kubeconfig, steps))


async def _send_all(kubeconfig: str, steps: Sequence[Sequence[Write]]) -> float:
    async with Transport.open(kubeconfig, "", IN_FLIGHT, PUBLISHER) as transport:
        async with asyncio.TaskGroup() as tasks:  # as the publisher's: they stand
            for _ in range(IN_FLIGHT):
                tasks.create_task(transport.call("connect", "GET", "/version"))
        began_s = time.time()
        for writes in steps:
            async with asyncio.TaskGroup() as tasks:
                for write in writes:
                    tasks.create_task(
                        transport.call(
                            "write",
                            "PATCH",
                            write.path,
                            parameters=_PARAMETERS,
                            body=write.body,
                            form="application/merge-patch+json",
                        )
                    )
    return began_s


def _writes(planned: Iterable[Patch]) -> list[Write]:
    return [
        Write(
            _KINDS[patch.kind].path_of(patch.key, patch.subresource),
            msgspec.json.encode(patch.body),
        )
        for patch in planned
    ]


async def _claims(kube: Kube, namespace: str) -> dict[str, ResourceClaim]:
    listed = await kube.list(RESOURCE, "ResourceClaim", namespace)
    claims = [
        claim for raw in listed if isinstance(claim := _decoded(raw), ResourceClaim)
    ]
    return {f"{namespace}/{claim.metadata.name}": claim for claim in claims}


def _decoded(raw: Json) -> object:
    return decode_object(raw).value


def _allocation(node: str, device: str) -> AllocationResult:
    result = DeviceRequestAllocationResult(
        request="r",
        driver=DriverName(DRIVER),
        pool=PoolName(node),
        device=DeviceName(device),
    )
    return AllocationResult(
        devices=DeviceAllocationResult(results=(result,)),
        node_selector=NodeSelector.of_node(NodeName(node)),
    )
