"""Kubernetes objects for benchmarks in one call: devices, claims, classes, gangs.

What would come over the bus goes through its codec once, so that it costs the memory
that it costs a service: no two messages share an attribute.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from contracts import topics
from contracts.allocation import (
    AllocationResult,
    DeviceAllocationResult,
    DeviceRequestAllocationResult,
)
from contracts.claim import (
    CELDeviceSelector,
    DeviceClaim,
    DeviceClass,
    DeviceClassSpec,
    DeviceConstraint,
    DeviceRequest,
    DeviceSelector,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimSpec,
    ResourceClaimStatus,
)
from contracts.codec import to_builtins
from contracts.device import DeviceAttribute, ResourcePool
from contracts.gang import Gang, GangSpec, Member, MemberClaim
from contracts.ids import (
    ClusterName,
    DeviceClassName,
    DeviceID,
    FullyQualifiedName,
    GangUID,
    NodeName,
)
from contracts.kubernetes.decode import WritableObject, to_kubernetes
from contracts.messages import DevicesAnnounced, ObjectObserved, SubmitGang
from contracts.meta import ObjectMeta

CLUSTER = ClusterName("local")
NAMESPACE = "bench"
NUMA_NODE = "resource.kubernetes.io/numaNode"
PCIE_ROOT = "resource.kubernetes.io/pcieRoot"
Observation = tuple[DevicesAnnounced | ObjectObserved, int]
"""What is said of a cluster, and how much is free of what it tells of."""


def text(value: str) -> DeviceAttribute:
    """Make an attribute that is a string."""
    return DeviceAttribute(string_value=value)


def number(value: int) -> DeviceAttribute:
    """Make an attribute that is an integer."""
    return DeviceAttribute(int_value=value)


def selectors(expressions: Iterable[str]) -> tuple[DeviceSelector, ...]:
    """Make selectors of CEL expressions."""
    return tuple(
        DeviceSelector(cel=CELDeviceSelector(expression=e)) for e in expressions
    )


def request(
    name: str, device_class: str, count: int = 1, *expressions: str
) -> DeviceRequest:
    """Ask for devices of a class that all expressions hold of."""
    exactly = ExactDeviceRequest(
        device_class_name=DeviceClassName(device_class),
        count=count,
        selectors=selectors(expressions),
    )
    return DeviceRequest(name=name, exactly=exactly)


def member_claim(name: str, *requests: DeviceRequest, match: str = "") -> MemberClaim:
    """Make a claim of a member; `match`: an attribute that all its devices share."""
    constraint = DeviceConstraint(match_attribute=FullyQualifiedName(match))
    devices = DeviceClaim(requests=requests, constraints=(constraint,) if match else ())
    return MemberClaim(name=name, spec=ResourceClaimSpec(devices=devices))


def submission(age: int, *members: Member, priority: int = 0) -> SubmitGang:
    """Submit a gang, as the bus delivers it."""
    gang = Gang(
        metadata=ObjectMeta(name=f"gang-{age}", namespace=NAMESPACE),
        spec=GangSpec(members=members, priority=priority),
    )
    uid = GangUID(f"00000000-0000-4000-8000-{age:012}")
    message = SubmitGang(cluster=CLUSTER, uid=uid, gang=gang)
    decoded = topics.SUBMISSIONS.codec.decode(topics.SUBMISSIONS.codec.encode(message))
    assert isinstance(decoded, SubmitGang)
    return decoded


def announced(node: NodeName, *pools: ResourcePool) -> DevicesAnnounced:
    """Announce a node's devices, as the bus delivers it."""
    message = DevicesAnnounced(cluster=CLUSTER, node=node, pools=pools)
    return topics.INVENTORIES.codec.decode(topics.INVENTORIES.codec.encode(message))


def observed(value: WritableObject) -> ObjectObserved:
    """Observe an object of Kubernetes."""
    raw = to_builtins(to_kubernetes(value))
    meta = value.metadata
    key = f"{meta.namespace}/{meta.name}" if meta.namespace else meta.name
    return ObjectObserved(cluster=CLUSTER, kind=raw["kind"], key=key, object=raw)


def observed_class(name: str, expression: str) -> ObjectObserved:
    """Observe a DeviceClass with one selector."""
    spec = DeviceClassSpec(selectors=selectors([expression]))
    return observed(DeviceClass(metadata=ObjectMeta(name=name), spec=spec))


def observed_holder(name: str, devices: Sequence[DeviceID]) -> ObjectObserved:
    """Observe an allocated claim: somebody has these devices."""
    results = tuple(
        DeviceRequestAllocationResult(
            request="held", driver=device.driver, pool=device.pool, device=device.device
        )
        for device in devices
    )
    allocation = AllocationResult(devices=DeviceAllocationResult(results=results))
    return observed(
        ResourceClaim(
            metadata=ObjectMeta(name=name, namespace="held"),
            status=ResourceClaimStatus(allocation=allocation),
        )
    )
