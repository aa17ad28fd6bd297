"""A job of a trace: what it asked for, when it came, and how long it really ran."""

from __future__ import annotations

from msgspec import Struct

from contracts.claim import (
    DeviceClaim,
    DeviceRequest,
    ExactDeviceRequest,
    ResourceClaimSpec,
)
from contracts.gang import Gang, GangSpec, Member, MemberClaim
from contracts.ids import ClusterName, DeviceClassName, GangUID
from contracts.messages import SubmitGang
from contracts.meta import ObjectMeta

CLUSTER = ClusterName("simulated")


class Job(Struct, frozen=True, kw_only=True):
    """A job, whatever trace it is from."""

    name: str
    """Unique in its trace, and a name that Kubernetes accepts."""
    queue: str
    """Becomes its namespace."""
    at_s: int
    """When it was submitted, since the first job of the trace."""
    runs_s: int
    limit_s: int | None
    """How long it may run by its author; None: it was not said."""
    devices: int
    each: int = 0
    """Devices of each pod; 0: as many as a node has."""


def submit_job(job: Job, node_devices: int, device_class: str) -> SubmitGang:
    """Submit a job as a gang: pods of equal size, and one more for what is left over.

    `node_devices`: devices of the largest node.
    """
    each = min(job.each or node_devices, job.devices)
    pods, rest = divmod(job.devices, each)
    members = [_make_member("worker", pods, each, device_class)]
    if rest:
        members.append(_make_member("rest", 1, rest, device_class))
    gang = Gang(
        metadata=ObjectMeta(name=job.name, namespace=job.queue, uid=job.name),
        spec=GangSpec(
            members=tuple(members),
            duration="" if job.limit_s is None else f"{job.limit_s}s",
        ),
    )
    return SubmitGang(cluster=CLUSTER, uid=GangUID(job.name), gang=gang)


def _make_member(name: str, pods: int, devices: int, device_class: str) -> Member:
    request = ExactDeviceRequest(
        device_class_name=DeviceClassName(device_class),
        allocation_mode="ExactCount",
        count=devices,
    )
    spec = ResourceClaimSpec(
        devices=DeviceClaim(requests=(DeviceRequest(name="device", exactly=request),))
    )
    claim = MemberClaim(name="devices", spec=spec)
    return Member(name=name, count=pods, claims=(claim,))
