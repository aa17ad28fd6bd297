"""The requests of a claim, classes looked up, and what is wrong with them.

Faults are those that kube-scheduler's allocator finds before it looks at any device,
in its words and in its order: gates that are off, selectors of an unknown kind, classes
that do not exist, modes that it does not know.

Source: k8s.io/dynamic-resource-allocation/structured, Allocate, validateDeviceRequest.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from contracts.claim import (
    DeviceClaim,
    DeviceRequest,
    DeviceSubRequest,
    ExactDeviceRequest,
)
from contracts.features import Features
from contracts.ids import DeviceClassName, FullyQualifiedName
from solver.problem.gangs import RequestPart, SubrequestPart
from solver.snapshot.parts import ClassPart

_INT_MAX = 2**63 - 1


class Classes(Protocol):
    """Looks up DeviceClasses."""

    def device_class(self, name: DeviceClassName) -> ClassPart | None:
        """Look up a class."""


def resolve_requests(
    claim: DeviceClaim, subject: str, classes: Classes, features: Features
) -> Iterator[RequestPart]:
    """Make the requests of a claim ready to be decided; `subject`: `claim N`."""
    for request in claim.requests:
        yield RequestPart(
            name=request.name,
            alternatives=tuple(
                _resolve_alternatives(request, subject, classes, features)
            ),
            fault=_find_gate_fault(request, subject, features),
        )


def find_constraint_fault(claim: DeviceClaim, subject: str) -> str:
    """Name the first constraint without an attribute."""
    for index, constraint in enumerate(claim.constraints):
        if constraint.match_attribute is None and constraint.distinct_attribute is None:
            return (
                f"{subject}, constraint #{index}: empty constraint "
                "(unsupported constraint type?)"
            )
    return ""


def _find_gate_fault(request: DeviceRequest, subject: str, features: Features) -> str:
    if request.first_available and not features.prioritized_list:
        return (
            f"{subject}, request {request.name}: has subrequests, but the "
            "DRAPrioritizedList feature is disabled"
        )
    if features.consumable_capacity:
        return ""
    off = "has capacity requests, but the DRAConsumableCapacity feature is disabled"
    if request.exactly is not None and request.exactly.capacity is not None:
        return f"{subject}, request {request.name}: {off}"
    for sub in request.first_available:
        if sub.capacity is not None:
            return f"{subject}, subrequest {sub.name}: {off}"
    return ""


def _resolve_alternatives(
    request: DeviceRequest, subject: str, classes: Classes, features: Features
) -> Iterator[SubrequestPart]:
    if request.first_available:
        for sub in request.first_available:
            place = f"{subject}, request {sub.name}"
            yield _resolve_subrequest(sub, sub.name, place, classes, features)
        return
    exactly = request.exactly or ExactDeviceRequest()
    place = f"{subject}, request {request.name}"
    yield _resolve_subrequest(exactly, "", place, classes, features)


def _resolve_subrequest(
    request: ExactDeviceRequest | DeviceSubRequest,
    name: str,
    place: str,
    classes: Classes,
    features: Features,
) -> SubrequestPart:
    device_class = classes.device_class(request.device_class_name)
    class_selectors = device_class.selectors if device_class is not None else ()
    own_selectors = tuple(
        selector.cel.expression if selector.cel else ""
        for selector in request.selectors
    )
    admin = request.admin_access if isinstance(request, ExactDeviceRequest) else None
    fault = _find_fault(request, device_class, features)
    return SubrequestPart(
        name=name,
        device_class=request.device_class_name,
        selectors=() if fault else (*class_selectors, *own_selectors),
        class_selectors=0 if fault else len(class_selectors),
        all_devices=request.allocation_mode == "All",
        count=request.count,
        tolerations=request.tolerations,
        admin_access=bool(admin),
        capacity=request.capacity.requests if request.capacity is not None else {},
        derived_attributes=tuple(
            (FullyQualifiedName(attribute.name), attribute.expression)
            for attribute in request.derived_attributes
        ),
        fault=f"{place}{fault}" if fault else "",
    )


def _find_fault(
    request: ExactDeviceRequest | DeviceSubRequest,
    device_class: ClassPart | None,
    features: Features,
) -> str:
    """Find the first fault of a (sub)request: what follows its name."""
    if request.derived_attributes and not features.derived_attributes:
        return (
            ": cannot handle request with derived attributes, the feature is disabled"
        )
    for index, selector in enumerate(request.selectors):
        if selector.cel is None:
            return (
                f", selector #{index}: CEL expression empty "
                "(unsupported selector type?)"
            )
    has_admin = (
        isinstance(request, ExactDeviceRequest) and request.admin_access is not None
    )
    if has_admin and not features.admin_access:
        return ": admin access is requested, but the feature is disabled"
    name = request.device_class_name
    if not name:
        return ": missing device class name (unsupported request type?)"
    if device_class is None:
        return (
            f": could not retrieve device class {name}: "
            f'deviceclasses.resource.k8s.io "{name}" not found'
        )
    if request.allocation_mode not in ("ExactCount", "All"):
        return f": unsupported count mode {request.allocation_mode}"
    if request.count > _INT_MAX:
        return f": exact count {request.count} is too large"
    return ""
