"""Finds pods that request devices, by claims or extended resources. Pure.

Opaque integer resources, their forerunners, are asked for and counted alike.

Source: k8s.io/kubernetes/pkg/apis/core/v1/helper, IsExtendedResourceName.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from contracts.claim import IMPLICIT_RESOURCE
from contracts.validate.names import is_opaque_integer
from contracts.workload import PodSpec

_AMOUNTS = ("limits", "requests")
_NOT_WISHES = ("metadata", "status")


def asks_for_devices(spec: PodSpec, devices: Collection[str] | None = None) -> bool:
    """True if a pod requests devices: by claims, or by resources in `devices`.

    `devices` are the extended resources that are devices, as where all DeviceClasses
    and Nodes are known. None: nobody says which are, so any of them may be one. An
    amount of zero asks for nothing, and a scheduling gate is no wish: who waits for us
    is asked apart.
    """
    if spec.resource_claims:
        return True
    wanted = list_extended(spec)
    return bool(wanted if devices is None else wanted.intersection(devices))


def list_extended(spec: PodSpec) -> set[str]:
    """Name the extended resources of which a pod asks for some."""
    return {
        name
        for container in (*spec.init_containers, *spec.containers)
        for amounts in (container.resources.limits, container.resources.requests)
        for name, amount in amounts.items()
        if _is_asked_for(name) and amount.nano > 0
    }


def find_extended(value: Any) -> Iterator[str]:
    """Go through those that stand under `resources` somewhere in a written object.

    Or under a name that begins so, as the `resourcesPerNode` of a TrainJob.
    """
    if isinstance(value, list):
        for element in value:
            yield from find_extended(element)
    if not isinstance(value, Mapping):
        return
    for key, child in value.items():
        if key in _NOT_WISHES:
            continue
        if str(key).startswith("resource") and isinstance(child, Mapping):
            for amounts in map(child.get, _AMOUNTS):
                yield from _list_amounts(amounts)
        yield from find_extended(child)


def _list_amounts(amounts: Any) -> Iterator[str]:
    if isinstance(amounts, Mapping):
        for name, amount in amounts.items():
            if _is_asked_for(str(name)) and str(amount) not in ("0", "None"):
                yield str(name)


def _is_asked_for(name: str) -> bool:
    return is_extended(name) or is_opaque_integer(name)


def is_extended(name: str) -> bool:
    """True if a resource is one that nodes or DeviceClasses name, not a native one."""
    is_native = "kubernetes.io/" in name and not name.startswith(IMPLICIT_RESOURCE)
    return "/" in name and not is_native
