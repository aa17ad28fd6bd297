"""ResourceClaims with their requests and constraints, and DeviceClasses.

The Structs have the shape of `resource.k8s.io/v1` and hold what was written, without
defaults: the allocator of upstream applies none either (semantics: an empty
allocationMode is an error of its own). `defaults.py` fills them as the API server
would.
"""

from __future__ import annotations

from typing import Any

from contracts.allocation import AllocationResult
from contracts.ids import DeviceClassName, DriverName, FullyQualifiedName
from contracts.meta import ObjectMeta
from contracts.quantity import Quantity
from contracts.structs import Int64, KubernetesExcerpt, KubernetesStruct


class CELDeviceSelector(KubernetesStruct, frozen=True, kw_only=True):
    """A CEL expression over `device`."""

    expression: str = ""


class DeviceSelector(KubernetesStruct, frozen=True, kw_only=True):
    """A condition on devices; `cel` is the only kind there is."""

    cel: CELDeviceSelector | None = None


class DeviceToleration(KubernetesStruct, frozen=True, kw_only=True):
    """A device taint that a request does not mind (KEP-5055)."""

    key: str = ""
    """Empty: any key."""
    operator: str = ""
    """`Equal` (also when empty) or `Exists`."""
    value: str = ""
    effect: str = ""
    """Empty: any effect."""
    toleration_seconds: Int64 | None = None


class CapacityRequirements(KubernetesStruct, frozen=True, kw_only=True):
    """Amounts of capacities that a request consumes (KEP-5075)."""

    requests: dict[str, Quantity] = {}


class DerivedAttribute(KubernetesStruct, frozen=True, kw_only=True):
    """A value computed per device, for constraints alone (KEP-6080, alpha)."""

    name: str = ""
    expression: str = ""


class ExactDeviceRequest(KubernetesStruct, frozen=True, kw_only=True):
    """A request with no alternative (`exactly`)."""

    device_class_name: DeviceClassName = DeviceClassName("")
    selectors: tuple[DeviceSelector, ...] = ()
    allocation_mode: str = ""
    count: Int64 = 0
    admin_access: bool | None = None
    tolerations: tuple[DeviceToleration, ...] = ()
    capacity: CapacityRequirements | None = None
    derived_attributes: tuple[DerivedAttribute, ...] = ()


class DeviceSubRequest(KubernetesStruct, frozen=True, kw_only=True):
    """One alternative of a prioritized list (KEP-4816)."""

    name: str = ""
    device_class_name: DeviceClassName = DeviceClassName("")
    selectors: tuple[DeviceSelector, ...] = ()
    allocation_mode: str = ""
    count: Int64 = 0
    tolerations: tuple[DeviceToleration, ...] = ()
    capacity: CapacityRequirements | None = None
    derived_attributes: tuple[DerivedAttribute, ...] = ()


class DeviceRequest(KubernetesStruct, frozen=True, kw_only=True):
    """Devices for one purpose: `exactly`, or the first available of a list."""

    name: str = ""
    exactly: ExactDeviceRequest | None = None
    first_available: tuple[DeviceSubRequest, ...] = ()


class DeviceConstraint(KubernetesStruct, frozen=True, kw_only=True):
    """An attribute that devices of several requests must share or must differ in."""

    requests: tuple[str, ...] = ()
    """`request` or `request/subrequest`; empty: all."""
    match_attribute: FullyQualifiedName | None = None
    distinct_attribute: FullyQualifiedName | None = None


class OpaqueDeviceConfiguration(KubernetesStruct, frozen=True, kw_only=True):
    """Parameters that only the driver understands."""

    driver: DriverName = DriverName("")
    parameters: Any = None


class DeviceConfiguration(KubernetesStruct, frozen=True, kw_only=True):
    """Configuration for some requests of a claim, or (in a class) for all."""

    requests: tuple[str, ...] = ()
    opaque: OpaqueDeviceConfiguration | None = None


class DeviceClaim(KubernetesStruct, frozen=True, kw_only=True):
    """`spec.devices` of a claim."""

    requests: tuple[DeviceRequest, ...] = ()
    constraints: tuple[DeviceConstraint, ...] = ()
    config: tuple[DeviceConfiguration, ...] = ()


class ResourceClaimSpec(KubernetesStruct, frozen=True, kw_only=True):
    """The spec of a ResourceClaim."""

    devices: DeviceClaim = DeviceClaim()


class ResourceClaimConsumerReference(KubernetesStruct, frozen=True, kw_only=True):
    """A user of an allocated claim: one entry of `reservedFor`."""

    api_group: str = ""
    resource: str = ""
    name: str = ""
    uid: str = ""


class ResourceClaimStatus(KubernetesExcerpt, frozen=True, kw_only=True):
    """The status of a ResourceClaim: its allocation and its users."""

    allocation: AllocationResult | None = None
    reserved_for: tuple[ResourceClaimConsumerReference, ...] = ()
    devices: tuple[Any, ...] = ()
    """Driver-written status of each device, as written."""


class ResourceClaim(KubernetesStruct, frozen=True, kw_only=True):
    """A claim of devices."""

    metadata: ObjectMeta
    spec: ResourceClaimSpec = ResourceClaimSpec()
    status: ResourceClaimStatus | None = None

    @property
    def allocation(self) -> AllocationResult | None:
        """The claim's allocation; None if it has none."""
        return None if self.status is None else self.status.allocation


class ResourceClaimTemplateSpec(KubernetesStruct, frozen=True, kw_only=True):
    """The metadata and spec of each generated claim."""

    metadata: ObjectMeta = ObjectMeta()
    spec: ResourceClaimSpec = ResourceClaimSpec()


class ResourceClaimTemplate(KubernetesStruct, frozen=True, kw_only=True):
    """The pattern for the claims of pods."""

    metadata: ObjectMeta
    spec: ResourceClaimTemplateSpec = ResourceClaimTemplateSpec()


IMPLICIT_RESOURCE = "deviceclass.resource.kubernetes.io/"
"""Prefix of a class's name that makes it an extended resource."""


class DeviceClassSpec(KubernetesStruct, frozen=True, kw_only=True):
    """Which devices are of a class, and their configuration."""

    selectors: tuple[DeviceSelector, ...] = ()
    config: tuple[DeviceConfiguration, ...] = ()
    extended_resource_name: str | None = None


class DeviceClass(KubernetesStruct, frozen=True, kw_only=True):
    """A name for devices that an administrator gives."""

    metadata: ObjectMeta
    spec: DeviceClassSpec = DeviceClassSpec()
