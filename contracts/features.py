"""Kubernetes' feature gates for DRA: which exist, their defaults, what they switch.

An allocator has fourteen switches; each is one gate, or two that must both be on. The
defaults follow the release, so a cluster is described by its version and the gates
that its administrator changed.

Source: pkg/features/kube_features.go; k8s.io/dynamic-resource-allocation/structured.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from msgspec import Struct

DEFAULT_VERSION = "1.37"
_OFF, _ON = False, True
RELEASES = ("1.32", "1.33", "1.34", "1.35", "1.36", "1.37", "1.38")
"""Of Kubernetes, whose gates we know."""
GATES: dict[str, tuple[bool | None, ...]] = {
    "DynamicResourceAllocation": (_OFF, _OFF, _ON, _ON, _ON, _ON, None),
    "DRAAdminAccess": (_OFF, _OFF, _ON, _ON, _ON, _ON, _ON),
    "NodeDeclaredFeatures": (None, None, None, _OFF, _ON, _ON, _ON),
    "DRAPrioritizedList": (None, _OFF, _ON, _ON, _ON, _ON, _ON),
    "DRAResourceClaimDeviceStatus": (_OFF, _ON, _ON, _ON, _ON, _ON, _ON),
    "DRASchedulerFilterTimeout": (None, None, _ON, _ON, _ON, _ON, _ON),
    "DRADeviceBindingConditions": (None, None, _OFF, _OFF, _ON, _ON, _ON),
    "DRAPartitionableDevices": (None, _OFF, _OFF, _OFF, _ON, _ON, _ON),
    "DRADeviceTaints": (None, _OFF, _OFF, _OFF, _ON, _ON, _ON),
    "DRADeviceTaintRules": (None, None, None, _OFF, _OFF, _ON, _ON),
    "DRAConsumableCapacity": (None, None, _OFF, _OFF, _ON, _ON, _ON),
    "DRAExtendedResource": (None, None, _OFF, _OFF, _ON, _ON, _ON),
    "DRAListTypeAttributes": (None, None, None, None, _OFF, _OFF, _OFF),
    "DRANodeAllocatableResources": (None, None, None, None, _OFF, _OFF, _OFF),
    "DRAWorkloadResourceClaims": (None, None, None, None, _OFF, _OFF, _OFF),
    "DRAResourcePoolStatus": (None, None, None, None, _OFF, _OFF, _OFF),
    "DRAFractionalCapacityRange": (None, None, None, None, None, _OFF, _ON),
    "DRADerivedAttributes": (None, None, None, None, None, _OFF, _OFF),
    "DRADeviceCompatibilityGroups": (None, None, None, None, None, _OFF, _OFF),
    "DRAPartitionableDevicesType": (None, None, None, None, None, _OFF, _OFF),
    "DRAOptionalNodeOperations": (None, None, None, None, None, _OFF, _OFF),
}
"""By name: the default in each of the versions we know; None: it is not there.

