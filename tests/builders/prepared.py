"""Claims as a node's kubelet asks for them, and what prepares them there."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from contracts.allocation import (
    AllocationResult,
    DeviceAllocationConfiguration,
    DeviceAllocationResult,
    DeviceRequestAllocationResult,
)
from contracts.claim import ResourceClaim, ResourceClaimStatus
from contracts.device import NodeSelector
from contracts.ids import (
    ClaimRef,
    ClaimUID,
    DeviceID,
    DeviceName,
    DriverName,
    Namespace,
    NodeName,
    PoolName,
)
from contracts.meta import ObjectMeta
from nodeagent.cdi import ContainerEdits
from nodeagent.errors import PrepareError, SourceError
from nodeagent.inventory import NodeDevices
from nodeagent.kubelet.metadata_files import MetadataFiles
from nodeagent.kubelet.preparer import Preparer
from nodeagent.prepare.cdi_files import CdiFiles
from nodeagent.prepare.checkpoint import Checkpoint
from nodeagent.sources.source import DeviceDescription, PartitionHooks, Readings

DRIVER = DriverName("gpu.example.com")
NODE = NodeName("n-0")
POOL = PoolName("n-0")


def asked(name: str = "c-0", uid: str = "") -> ClaimRef:
    """A claim as kubelet names it."""
    return ClaimRef(Namespace("default"), name, ClaimUID(uid or f"uid-{name}"))


def result(device: str, request: str = "gpu", **more: Any) -> Any:
    """One device of an allocation."""
    fields = {"driver": DRIVER, "pool": POOL, **more}
    return DeviceRequestAllocationResult(
        request=request, device=DeviceName(device), **fields
    )


def config(
    parameters: Any, source: str = "FromClaim", *requests: str
) -> DeviceAllocationConfiguration:
    """Opaque configuration for our driver."""
    opaque = {"driver": DRIVER, "parameters": parameters}
    return DeviceAllocationConfiguration(
        source=source, requests=requests, opaque=opaque
    )


def parameters(**fields: Any) -> dict[str, Any]:
    """Parameters of a driver of ours."""
    kind = {"apiVersion": "moorings.dev/v1alpha1", "kind": "DeviceParameters"}
    return {**kind, **fields}


def allocated(
    of: ClaimRef, *results: Any, configs: tuple[Any, ...] = (), node: str = NODE
) -> ResourceClaim:
    """A claim as the API server has it."""
    allocation = AllocationResult(
        devices=DeviceAllocationResult(results=results, config=configs),
        node_selector=NodeSelector.of_node(NodeName(node)),
    )
    return ResourceClaim(
        metadata=ObjectMeta(name=of.name, namespace=of.namespace, uid=of.uid),
        status=ResourceClaimStatus(allocation=allocation),
    )


class Bench:
    """A source of devices by name, each with an environment variable."""

    def __init__(self, *devices: str, hooks: PartitionHooks | None = None) -> None:
        self.devices = set(devices)
        self.hooks = hooks
        self.cards: dict[str, str] = {}
        """The card of a device by its name."""

    @property
    def nodes(self) -> tuple[NodeName, ...]:
        """The one node."""
        return (NODE,)

    @property
    def drivers(self) -> tuple[DriverName, ...]:
        """The one driver."""
        return (DRIVER,)

    async def discover(self, node: NodeName) -> NodeDevices:
        """Tell of no device: what is prepared is asked for by name."""
        return NodeDevices(node=node)

    async def read(self, now_s: float) -> Readings:  # noqa: ARG002
        """Find all well."""
        return Readings()

    async def edits(self, device: DeviceID) -> ContainerEdits:
        """Give a variable, but nothing for devices that begin with `plain`."""
        if device.device not in self.devices:
            raise SourceError("bench", "no such device")
        if device.device.startswith("plain"):
            return ContainerEdits()
        return ContainerEdits(env=(f"DEVICE_{device.device[-1]}={device.device}",))

    async def describe(self, device: DeviceID) -> DeviceDescription:
        """Say as much as a real device does."""
        if device.device not in self.devices:
            raise SourceError("bench", "no such device")
        card = self.cards.get(device.device, "")
        return DeviceDescription(data={"numaNode": 0}, card=card)

    def find_hooks(self, device: DeviceID) -> PartitionHooks | None:  # noqa: ARG002
        """Return the same for all."""
        return self.hooks


def make_preparer(
    folder: Path,
    source: Bench,
    claims: Mapping[str, ResourceClaim],
    *,
    tells_metadata: bool = False,
) -> Preparer:
    """A preparer whose API server has some claims by name; open."""

    async def read(of: ClaimRef) -> ResourceClaim:
        if of.name not in claims:
            raise PrepareError(f"ResourceClaim {of} does not exist")
        return claims[of.name]

    cdi = CdiFiles(folder / "cdi", DRIVER)
    checkpoint = Checkpoint(folder / "claims", DRIVER, cdi)
    metadata = MetadataFiles(
        folder / "metadata", NODE, source, are_wanted=tells_metadata
    )
    preparer = Preparer(
        DRIVER, NODE, source, read, checkpoint=checkpoint, cdi=cdi, metadata=metadata
    )
    preparer.open()
    return preparer
