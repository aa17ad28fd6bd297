"""(Node, wanted counts) -> the JSON patch of its status, and what it changes. Pure.

Capacity is what is there, allocatable what kube-scheduler gives out. A kubelet copies
extended resources from the one to the other within seconds; on a Node without a kubelet
nobody does. So both are written, with the same value: no kubelet makes another of it.

Source: Kubernetes' tasks/administer-cluster/extended-resource-node;
k8s.io/kubernetes pkg/kubelet/nodestatus, MachineInfo.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from msgspec import Struct

from contracts.names import AGENT_MANAGER
from contracts.quantity import Quantity, QuantityError
from nodeagent.errors import AdvertisementError

PERSON_MANAGER = "moorings-advertise"
"""As whom people write by hand."""
_FIELDS = ("capacity", "allocatable")
Json = Mapping[str, Any]


class AdvertisementPlan(Struct, frozen=True, kw_only=True):
    """A patch of a Node's status; nothing without operations."""

    operations: tuple[dict[str, Any], ...] = ()
    before: dict[str, str | None] = {}
    """Capacity of each resource named; None: the Node had none of it."""
    after: dict[str, str | None] = {}


def plan_advertisement(
    node: Json,
    wanted: Mapping[str, int],
    withdrawn: Collection[str] = (),
    *,
    manager: str,
    force: bool = False,
) -> AdvertisementPlan:
    """Plan that a Node offers `wanted`, and nothing of what is withdrawn.

    `manager` is who writes. Unless `force`, what others offer on the Node stays theirs.

    Raises:
        AdvertisementError: somebody else offers one of the resources there.
    """
    name, status = str(node["metadata"]["name"]), node.get("status") or {}
    writers = {} if force else _find_writers(node, manager)
    capacity = status.get("capacity") or {}
    after = {resource: str(count) for resource, count in wanted.items()}
    named = (*sorted(after), *sorted(set(withdrawn) - after.keys()))
    for resource in named:
        if resource in writers and _is_some(capacity.get(resource)):
            raise AdvertisementError(name, resource, writers[resource])
    operations = [
        operation
        for field in _FIELDS
        for operation in _plan_amounts(field, status.get(field), after, withdrawn)
    ]
    return AdvertisementPlan(
        operations=tuple(operations),
        before={resource: capacity.get(resource) for resource in named},
        after={resource: after.get(resource) for resource in named},
    )


def list_written(node: Json, manager: str) -> frozenset[str]:
    """Name the resources in a Node's capacity that a manager wrote last."""
    return frozenset(
        resource
        for writer, resource in _list_fields(node)
        if writer == manager and resource in (node["status"].get("capacity") or {})
    )


def _find_writers(node: Json, manager: str) -> dict[str, str]:
    """Return who else wrote each resource; an agent takes over what a person wrote."""
    own = {manager}
    if manager == AGENT_MANAGER:
        own.add(PERSON_MANAGER)
    fields = list(_list_fields(node))
    ours = {resource for writer, resource in fields if writer in own}
    return {
        resource: writer
        for writer, resource in fields
        if resource not in ours and writer not in own
    }


def _list_fields(node: Json) -> Iterator[tuple[str, str]]:
    """Go through the writers of a Node's capacity: manager and resource."""
    for entry in node["metadata"].get("managedFields") or ():
        fields = (entry.get("fieldsV1") or {}).get("f:status") or {}
        for key in fields.get("f:capacity") or ():
            if key.startswith("f:"):
                yield str(entry.get("manager", "")), key.removeprefix("f:")


def _plan_amounts(
    field: str,
    amounts: Mapping[str, str] | None,
    wanted: Mapping[str, str],
    withdrawn: Collection[str],
) -> Iterator[dict[str, Any]]:
    """Write one map of amounts: what is as it should be needs no operation."""
    path = f"/status/{field}"
    there = amounts or {}
    if amounts is None and wanted:
        yield {"op": "add", "path": path, "value": {}}
    for resource, count in sorted(wanted.items()):
        if not _is_equal(there.get(resource), count):
            yield {
                "op": "add",
                "path": f"{path}/{_escape_pointer(resource)}",
                "value": count,
            }
    for resource in sorted(set(withdrawn) - wanted.keys()):
        if resource in there:
            yield {"op": "remove", "path": f"{path}/{_escape_pointer(resource)}"}


def _escape_pointer(key: str) -> str:
    """Write a key as one step of a JSON pointer (RFC 6901)."""
    return key.replace("~", "~0").replace("/", "~1")


def _is_some(amount: str | None) -> bool:
    """True if it is more than 0, which kubelet sets after a restart."""
    return amount is not None and not _is_equal(amount, "0")


def _is_equal(amount: str | None, count: str) -> bool:
    try:
        return amount is not None and Quantity.parse(amount) == Quantity.parse(count)
    except QuantityError:
        return False