A release runs with the release before it as `--min-compatibility-version` unless it is
told otherwise: DRAFractionalCapacityRange is on in 1.37 only where that is 1.37 too.
"""


class Features(Struct, frozen=True, kw_only=True, rename="camel"):
    """Features of the allocator; the defaults are those of Kubernetes 1.37."""

    admin_access: bool = True
    prioritized_list: bool = True
    partitionable_devices: bool = True
    device_taints: bool = True
    device_taint_rules: bool = True
    device_binding: bool = True
    consumable_capacity: bool = True
    fractional_capacity_range: bool = False
    extended_resource: bool = True
    node_allocatable_resources: bool = False
    list_type_attributes: bool = False
    node_declared_features: bool = True
    optional_node_operations: bool = False
    derived_attributes: bool = False
    compatibility_groups: bool = False
    rules_of_138: bool = False
    """The allocator's rules that no gate switches, as of 1.38.

    A capacity may be named with its driver's domain or without it; versions that differ
    in build metadata alone are equal to constraints; slices that skip node operations
    need their gate whatever other gates are on; a pool in which `All` cannot be counted
    concerns the nodes that see it.
    """


_SWITCHES: dict[str, tuple[str, ...]] = {
    "admin_access": ("DRAAdminAccess",),
    "prioritized_list": ("DRAPrioritizedList",),
    "partitionable_devices": ("DRAPartitionableDevices",),
    "device_taints": ("DRADeviceTaints",),
    "device_taint_rules": ("DRADeviceTaints", "DRADeviceTaintRules"),
    "device_binding": ("DRADeviceBindingConditions", "DRAResourceClaimDeviceStatus"),
    "consumable_capacity": ("DRAConsumableCapacity",),
    "fractional_capacity_range": ("DRAFractionalCapacityRange",),
    "extended_resource": ("DRAExtendedResource",),
    "node_allocatable_resources": ("DRANodeAllocatableResources",),
    "list_type_attributes": ("DRAListTypeAttributes",),
    "node_declared_features": ("NodeDeclaredFeatures",),
    "optional_node_operations": ("DRAOptionalNodeOperations",),
    "derived_attributes": ("DRADerivedAttributes",),
    "compatibility_groups": ("DRADeviceCompatibilityGroups",),
}


class FeatureError(ValueError):
    """A version or gate that Kubernetes does not have."""


_PRINTED = re.compile(r"v?(?P<release>\d+\.\d+)(\.\d+([-+].*)?)?", re.ASCII)


def features_of(
    version: str = DEFAULT_VERSION, gates: Mapping[str, bool] | None = None
) -> Features:
    """Describe a cluster by its version (`1.36`) and the gates that were changed.

    A version may be as kubectl prints it: `v1.36.2-gke.7` is 1.36. One that we do not
    know is as the nearest that we do.

    Raises:
        FeatureError: no version, or no gate that we know.
    """
    release = nearest_release(read_release(version))
    check_gates(gates or {})
    is_on = default_gates(release) | dict(gates or {})
    return Features(
        **{
            switch: all(is_on[name] for name in names)
            for switch, names in _SWITCHES.items()
        },
        rules_of_138=_order(release) >= (1, 38),
    )


def read_release(version: str) -> str:
    """Read the release of a version, such as `1.36` of `v1.36.2-gke.7`.

    Raises:
        FeatureError: it is no version.
    """
    found = _PRINTED.fullmatch(version)
    if found is None:
        raise FeatureError(f"{version!r} is no version of Kubernetes such as 1.37")
    return found["release"]


def default_gates(release: str) -> dict[str, bool]:
    """Return which gates a release that we know has on unless told otherwise."""
    column = RELEASES.index(release)
    return {name: bool(defaults[column]) for name, defaults in GATES.items()}


def nearest_release(release: str) -> str:
    """Return the known release that is nearest to one, such as `1.37` for `1.40`."""
    asked = _order(release)
    return RELEASES[max(sum(_order(one) <= asked for one in RELEASES) - 1, 0)]


def _order(release: str) -> tuple[int, ...]:
    return tuple(map(int, release.split(".")))


def check_gates(gates: Mapping[str, bool]) -> None:
    """Refuse names that are no gate.

    Raises:
        FeatureError: an unknown name.
    """
    for name in sorted(gates):
        if name not in GATES:
            listed = ", ".join(sorted(GATES))
            raise FeatureError(f"feature gate {name!r} is unknown; known are {listed}")


def read_gates(parts: Iterable[str]) -> dict[str, bool]:
    """Read gates written `Name=true` or `Name=false`.

    Raises:
        FeatureError: a part is not of that form.
    """
    gates: dict[str, bool] = {}
    for part in parts:
        name, _, value = part.strip().partition("=")
        if value not in ("true", "false"):
            raise FeatureError(f"{part.strip()!r} is not Name=true or Name=false")
        gates[name] = value == "true"
    return gates
