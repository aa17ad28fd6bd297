"""The defaults that the API server fills into objects.

Pure functions from Struct to Struct. Decoding does not call them, because the
allocator's own errors (an empty allocationMode) must stay visible to those who ask for
upstream's behaviour. The time of a taint needs a clock and is not filled in here.

Source: k8s.io/kubernetes/pkg/apis/resource/v1/defaults.go.
"""

from __future__ import annotations

from typing import TypeVar

from msgspec.structs import replace

from contracts.claim import (
    DeviceClaim,
    DeviceRequest,
    DeviceSubRequest,
    DeviceToleration,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimSpec,
    ResourceClaimTemplate,
)
from contracts.gang import Gang
from contracts.kubernetes.claim_specs import change_claim_specs

EXACT_COUNT = "ExactCount"
ALL = "All"
EQUAL = "Equal"

_Request = TypeVar("_Request", ExactDeviceRequest, DeviceSubRequest)


def default_claim(claim: ResourceClaim) -> ResourceClaim:
    """Fill in what a claim leaves unsaid."""
    return change_claim_specs(claim, default_claim_spec)


def default_template(template: ResourceClaimTemplate) -> ResourceClaimTemplate:
    """Fill in what the claims of a template leave unsaid."""
    return change_claim_specs(template, default_claim_spec)


def default_gang(gang: Gang) -> Gang:
    """Fill in what the written-out claims of a gang leave unsaid."""
    return change_claim_specs(gang, default_claim_spec)


def default_claim_spec(spec: ResourceClaimSpec) -> ResourceClaimSpec:
    """Fill in the requests of a claim."""
    requests = tuple(_default_request(request) for request in spec.devices.requests)
    devices: DeviceClaim = replace(spec.devices, requests=requests)
    return replace(spec, devices=devices)


def _default_request(request: DeviceRequest) -> DeviceRequest:
    exactly = request.exactly
    return replace(
        request,
        exactly=None if exactly is None else _default_devices(exactly),
        first_available=tuple(
            _default_devices(sub_request) for sub_request in request.first_available
        ),
    )


def _default_devices(request: _Request) -> _Request:
    mode = request.allocation_mode or EXACT_COUNT
    count = 1 if mode == EXACT_COUNT and request.count == 0 else request.count
    tolerations = tuple(map(_default_toleration, request.tolerations))
    return replace(request, allocation_mode=mode, count=count, tolerations=tolerations)


def _default_toleration(toleration: DeviceToleration) -> DeviceToleration:
    return toleration if toleration.operator else replace(toleration, operator=EQUAL)
