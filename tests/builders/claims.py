"""What users ask for, and what they got: claims, requests, classes, allocations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from contracts.allocation import (
    AllocationResult,
    DeviceAllocationResult,
    DeviceRequestAllocationResult,
)
from contracts.claim import (
    CapacityRequirements,
    CELDeviceSelector,
    DeviceClaim,
    DeviceClass,
    DeviceClassSpec,
    DeviceConstraint,
    DeviceRequest,
    DeviceSelector,
    DeviceSubRequest,
    DeviceToleration,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimSpec,
    ResourceClaimStatus,
    ResourceClaimTemplate,
    ResourceClaimTemplateSpec,
)
from contracts.ids import (
    DeviceClassName,
    DeviceName,
    DriverName,
    FullyQualifiedName,
    PoolName,
)
from contracts.meta import ObjectMeta
from contracts.names import ALLOCATE, IMMEDIATE
from tests.builders.devices import node_name_selector
from tests.builders.values import (
    DEVICE_CLASS,
    DRIVER,
    NAMESPACE,
    NODE,
    Amount,
    quantities,
)


def selectors(*expressions: str) -> tuple[DeviceSelector, ...]:
    """Make CEL selectors."""
    return tuple(
        DeviceSelector(cel=CELDeviceSelector(expression=text)) for text in expressions
    )


def _request_fields(
    device_class: str,
    count: int | None,
    mode: str,
    expressions: Sequence[str],
    capacity: Mapping[str, Amount] | None,
) -> dict[str, Any]:
    default_count = 1 if mode == "ExactCount" else 0
    return {
        "device_class_name": DeviceClassName(device_class),
        "allocation_mode": mode,
        "count": default_count if count is None else count,
        "selectors": selectors(*expressions),
        "capacity": CapacityRequirements(requests=quantities(capacity))
        if capacity
        else None,
    }


def request(
    name: str = "gpu",
    *,
    device_class: str = DEVICE_CLASS,
    count: int | None = None,
    mode: str = "ExactCount",
    select: Sequence[str] = (),
    capacity: Mapping[str, Amount] | None = None,
    first_available: Sequence[DeviceSubRequest] = (),
    **fields: Any,
) -> DeviceRequest:
    """Make a request for one device, or for the first available of a list."""
    if first_available:
        return DeviceRequest(name=name, first_available=tuple(first_available))
    body = _request_fields(device_class, count, mode, select, capacity)
    return DeviceRequest(name=name, exactly=ExactDeviceRequest(**body, **fields))


def sub_request(
    name: str = "one",
    *,
    device_class: str = DEVICE_CLASS,
    count: int | None = None,
    mode: str = "ExactCount",
    select: Sequence[str] = (),
    capacity: Mapping[str, Amount] | None = None,
    **fields: Any,
) -> DeviceSubRequest:
    """Make an alternative of a prioritized list."""
    body = _request_fields(device_class, count, mode, select, capacity)
    return DeviceSubRequest(name=name, **body, **fields)


def toleration(
    key: str = "example.com/broken", operator: str = "Exists", **fields: Any
) -> DeviceToleration:
    """Make a toleration of every taint with that key."""
    return DeviceToleration(key=key, operator=operator, **fields)


def constraint(
    match: str | None = None, *requests: str, distinct: str | None = None
) -> DeviceConstraint:
    """Make a constraint on some requests, or all: on pcieRoot unless it is said."""
    if match is None and distinct is None:
        match = "resource.kubernetes.io/pcieRoot"
    return DeviceConstraint(
        requests=requests,
        match_attribute=None if match is None else FullyQualifiedName(match),
        distinct_attribute=None if distinct is None else FullyQualifiedName(distinct),
    )


def claim_spec(
    *requests: DeviceRequest,
    constraints: Sequence[DeviceConstraint] = (),
    **fields: Any,
) -> ResourceClaimSpec:
    """Make what a claim asks for: one device unless requests are given."""
    return ResourceClaimSpec(
        devices=DeviceClaim(
            requests=requests or (request(),), constraints=tuple(constraints), **fields
        )
    )


def claim(
    *requests: DeviceRequest,
    name: str = "claim-1",
    namespace: str = NAMESPACE,
    uid: str = "",
    constraints: Sequence[DeviceConstraint] = (),
    allocated: AllocationResult | None = None,
    **fields: Any,
) -> ResourceClaim:
    """Make a claim of one device unless requests are given."""
    return ResourceClaim(
        metadata=ObjectMeta(name=name, namespace=namespace, uid=uid),
        spec=claim_spec(*requests, constraints=constraints, **fields),
        status=None if allocated is None else ResourceClaimStatus(allocation=allocated),
    )


def labelled(claim: ResourceClaim, value: str = IMMEDIATE) -> ResourceClaim:
    """Label a claim as one that is allocated without a pod, or with another value."""
    labels = {**claim.metadata.labels, ALLOCATE: value}
    return replace(claim, metadata=replace(claim.metadata, labels=labels))


def claim_template(
    *requests: DeviceRequest,
    name: str = "template-1",
    namespace: str = NAMESPACE,
    **fields: Any,
) -> ResourceClaimTemplate:
    """Make a template of claims of one device unless requests are given."""
    return ResourceClaimTemplate(
        metadata=ObjectMeta(name=name, namespace=namespace),
        spec=ResourceClaimTemplateSpec(spec=claim_spec(*requests, **fields)),
    )


def device_class(
    name: str = DEVICE_CLASS, *expressions: str, **fields: Any
) -> DeviceClass:
    """Make a class of all devices of the driver unless selectors are given."""
    texts = expressions or (f'device.driver == "{DRIVER}"',)
    return DeviceClass(
        metadata=ObjectMeta(name=name),
        spec=DeviceClassSpec(selectors=selectors(*texts), **fields),
    )


def result(
    name: str = "gpu-0",
    *,
    request: str = "gpu",
    driver: str = DRIVER,
    pool: str = NODE,
    **fields: Any,
) -> DeviceRequestAllocationResult:
    """Make the result of one device for one request."""
    return DeviceRequestAllocationResult(
        request=request,
        driver=DriverName(driver),
        pool=PoolName(pool),
        device=DeviceName(name),
        **fields,
    )


def allocation(
    *results: DeviceRequestAllocationResult, node: str | None = NODE
) -> AllocationResult:
    """Make the allocation of one device on one node unless results are given."""
    return AllocationResult(
        devices=DeviceAllocationResult(results=results or (result(),)),
        node_selector=None if node is None else node_name_selector(node),
    )
