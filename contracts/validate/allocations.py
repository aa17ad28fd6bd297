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
from contracts.validate.devices import check_conditions
from contracts.validate.nodes import check_node_selector
from contracts.validate.requests import (
    MAX_REQUESTS,
    RequestNames,
    check_opaque,
    check_reference,
    check_references,
)
from contracts.validate.slices import check_skip_node_operations
from contracts.validate.taints import MAX_TOLERATIONS, check_toleration
from contracts.validate.violation import (
    Violations,
    check_each,
    check_each_unique,
    check_one_of,
    forbidden,
    invalid,
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


def check_allocation(
    value: AllocationResult, request_names: RequestNames | None, path: str
) -> Violations:
    """Require results that the API server takes.

    `request_names` are those of the claim; None where the claim is not at hand.
    """
    yield from check_each(
        value.devices.results,
        MAX_DEVICES,
        f"{path}.devices.results",
        lambda result, place: _check_result(result, request_names, place),
    )
    yield from check_each(
        value.devices.config,
        MAX_CONFIG,
        f"{path}.devices.config",
        lambda config, place: _check_config(config, request_names, place),
    )
    if value.node_selector is not None:
        yield from check_node_selector(value.node_selector, f"{path}.nodeSelector")


def check_claim_status(
    value: ResourceClaimStatus, request_names: RequestNames, path: str
) -> Violations:
    """Require an allocation, reservations of it, and nothing about other devices."""
    if value.allocation is not None:
        yield from check_allocation(
            value.allocation, request_names, f"{path}.allocation"
        )
    elif value.reserved_for:
        message = "may not be specified when `allocation` is not set"
        yield forbidden(f"{path}.reservedFor", message)
    yield from check_each_unique(
        value.reserved_for,
        MAX_RESERVED_FOR,
        f"{path}.reservedFor",
        _check_consumer,
        lambda consumer: consumer.uid,
    )
    results = value.allocation.devices.results if value.allocation else ()
    allocated = {(r.driver, r.pool, r.device, r.share_id) for r in results}
    yield from check_each_unique(
        [status if isinstance(status, dict) else {} for status in value.devices],
        None,
        f"{path}.devices",
        lambda status, place: _check_device_status(status, allocated, place),
        _key_of_device,
    )


def _check_result(
    value: DeviceRequestAllocationResult, request_names: RequestNames | None, path: str
) -> Violations:
    if request_names is None:
        if not value.request:
            yield required(f"{path}.request")
    else:
        yield from check_reference(value.request, request_names, f"{path}.request")
    yield from names.check_driver_name(value.driver, f"{path}.driver")
    yield from names.check_pool_name(value.pool, f"{path}.pool")
    yield from names.check_dns_label(value.device, f"{path}.device")
    yield from check_conditions(
        value.binding_conditions, value.binding_failure_conditions, path
    )
    place = f"{path}.tolerations"
    yield from check_each(value.tolerations, MAX_TOLERATIONS, place, check_toleration)
    if value.share_id is not None:
        yield from names.check_uuid(value.share_id, f"{path}.shareID")
    operations = value.skip_node_operations or ()
    yield from check_skip_node_operations(operations, f"{path}.skipNodeOperations")


def _check_config(
    value: DeviceAllocationConfiguration, request_names: RequestNames | None, path: str
) -> Violations:
    yield from check_one_of(f"{path}.source", value.source, SOURCES)
    if request_names is not None:
        yield from check_references(value.requests, request_names, f"{path}.requests")
    elif len(value.requests) > MAX_REQUESTS:
        yield too_many(f"{path}.requests", len(value.requests), MAX_REQUESTS)
    if not isinstance(value.opaque, dict):
        yield required(f"{path}.opaque")
    else:
        driver, parameters = value.opaque.get("driver"), value.opaque.get("parameters")
        name = driver if isinstance(driver, str) else ""
        yield from check_opaque(name, parameters, f"{path}.opaque")


def _check_consumer(value: ResourceClaimConsumerReference, path: str) -> Violations:
    fields = {"resource": value.resource, "name": value.name, "uid": value.uid}
    for field, text in fields.items():
        if not text:
            yield required(f"{path}.{field}")


def _key_of_device(value: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(value.get(key) for key in ("driver", "pool", "device", "shareID"))


def _check_device_status(
    value: dict[str, Any], allocated: set[tuple[Any, ...]], path: str
) -> Violations:
    """Require the device to be allocated, and bearable sizes."""
    key = _key_of_device(value)
    if key not in allocated:
        shown = "/".join(str(part) for part in key if part is not None)
        yield invalid(path, shown, "must be an allocated device in the claim")
    conditions = value.get("conditions")
    if isinstance(conditions, Sequence) and len(conditions) > MAX_DEVICE_CONDITIONS:
        yield too_many(f"{path}.conditions", len(conditions), MAX_DEVICE_CONDITIONS)
    data = value.get("data")
    if data is not None and len(encode(data)) > MAX_DATA_BYTES:
        yield too_long(f"{path}.data", MAX_DATA_BYTES)
    network = value.get("networkData")
    if isinstance(network, dict):
        yield from _check_network(network, f"{path}.networkData")


def _check_network(value: dict[str, Any], path: str) -> Violations:
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
