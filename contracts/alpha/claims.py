"""ResourceClasses, ResourceClaims and templates of v1alpha2 -> v1.

Source: k8s.io/api v0.30 resource/v1alpha2.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from contracts import names
from contracts.alpha.parameters import (
    config_of_class,
    devices_of_claim,
    filters_of_class,
    name_drivers,
    selector_of_driver,
)
from contracts.alpha.said import (
    Json,
    Remarks,
    list_in,
    mapping_in,
    text_in,
    without_unset,
)
from contracts.alpha.slices import rename_device
from contracts.alpha.v1alpha3 import DEALLOCATION, SUITABLE_NODES
from contracts.kubernetes.decode import RESOURCE_GROUP, V1

CLAIM_PARAMETERS = "ResourceClaimParameters"
CLASS_PARAMETERS = "ResourceClassParameters"

DEFAULT = "default"
"""The namespace of objects that name none."""
ParametersKey = tuple[str, str, str, str]
"""apiGroup, kind, namespace and name of an object that holds parameters."""


class Known:
    """The objects of v1alpha2 that others refer to."""

    def __init__(self, objects: Iterable[Json]) -> None:
        self._drivers: dict[str, str] = {}
        self._parameters: dict[ParametersKey, Json] = {}
        for raw in objects:
            self._keep(raw)

    def _keep(self, raw: Json) -> None:
        kind, name = text_in(raw, "kind"), text_in(raw, "metadata", "name")
        namespace = text_in(raw, "metadata", "namespace") or DEFAULT
        if kind == "ResourceClass":
            self._drivers[name] = text_in(raw, "driverName")
        elif kind in (CLAIM_PARAMETERS, CLASS_PARAMETERS):
            self._parameters[RESOURCE_GROUP, kind, namespace, name] = raw
            origin = find_origin(raw)
            if origin is not None:
                self._parameters[origin] = raw

    def driver_of(self, class_name: str) -> str:
        """Return the driver of a class; empty if the class is not there."""
        return self._drivers.get(class_name, "")

    def find_parameters(
        self, reference: Json, namespace: str, place: str, remarks: Remarks
    ) -> Json:
        """Return the parameters that an object refers to; none if it refers to none."""
        if not reference:
            return {}
        key = _key_of(reference, namespace)
        found = self._parameters.get(key)
        if found is not None:
            return found
        group, kind, _, name = key
        if group == RESOURCE_GROUP:
            remarks.refuse(place, f"{kind} {name} does not exist")
        else:
            text = (
                f"what {kind}.{group} {name} asks for is known to its vendor only; "
                "`moorings migrate --parameters-command` has it converted"
            )
            remarks.refuse(place, text)
        return {}


def find_reference(raw: Json) -> ParametersKey | None:
    """Return which object of a vendor holds the parameters of an object, if any."""
    spec = {"ResourceClass": (), "ResourceClaim": ("spec",)}
    path = spec.get(text_in(raw, "kind"), ("spec", "spec"))
    reference = mapping_in(raw, *path, "parametersRef")
    if not reference or text_in(reference, "apiGroup") == RESOURCE_GROUP:
        return None
    namespace = text_in(raw, "metadata", "namespace")
    return _key_of(reference, text_in(reference, "namespace") or namespace)


def find_origin(raw: Json) -> ParametersKey | None:
    """Return which object of a vendor parameters were generated from, if any."""
    made_from = mapping_in(raw, "generatedFrom")
    if not made_from:
        return None
    namespace = text_in(raw, "metadata", "namespace")
    return _key_of(made_from, text_in(made_from, "namespace") or namespace)


def class_to_v1(raw: Json, known: Known, remarks: Remarks) -> Json:
    """Say a ResourceClass as a DeviceClass."""
    driver = text_in(raw, "driverName")
    reference = mapping_in(raw, "parametersRef")
    namespace = text_in(reference, "namespace")
    parameters = known.find_parameters(reference, namespace, "parametersRef", remarks)
    if raw.get("suitableNodes"):
        remarks.note("suitableNodes", SUITABLE_NODES)
    selectors = [selector_of_driver(driver), *filters_of_class(parameters, remarks)]
    spec = {"selectors": selectors, "config": config_of_class(parameters)}
    return {
        "apiVersion": V1,
        "kind": "DeviceClass",
        "metadata": mapping_in(raw, "metadata"),
        "spec": without_unset(spec),
    }


def claim_to_v1(raw: Json, known: Known, remarks: Remarks) -> Json:
    """Say a ResourceClaim of v1alpha2 in v1."""
    metadata = mapping_in(raw, "metadata")
    namespace = text_in(metadata, "namespace")
    old = mapping_in(raw, "spec")
    spec = _spec(old, namespace, "spec", known, remarks)
    status = _status(mapping_in(raw, "status"), remarks)
    return {
        "apiVersion": V1,
        "kind": "ResourceClaim",
        "metadata": _with_mode(metadata, old),
        "spec": spec,
    } | ({"status": status} if status else {})


def template_to_v1(raw: Json, known: Known, remarks: Remarks) -> Json:
    """Say a ResourceClaimTemplate of v1alpha2 in v1."""
    namespace = text_in(raw, "metadata", "namespace")
    outer = mapping_in(raw, "spec")
    old = mapping_in(outer, "spec")
    spec = _spec(old, namespace, "spec.spec", known, remarks)
    metadata = _with_mode(mapping_in(outer, "metadata"), old)
    inner: Json = {"metadata": metadata, "spec": spec}
    return {
        "apiVersion": V1,
        "kind": "ResourceClaimTemplate",
        "metadata": mapping_in(raw, "metadata"),
        "spec": without_unset(inner),
    }


def _spec(
    old: Json, namespace: str, place: str, known: Known, remarks: Remarks
) -> Json:
    class_name = text_in(old, "resourceClassName")
    if "devices" in old:
        text = "is of v1alpha3 and later; the apiVersion is too old for it"
        remarks.refuse(f"{place}.devices", text)
    elif not class_name:
        remarks.refuse(f"{place}.resourceClassName", "required")
    reference = mapping_in(old, "parametersRef")
    where = f"{place}.parametersRef"
    parameters = known.find_parameters(reference, namespace, where, remarks)
    driver = known.driver_of(class_name)
    for field, asked in name_drivers(parameters):
        if driver and asked != driver:
            text = (
                f"{field} is {asked}, and class {class_name} is of {driver}; in v1 "
                "each request has a class of its own"
            )
            remarks.refuse(where, text)
    is_named = place == "spec"  # a template's claims have one pod each
    if is_named and parameters and not parameters.get("shareable"):
        remarks.note(where, "is not shareable; a claim of v1 may always be shared")
    return {"devices": devices_of_claim(class_name, parameters, remarks)}


def _with_mode(metadata: Json, spec: Json) -> Json:
    """Label what is to be allocated at once, which v1 itself does not have."""
    if spec.get("allocationMode") != "Immediate":
        return metadata
    labels = mapping_in(metadata, "labels") | {names.ALLOCATE: names.IMMEDIATE}
    return {**metadata, "labels": labels}


def _status(old: Json, remarks: Remarks) -> Json:
    if old.get("deallocationRequested"):
        remarks.note("status.deallocationRequested", DEALLOCATION)
    status: Json = {}
    allocation = mapping_in(old, "allocation")
    if allocation:
        handles = list_in(allocation, "resourceHandles")
        results = list(_results(handles, remarks))
        config = list(_configs(handles))
        nodes = allocation.get("availableOnNodes")
        devices = without_unset({"results": results, "config": config})
        status["allocation"] = without_unset(
            {"devices": devices, "nodeSelector": nodes}
        )
    if old.get("reservedFor"):
        status["reservedFor"] = old["reservedFor"]
    return status


def _results(handles: list[Any], remarks: Remarks) -> Iterator[Json]:
    count = 0
    for at, handle in enumerate(handles):
        structured = mapping_in(handle, "structuredData")
        if not structured:
            field = f"status.allocation.resourceHandles[{at}]"
            text = "which devices it stands for is known to its driver only"
            remarks.refuse(field, text)
        for result in list_in(structured, "results"):
            yield {
                "request": f"req-{count}",
                "driver": text_in(handle, "driverName"),
                "pool": text_in(structured, "nodeName"),
                "device": rename_device(text_in(result, "namedResources", "name")),
            }
            count += 1


def _configs(handles: list[Any]) -> Iterator[Json]:
    """Say what a driver gets with the devices: of the class, the claim, a request."""
    count = 0
    for handle in handles:
        driver = text_in(handle, "driverName")
        structured = mapping_in(handle, "structuredData")
        results = list_in(structured, "results")
        names_of_all = [f"req-{count + at}" for at in range(len(results))]
        count += len(results)
        found = [
            ("FromClass", [], structured.get("vendorClassParameters")),
            ("FromClaim", names_of_all, structured.get("vendorClaimParameters")),
            *(
                ("FromClaim", [name], result.get("vendorRequestParameters"))
                for name, result in zip(names_of_all, results, strict=True)
                if isinstance(result, dict)
            ),
        ]
        for source, requests, parameters in found:
            if parameters:
                opaque = {"driver": driver, "parameters": parameters}
                yield without_unset(
                    {"source": source, "requests": requests, "opaque": opaque}
                )


def _key_of(reference: Json, namespace: str) -> ParametersKey:
    group, kind = text_in(reference, "apiGroup"), text_in(reference, "kind")
    return group, kind, namespace or DEFAULT, text_in(reference, "name")
