"""ResourceSlices of v1alpha2 -> v1: named resources become the devices of a pool.

A driver's slices of a node are one pool, named after the node as drivers name theirs.

Source: k8s.io/api v0.30 resource/v1alpha2 ResourceSlice, NamedResourcesInstance.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from contracts.alpha.said import Json, Remarks, list_in, mapping_in, text_in
from contracts.alpha.selectors import SelectorError, rename_attribute
from contracts.kubernetes.decode import V1

_LISTS = {"intSlice": "ints", "stringSlice": "strings"}
_VALUES = ("bool", "int", "string", "version")


def pool_of(raw: Json) -> tuple[str, str]:
    """Return the driver and node of a slice: those of one pool have the same."""
    return text_in(raw, "driverName"), text_in(raw, "nodeName")


def slice_to_v1(raw: Json, slices_of_pool: int, remarks: Remarks) -> Json:
    """Say a ResourceSlice in v1; `slices_of_pool`: how many its pool has."""
    driver, node = pool_of(raw)
    if not node:
        remarks.refuse("nodeName", "required: without it no pool can be named")
    pool = {"name": node, "generation": 1, "resourceSliceCount": slices_of_pool}
    instances = list_in(mapping_in(raw, "namedResources"), "instances")
    devices = [
        _device(instance, f"namedResources.instances[{at}]", remarks)
        for at, instance in enumerate(instances)
    ]
    spec = {"driver": driver, "nodeName": node, "pool": pool, "devices": devices}
    return {
        "apiVersion": V1,
        "kind": "ResourceSlice",
        "metadata": mapping_in(raw, "metadata"),
        "spec": spec,
    }


def rename_device(name: str) -> str:
    """Name a device as v1 does: v1alpha2 takes DNS subdomains, v1 DNS labels."""
    return name.replace(".", "-")


def _device(instance: Any, place: str, remarks: Remarks) -> Json:
    name = text_in(instance, "name")
    device: Json = {"name": rename_device(name)}
    if device["name"] != name:
        remarks.note(f"{place}.name", f"is {device['name']} in v1")
    attributes: Json = {}
    capacity: Json = {}
    for at, attribute in enumerate(list_in(instance, "attributes")):
        where = f"{place}.attributes[{at}]"
        try:
            key = rename_attribute(text_in(attribute, "name"))
        except SelectorError as error:
            remarks.refuse(f"{where}.name", str(error))
            continue
        if key in attributes or key in capacity:
            remarks.refuse(f"{where}.name", f"is {key} in v1, as another attribute is")
        if "quantity" in attribute:
            capacity[key] = {"value": attribute["quantity"]}
        else:
            attributes[key] = _value(attribute, where, remarks)
    device |= {"attributes": attributes} if attributes else {}
    return device | ({"capacity": capacity} if capacity else {})


def _value(attribute: Json, place: str, remarks: Remarks) -> Json:
    for old, new in _LISTS.items():
        if old in attribute:
            return {new: list_in(mapping_in(attribute, old), new)}
    values = {key: attribute[key] for key in _VALUES if key in attribute}
    if len(values) != 1:
        types = ", ".join(("quantity", *_VALUES, *_LISTS))
        remarks.refuse(place, f"exactly one of {types} is required")
    return values


def count_pools(slices: Iterable[Json]) -> dict[tuple[str, str], int]:
    """Count the slices of each pool."""
    counts: dict[tuple[str, str], int] = {}
    for raw in slices:
        key = pool_of(raw)
        counts[key] = counts.get(key, 0) + 1
    return counts
