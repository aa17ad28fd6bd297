"""Objects of classic DRA, as far as their controller must know them, and its writes.

Both versions are read as one: what differs is here and in `known`. Source: k8s.io/api
v0.30 resource/v1alpha2 and v0.31 resource/v1alpha3; the order of writes is that of
k8s.io/dynamic-resource-allocation v0.30 controller.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct

from contracts.allocation import AllocationResult
from contracts.alpha.said import Json, list_in, mapping_in, text_in
from contracts.claim import ResourceClaimSpec
from contracts.codec import to_builtins
from contracts.messages import PodRef
from runtime.kube.kinds import (
    DEVICE_CLASS,
    NODE,
    POD,
    RESOURCE_CLAIM,
    RESOURCE_SLICE,
    Kind,
)

V1ALPHA2, V1ALPHA3 = "v1alpha2", "v1alpha3"
GROUP = RESOURCE_CLAIM.group
RESOURCE_CLASS = Kind(
    group=GROUP, version=V1ALPHA2, plural="resourceclasses", name="ResourceClass"
)
CLAIM_PARAMETERS = Kind(
    group=GROUP,
    version=V1ALPHA2,
    plural="resourceclaimparameters",
    name="ResourceClaimParameters",
    namespaced=True,
)
CLASS_PARAMETERS = Kind(
    group=GROUP,
    version=V1ALPHA2,
    plural="resourceclassparameters",
    name="ResourceClassParameters",
    namespaced=True,
)
CONTEXT = Kind(
    group=GROUP,
    version=V1ALPHA3,
    plural="podschedulingcontexts",
    name="PodSchedulingContext",
    namespaced=True,
)
MOST_NODES = 128
"""Nodes that a context names (PodSchedulingNodeListMaxSize)."""
_MOST_DATA = 16 * 1024
"""Bytes of a ResourceHandle's data (ResourceHandleDataMaxSize)."""
_RESULT = ("request", "driver", "pool", "device")


def kinds_of(version: str) -> dict[str, Kind]:
    """Return the kinds that the controller follows, by name."""
    own = (RESOURCE_CLAIM, RESOURCE_SLICE, CONTEXT)
    classes = (
        (RESOURCE_CLASS, CLAIM_PARAMETERS, CLASS_PARAMETERS)
        if version == V1ALPHA2
        else (DEVICE_CLASS,)
    )
    kinds = (POD, NODE, *(kind.at(version) for kind in (*own, *classes)))
    return {kind.name: kind for kind in kinds}


class SchedulingContext(Struct, frozen=True, kw_only=True):
    """What kube-scheduler asks about a pod, and what it was answered."""

    key: str
    uid: str
    resource_version: str
    pod_uid: str
    """Of the pod that controls it; that of another pod's is of no use."""
    selected: str = ""
    potential: tuple[str, ...] = ()
    said: tuple[Json, ...] = ()
    """`status.resourceClaims`, of all controllers."""

    @property
    def asked(self) -> tuple[str, ...]:
        """The nodes that are asked about; sorted."""
        return tuple(sorted({*self.potential, self.selected} - {""}))

    def unsuitable(self, claim: str) -> tuple[str, ...] | None:
        """Return the nodes that will not do for a claim; None: nobody said."""
        for entry in self.said:
            if entry.get("name") == claim:
                return tuple(entry.get("unsuitableNodes") or ())
        return None


class ClassicClaim(Struct, frozen=True, kw_only=True):
    """A ResourceClaim of either version."""

    key: str
    uid: str
    resource_version: str
    controller: str = ""
    """Which controller is to allocate it, of those that we are; empty: others do."""
    finalizers: tuple[str, ...] = ()
    is_deleted: bool = False
    is_immediate: bool = False
    is_allocated: bool = False
    is_unwanted: bool = False
    """True if its deallocation is requested."""
    is_shareable: bool = True
    """True if several pods may use it at a time."""
    reserved_for: tuple[Json, ...] = ()
    spec: ResourceClaimSpec | None = None
    """What it asks for, in v1; None: it cannot be said."""
    fault: str = ""
    """Why it cannot be said."""

    @property
    def is_pending(self) -> bool:
        """True if we are to allocate it, and for a pod."""
        return self.is_wanting and not self.is_immediate

    @property
    def is_wanting(self) -> bool:
        """True if we are to allocate it."""
        return bool(self.controller) and not (self.is_allocated or self.is_deleted)

    @property
    def name(self) -> str:
        """Its name in its namespace."""
        return self.key.partition("/")[2]


