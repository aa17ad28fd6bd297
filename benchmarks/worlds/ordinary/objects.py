"""Kubernetes objects of a drawn cluster, as plain dictionaries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Json = dict[str, Any]
Value = bool | int | str
DRIVER = "gpu.example.com"
PCIE_ROOT = "resource.kubernetes.io/pcieRoot"
KINDS = ("gpu", "nic", "mig", "share")
"""Kinds of device; each has a DeviceClass of its name."""
MOST_PLAIN, MOST_COUNTED = 128, 64
"""Devices of one ResourceSlice, without counters and with."""
MOST_COUNTER_SETS = 8
"""Counter sets of one ResourceSlice."""


def device(
    name: str,
    attributes: Mapping[str, Value],
    *,
    draws: Mapping[str, Mapping[str, int]] | None = None,
    shared_capacity: Mapping[str, str] | None = None,
) -> Json:
    """Make a device; `draws` are amounts by counter set and counter."""
    made: Json = {
        "name": name,
        "attributes": {key: _typed(value) for key, value in attributes.items()},
    }
    if shared_capacity:
        capacity = {key: {"value": value} for key, value in shared_capacity.items()}
        made["capacity"] = capacity
        made["allowMultipleAllocations"] = True
    if draws:
        made["consumesCounters"] = [
            {"counterSet": name, "counters": _amounts(counters)}
            for name, counters in draws.items()
        ]
    return made


def counter_set(name: str, counters: Mapping[str, int]) -> Json:
    """Make what devices of a card share."""
    return {"name": name, "counters": _amounts(counters)}


def node(
    name: str, cpus: int, memory_gib: int, labels: Mapping[str, str] | None = None
) -> Json:
    """Make a node that is ready."""
    named = {"kubernetes.io/hostname": name, **(labels or {})}
    amounts = {"cpu": str(cpus), "memory": f"{memory_gib}Gi", "pods": "250"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": named},
        "status": {
            "allocatable": amounts,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def pool_slices(
    node_name: str, devices: Sequence[Json], sets: Sequence[Json] = ()
) -> list[Json]:
    """Make the slices of a node's pool, counters first; none without devices."""
    if not devices:
        return []
    most = MOST_COUNTED if sets else MOST_PLAIN
    contents = [{"sharedCounters": part} for part in _parts(sets, MOST_COUNTER_SETS)]
    contents += [{"devices": part} for part in _parts(devices, most)]
    pool = {
        "name": node_name,
        "generation": 1,
        "resourceSliceCount": len(contents),
    }
    return [
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceSlice",
            "metadata": {"name": f"{node_name}-{number}"},
            "spec": {
                "driver": DRIVER,
                "nodeName": node_name,
                "pool": dict(pool),
                **content,
            },
        }
        for number, content in enumerate(contents)
    ]


def device_classes() -> list[Json]:
    """Make a DeviceClass for each kind of device."""
    return [
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "DeviceClass",
            "metadata": {"name": kind},
            "spec": {"selectors": [_cel(of_driver(attribute_is("kind", kind)))]},
        }
        for kind in KINDS
    ]


def of_driver(condition: str) -> str:
    """Write a selector that also asks for the driver."""
    return f'device.driver == "{DRIVER}" && {condition}'


def attribute_is(name: str, value: str | int, operator: str = "==") -> str:
    """Compare an attribute, in CEL."""
    text = f'"{value}"' if isinstance(value, str) else str(value)
    return f'device.attributes["{DRIVER}"].{name} {operator} {text}'


def request(
    name: str,
    class_name: str,
    count: int = 1,
    *,
    selectors: Iterable[str] = (),
    capacity: Mapping[str, str] | None = None,
) -> Json:
    """Ask for an exact number of devices of a class."""
    exactly: Json = {
        "deviceClassName": class_name,
        "allocationMode": "ExactCount",
        "count": count,
    }
    if expressions := [_cel(text) for text in selectors]:
        exactly["selectors"] = expressions
    if capacity:
        exactly["capacity"] = {"requests": dict(capacity)}
    return {"name": name, "exactly": exactly}


def claim(name: str, *requests: Json, match: str | None = None) -> Json:
    """Make a claim of a member; all its devices have one value of `match`."""
    devices: Json = {"requests": list(requests)}
    if match:
        devices["constraints"] = [{"matchAttribute": match}]
    return {"name": name, "spec": {"devices": devices}}


def member(
    name: str, count: int, claims: Iterable[Json], *, cpu: str, memory: str
) -> Json:
    """Make so many equal pods of a gang."""
    return {
        "name": name,
        "count": count,
        "claims": list(claims),
        "node": {"resources": {"cpu": cpu, "memory": memory}},
    }


def gang(number: int, members: Iterable[Json], **spec: Any) -> Json:
    """Make a gang; its weight is its number of devices unless `spec` says it."""
    return {
        "apiVersion": "moorings.dev/v1alpha1",
        "kind": "Gang",
        "metadata": {"name": f"g{number:05d}", "namespace": "default"},
        "spec": {"members": list(members), **spec},
    }


def count_devices(objects: Iterable[Json], kind: str) -> int:
    """Count the devices of a kind that some slices offer."""
    return sum(
        offered["attributes"]["kind"] == {"string": kind}
        for item in objects
        for offered in item["spec"].get("devices", ())
    )


def _cel(expression: str) -> Json:
    return {"cel": {"expression": expression}}


def _typed(value: Value) -> Json:
    kind = {bool: "bool", int: "int", str: "string"}[type(value)]
    return {kind: value}


def _amounts(counters: Mapping[str, int]) -> Json:
    return {name: {"value": str(amount)} for name, amount in counters.items()}


def _parts(items: Sequence[Json], most: int) -> list[list[Json]]:
    return [list(items[i : i + most]) for i in range(0, len(items), most)]
