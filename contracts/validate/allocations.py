"""Allocations of claims, who they are reserved for, and what drivers say of them.

Judges form alone, as the API server does: whether the devices exist and are free is
the solver's to know.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from contracts.allocation import (
    MAX_DEVICES,
    AllocationResult,
    DeviceAllocationConfiguration,
    DeviceRequestAllocationResult,
)
from contracts.claim import ResourceClaimConsumerReference, ResourceClaimStatus
from contracts.codec import encode
from contracts.validate import names
from contracts.validate.devices import conditions
from contracts.validate.nodes import node_selector
from contracts.validate.requests import (
    MAX_REQUESTS,
    RequestNames,
    opaque,
    reference,
    references,
)
from contracts.validate.slices import skip_node_operations
from contracts.validate.taints import MAX_TOLERATIONS, toleration
from contracts.validate.violation import (
    Violations,
    each,
    each_unique,
    forbidden,
    invalid,
    one_of,
    required,
    too_long,
    too_many,
)

MAX_CONFIG = 64
"""Of classes and of the claim."""
MAX_RESERVED_FOR = 256
SOURCES = ("FromClaim", "FromClass")

MAX_DEVICE_CONDITIONS = 8
MAX_DATA_BYTES = 10 * 1024
MAX_IPS = 16
MAX_INTERFACE_NAME_BYTES = 256
MAX_HARDWARE_ADDRESS_BYTES = 128


def allocation(
    value: AllocationResult, known: RequestNames | None, path: str
) -> Violations:
    """Require results that the API server takes.

    `known` are the requests of the claim; None where the claim is not at hand.
    """
    yield from each(
        value.devices.results,
        MAX_DEVICES,
        f"{path}.devices.results",
        lambda item, place: _result(item, known, place),
    )
    yield from each(
        value.devices.config,
        MAX_CONFIG,
        f"{path}.devices.config",
        lambda item, place: _config(item, known, place),
    )
    if value.node_selector is not None:
        yield from node_selector(value.node_selector, f"{path}.nodeSelector")


def claim_status(
    value: ResourceClaimStatus, known: RequestNames, path: str
) -> Violations:
    """Require an allocation, reservations of it, and nothing about other devices."""
    if value.allocation is not None:
        yield from allocation(value.allocation, known, f"{path}.allocation")
    elif value.reserved_for:
        message = "may not be specified when `allocation` is not set"
        yield forbidden(f"{path}.reservedFor", message)
    yield from each_unique(
        value.reserved_for,
        MAX_RESERVED_FOR,
        f"{path}.reservedFor",
        _consumer,
        lambda item: item.uid,
    )
    results = value.allocation.devices.results if value.allocation else ()
    allocated = {(r.driver, r.pool, r.device, r.share_id) for r in results}
    yield from each_unique(
        [item if isinstance(item, dict) else {} for item in value.devices],
        None,
        f"{path}.devices",
        lambda item, place: _device_status(item, allocated, place),
        _device_key,
    )


def _result(
    value: DeviceRequestAllocationResult, known: RequestNames | None, path: str
) -> Violations:
    if known is None:
        if not value.request:
            yield required(f"{path}.request")
    else:
        yield from reference(value.request, known, f"{path}.request")
    yield from names.driver_name(value.driver, f"{path}.driver")
    yield from names.pool_name(value.pool, f"{path}.pool")
    yield from names.dns_label(value.device, f"{path}.device")
    yield from conditions(
        value.binding_conditions, value.binding_failure_conditions, path
    )
    place = f"{path}.tolerations"
    yield from each(value.tolerations, MAX_TOLERATIONS, place, toleration)
    if value.share_id is not None:
        yield from names.uuid(value.share_id, f"{path}.shareID")
    operations = value.skip_node_operations or ()
    yield from skip_node_operations(operations, f"{path}.skipNodeOperations")


def _config(
    value: DeviceAllocationConfiguration, known: RequestNames | None, path: str
) -> Violations:
    yield from one_of(f"{path}.source", value.source, SOURCES)
    if known is not None:
        yield from references(value.requests, known, f"{path}.requests")
    elif len(value.requests) > MAX_REQUESTS:
        yield too_many(f"{path}.requests", len(value.requests), MAX_REQUESTS)
    if not isinstance(value.opaque, dict):
        yield required(f"{path}.opaque")
    else:
        driver, parameters = value.opaque.get("driver"), value.opaque.get("parameters")
        name = driver if isinstance(driver, str) else ""
        yield from opaque(name, parameters, f"{path}.opaque")


def _consumer(value: ResourceClaimConsumerReference, path: str) -> Violations:
    fields = {"resource": value.resource, "name": value.name, "uid": value.uid}
    for field, text in fields.items():
        if not text:
            yield required(f"{path}.{field}")


def _device_key(value: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(value.get(key) for key in ("driver", "pool", "device", "shareID"))


def _device_status(
    value: dict[str, Any], allocated: set[tuple[Any, ...]], path: str
) -> Violations:
    """Require the device to be allocated, and bearable sizes."""
    key = _device_key(value)
    if key not in allocated:
        shown = "/".join(str(part) for part in key if part is not None)
        yield invalid(path, shown, "must be an allocated device in the claim")
    found = value.get("conditions")
    if isinstance(found, Sequence) and len(found) > MAX_DEVICE_CONDITIONS:
        yield too_many(f"{path}.conditions", len(found), MAX_DEVICE_CONDITIONS)
    data = value.get("data")
    if data is not None and len(encode(data)) > MAX_DATA_BYTES:
        yield too_long(f"{path}.data", MAX_DATA_BYTES)
    network = value.get("networkData")
    if isinstance(network, dict):
        yield from _network(network, f"{path}.networkData")


def _network(value: dict[str, Any], path: str) -> Violations:
    limits = {
        "interfaceName": MAX_INTERFACE_NAME_BYTES,
        "hardwareAddress": MAX_HARDWARE_ADDRESS_BYTES,
    }
    for field, limit in limits.items():
        if len(str(value.get(field) or "").encode()) > limit:
            yield too_long(f"{path}.{field}", limit)
    ips = value.get("ips") or ()
    if len(ips) > MAX_IPS:
        yield too_many(f"{path}.ips", len(ips), MAX_IPS)
