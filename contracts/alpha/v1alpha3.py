"""Objects of v1alpha3 (Kubernetes 1.31) -> v1.

Requests are flat and devices have a body as in v1beta1; capacities are plain amounts,
and claims and classes have fields of classic DRA, which v1 has not.

Source: k8s.io/api v0.31 resource/v1alpha3.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from contracts.alpha.said import Json, Remarks, list_in, mapping_in

CONTROLLER = (
    "v1 has no control-plane controllers; devices are allocated from the "
    "ResourceSlices of their driver"
)
SUITABLE_NODES = "v1 has no such field; give the pods a node affinity instead"
DEALLOCATION = "v1 has no such field; nothing asks a driver to deallocate"


def claim_to_v1beta1(raw: Json, remarks: Remarks) -> Json:
    """Say a ResourceClaim in v1beta1, whose shape is v1alpha3's without classic DRA."""
    spec = _claim_spec(mapping_in(raw, "spec"), "spec", remarks)
    status = mapping_in(raw, "status")
    if status.pop("deallocationRequested", None):
        remarks.note("status.deallocationRequested", DEALLOCATION)
    allocation = mapping_in(status, "allocation")
    if allocation.pop("controller", None):
        remarks.refuse("status.allocation.controller", CONTROLLER)
    if allocation:
        status["allocation"] = allocation
    return {**raw, "spec": spec} | ({"status": status} if status else {})


def template_to_v1beta1(raw: Json, remarks: Remarks) -> Json:
    """Say a ResourceClaimTemplate in v1beta1."""
    spec = mapping_in(raw, "spec")
    spec["spec"] = _claim_spec(mapping_in(spec, "spec"), "spec.spec", remarks)
    return {**raw, "spec": spec}


def class_to_v1beta1(raw: Json, remarks: Remarks) -> Json:
    """Say a DeviceClass in v1beta1."""
    spec = mapping_in(raw, "spec")
    if spec.pop("suitableNodes", None):
        remarks.note("spec.suitableNodes", SUITABLE_NODES)
    return {**raw, "spec": spec}


def slice_to_v1beta1(raw: Json, remarks: Remarks) -> Json:
    """Say a ResourceSlice in v1beta1: a capacity is a map with its value."""
    del remarks
    spec = mapping_in(raw, "spec")
    if "devices" in spec:
        spec["devices"] = [_device(each) for each in list_in(spec, "devices")]
    return {**raw, "spec": spec}


def _claim_spec(spec: Json, place: str, remarks: Remarks) -> Json:
    controller = spec.pop("controller", None)
    if controller:
        remarks.note(f"{place}.controller", f"{controller}: {CONTROLLER}")
    return spec


def _device(device: Any) -> Any:
    basic = mapping_in(device, "basic")
    if not isinstance(basic.get("capacity"), dict):
        return device
    amounts = basic["capacity"]
    basic["capacity"] = {name: {"value": each} for name, each in amounts.items()}
    return {**device, "basic": basic}


CONVERSIONS: dict[str, Callable[[Json, Remarks], Json]] = {
    "DeviceClass": class_to_v1beta1,
    "ResourceClaim": claim_to_v1beta1,
    "ResourceClaimTemplate": template_to_v1beta1,
    "ResourceSlice": slice_to_v1beta1,
}