def read_context(raw: Mapping[str, Any], key: str) -> SchedulingContext:
    """Read a PodSchedulingContext."""
    meta = mapping_in(raw, "metadata")
    owners = list_in(meta, "ownerReferences")
    return SchedulingContext(
        key=key,
        uid=text_in(meta, "uid"),
        resource_version=text_in(meta, "resourceVersion"),
        pod_uid=next((text_in(o, "uid") for o in owners if o.get("controller")), ""),
        selected=text_in(raw, "spec", "selectedNode"),
        potential=tuple(list_in(raw, "spec", "potentialNodes")),
        said=tuple(list_in(raw, "status", "resourceClaims")),
    )


def finalizer_of(controller: str) -> str:
    """Return what keeps a claim while its controller holds devices for it."""
    return f"{controller}/deletion-protection"


# --- allocations ----------------------------------------------------------------------


def read_allocation(version: str, raw: Mapping[str, Any]) -> Json | None:
    """Return a claim's allocation in v1; None: it has none whose devices are known.

    In v1alpha2 only whoever wrote a handle can read its data; ours can be read.
    """
    allocation = mapping_in(raw, "status", "allocation")
    if not allocation:
        return None
    if version == V1ALPHA3:
        allocation.pop("controller", None)
        return allocation
    devices: dict[str, list[Json]] = {"results": [], "config": []}
    for handle in list_in(allocation, "resourceHandles"):
        try:
            data = json.loads(text_in(handle, "data") or "{}")
        except ValueError:
            continue
        for field in devices:
            devices[field] += list_in(data, "devices", field)
    if not devices["results"]:
        return None
    selector = mapping_in(allocation, "availableOnNodes")
    return {"devices": devices} | ({"nodeSelector": selector} if selector else {})


def write_allocation(
    version: str, claim: ClassicClaim, allocation: AllocationResult, pod: PodRef | None
) -> Json:
    """Make the status of a claim that is allocated, for a pod if there is one.

    Only what both versions have of a result is written.
    """
    told: Json = to_builtins(allocation)
    results = [
        {field: result[field] for field in _RESULT}
        for result in told["devices"]["results"]
    ]
    config = told["devices"].get("config") or []
    selector = told.get("nodeSelector")
    users = [*claim.reserved_for, *([] if pod is None else [_user_of(pod)])]
    status: Json = {"reservedFor": users} if users else {}
    if version == V1ALPHA3:
        devices = {"results": results} | ({"config": config} if config else {})
        status["allocation"] = {
            "devices": devices,
            "controller": claim.controller,
        } | ({"nodeSelector": selector} if selector else {})
        return {"status": status}
    status["driverName"] = claim.controller
    status["allocation"] = {
        "resourceHandles": list(_handles(results, config)),
        "shareable": claim.is_shareable,
    } | ({"availableOnNodes": selector} if selector else {})
    return {"status": status}


def write_deallocation(version: str) -> Json:
    """Make the status of a claim that holds nothing any longer."""
    status: Json = {"allocation": None, "deallocationRequested": None}
    if version == V1ALPHA2:
        status["driverName"] = None
    return {"status": status}


def write_unsuitable(
    context: SchedulingContext, nodes_by_claim: Mapping[str, tuple[str, ...]]
) -> Json:
    """Make the status of a context that says of our claims which nodes will not do."""
    others = [entry for entry in context.said if entry["name"] not in nodes_by_claim]
    own = [
        {"name": name, "unsuitableNodes": list(nodes)}
        for name, nodes in sorted(nodes_by_claim.items())
    ]
    return {"status": {"resourceClaims": [*others, *own]}}


def _user_of(pod: PodRef) -> Json:
    return {"resource": "pods", "name": pod.name, "uid": pod.uid}


def _handles(results: list[Json], config: list[Json]) -> Iterable[Json]:
    """Yield a handle for each driver, with the devices that it is to prepare.

    What is too long for a handle are the parameters, which a driver also finds in the
    objects that they are from.
    """
    for driver in sorted({result["driver"] for result in results}):
        own = [result for result in results if result["driver"] == driver]
        devices: Json = {"results": own}
        data = json.dumps({"devices": devices | ({"config": config} if config else {})})
        if len(data) > _MOST_DATA:
            data = json.dumps({"devices": devices})
        yield {"driverName": driver, "data": data}
