"""Kubernetes' feature gates for DRA, by name: which exist, and what was asked."""

from __future__ import annotations

from collections.abc import Mapping

from moorings.errors import UsageError

GATES = frozenset(
    {
        "DRAAdminAccess",
        "DRAConsumableCapacity",
        "DRADerivedAttributes",
        "DRADeviceBindingConditions",
        "DRADeviceCompatibilityGroups",
        "DRADeviceTaintRules",
        "DRADeviceTaints",
        "DRAExtendedResource",
        "DRAFractionalCapacityRange",
        "DRAListTypeAttributes",
        "DRANodeAllocatableResources",
        "DRAOptionalNodeOperations",
        "DRAPartitionableDevices",
        "DRAPartitionableDevicesType",
        "DRAPrioritizedList",
        "DRAResourceClaimDeviceStatus",
        "DRAResourcePoolStatus",
        "DRASchedulerFilterTimeout",
        "DRAWorkloadResourceClaims",
        "DynamicResourceAllocation",
    }
)
"""Known by name; none changes what this version decides (docs/modelled.md)."""


def read_gates(text: str) -> dict[str, bool]:
    """Read `Name=true,Other=false`.

    Raises:
        UsageError: a part is not of that form, or no gate of Kubernetes.
    """
    found: dict[str, bool] = {}
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        name, equals, value = part.partition("=")
        if not equals or value not in ("true", "false"):
            raise UsageError(
                f"--feature-gates: {part!r} is not Name=true or Name=false"
            )
        found[name] = value == "true"
    check_gates(found)
    return found


def check_gates(gates: Mapping[str, bool]) -> None:
    """Refuse names that are no gate.

    Raises:
        UsageError: an unknown name.
    """
    for name in sorted(gates):
        if name not in GATES:
            known = ", ".join(sorted(GATES))
            raise UsageError(f"feature gate {name!r} is not known; known are {known}")
