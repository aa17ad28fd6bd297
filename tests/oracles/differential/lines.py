"""A case as a line of `plan --jsonl`, and a Plan as an answer of the oracle.

Devices that other claims hold become allocated claims, and switches the gates that
switch them.
"""

from __future__ import annotations

import json
from typing import Any

from contracts.features import DEFAULT_VERSION
from tests.oracles.differential.draw import Json

_GATES = {
    "AdminAccess": ("DRAAdminAccess",),
    "CompatibilityGroups": ("DRADeviceCompatibilityGroups",),
    "ConsumableCapacity": ("DRAConsumableCapacity",),
    "DerivedAttributes": ("DRADerivedAttributes",),
    "DeviceBindingAndStatus": (
        "DRADeviceBindingConditions",
        "DRAResourceClaimDeviceStatus",
    ),
    "DeviceTaints": ("DRADeviceTaints",),
    "FractionalCapacityRange": ("DRAFractionalCapacityRange",),
    "ListTypeAttributes": ("DRAListTypeAttributes",),
    "OptionalNodeOperations": ("DRAOptionalNodeOperations",),
    "PartitionableDevices": ("DRAPartitionableDevices",),
    "PrioritizedList": ("DRAPrioritizedList",),
}
_DRA = "resource.k8s.io/v1"
_SCOPES = {"node": "nodeFailure", "cluster": "error", "aborted": "aborted"}


def plan_line(case: Json, release: str = DEFAULT_VERSION) -> bytes:
    """Write the case as `moorings plan --jsonl` reads it."""
    node = case.get("node") or {"metadata": {"name": ""}}
    listed = [
        *(("DeviceClass", _DRA, item) for item in case["classes"]),
        *(("ResourceSlice", _DRA, item) for item in case["slices"]),
        ("Node", "v1", node),
        ("ResourceClaim", _DRA, _held(case)),
        *(("ResourceClaim", _DRA, item) for item in case["claims"]),
    ]
    line = {
        "id": case["id"],
        "node": node["metadata"]["name"],
        "order": "upstream",
        "asStored": True,
        "kubernetesVersion": release,
        "featureGates": {
            gate: bool(case["features"].get(switch))
            for switch, gates in _GATES.items()
            for gate in gates
        },
        "objects": [
            {"apiVersion": version, "kind": kind, **item}
            for kind, version, item in listed
        ],
    }
    return json.dumps(line).encode()


def _held(case: Json) -> Json:
    """Make the claim that holds all that is held; its first share has the sum."""
    sums = {
        _device(item): item["capacity"] for item in case.get("aggregatedCapacity", ())
    }
    results: list[Json] = [
        {"request": "held", **item} for item in case.get("allocated", ())
    ]
    for item in case.get("allocatedShared", ()):
        consumed = sums.pop(_device(item), {})
        results.append({"request": "held", **item, "consumedCapacity": consumed})
    for (driver, pool, device), consumed in sums.items():
        place = {"driver": driver, "pool": pool, "device": device}
        share = {"shareID": f"sum-{len(results)}", "consumedCapacity": consumed}
        results.append({"request": "held", **place, **share})
    allocation = {"devices": {"results": results}}
    return {
        "metadata": {"name": "held-by-others", "namespace": "held-by-others"},
        "spec": {"devices": {}},
        "status": {"allocation": allocation},
    }


def _device(item: Json) -> tuple[str, str, str]:
    return item["driver"], item["pool"], item["device"]


def answer_of(plan: Json) -> Json:
    """Say what a Plan decided, in the form of the oracle."""
    if plan["error"]:
        return {"outcome": "error", "error": plan["error"]}
    claims: list[dict[str, Any]] = plan["claims"]
    failed = next((item for item in claims if item.get("error")), None)
    if failed is not None:
        return {"outcome": _SCOPES[failed["errorScope"]], "error": failed["error"]}
    if all(gang["verdict"] == "allocated" for gang in plan["gangs"]):
        allocations = [item["allocation"] for item in claims]
        return {"outcome": "success", "allocations": allocations}
    return {"outcome": "none"}
