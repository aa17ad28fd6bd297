"""Finds what the API server would refuse.

One call for every kind of object, so that `plan`, the publisher and the node agent
refuse the same things in the same words. Knows neither feature gates nor other objects:
everything is judged as a 1.37 cluster with all features would, on its own.
"""

from __future__ import annotations

from typing import assert_never

from contracts.allocation import AllocationResult
from contracts.claim import DeviceClass, ResourceClaim, ResourceClaimTemplate
from contracts.device import DeviceTaintRule, ResourceSlice
from contracts.gang import Gang
from contracts.validate import allocations, claims, gangs, slices, taints
from contracts.validate.violation import Violation, Violations

__all__ = ["Validated", "Violation", "validate"]

Validated = (
    ResourceSlice
    | ResourceClaim
    | ResourceClaimTemplate
    | DeviceClass
    | DeviceTaintRule
    | AllocationResult
    | Gang
)


def validate(value: Validated) -> tuple[Violation, ...]:
    """Return what is wrong with an object, its defaults filled in.

    An AllocationResult alone is judged without the names of its claim's requests; in
    the status of a claim these are checked too.
    """
    return tuple(_check_object(value))


def _check_object(value: Validated) -> Violations:
    match value:
        case ResourceSlice():
            return slices.check_resource_slice(value)
        case ResourceClaim():
            return claims.check_claim(value)
        case ResourceClaimTemplate():
            return claims.check_claim_template(value)
        case DeviceClass():
            return claims.check_device_class(value)
        case DeviceTaintRule():
            return taints.check_taint_rule(value)
        case AllocationResult():
            return allocations.check_allocation(value, None, "allocation")
        case Gang():
            return gangs.check_gang(value)
        case _:
            assert_never(value)
