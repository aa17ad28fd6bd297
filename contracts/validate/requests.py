"""Requests of a claim, and how constraints, configuration and results refer to them.

CEL is only measured here: compiling it needs the sandbox.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from contracts.claim import (
    DerivedAttribute,
    DeviceConstraint,
    DeviceRequest,
    DeviceSelector,
    DeviceSubRequest,
    ExactDeviceRequest,
)
from contracts.codec import encode
from contracts.kubernetes.defaults import ALL, EXACT_COUNT
from contracts.validate import names
from contracts.validate.taints import MAX_TOLERATIONS, check_toleration
from contracts.validate.violation import (
    Violations,
    check_each,
    check_each_unique,
    invalid,
    required,
    too_long,
    unsupported,
)

MAX_REQUESTS = 32
MAX_SELECTORS = 32
MAX_SUB_REQUESTS = 8
MAX_DERIVED_ATTRIBUTES = 8
MAX_EXPRESSION_BYTES = 10 * 1024
MAX_PARAMETERS_BYTES = 10 * 1024

RequestNames = Mapping[str, frozenset[str]]
"""Names of subrequests (none: empty) by name of request."""


def list_request_names(requests: Iterable[DeviceRequest]) -> RequestNames:
    """List what constraints, configuration and results may name."""
    return {
        request.name: frozenset(sub.name for sub in request.first_available)
        for request in requests
    }


def check_references(
    entries: tuple[str, ...], request_names: RequestNames, path: str
) -> Violations:
    """Require different names of requests or subrequests that exist."""
    yield from check_each_unique(
        entries,
        MAX_REQUESTS,
        path,
        lambda entry, place: check_reference(entry, request_names, place),
        str,
    )


def check_reference(entry: str, request_names: RequestNames, path: str) -> Violations:
    """Require `request` or `request/subrequest`."""
    request, slash, sub_request = entry.partition("/")
    if request not in request_names or (
        slash and sub_request not in request_names[request]
    ):
        message = (
            "must be the name of a request in the claim or the name of a request and "
            "a subrequest separated by '/'"
        )
        yield invalid(path, entry, message)


def check_selector(value: DeviceSelector, path: str) -> Violations:
    """Require a CEL expression of bearable length."""
    if value.cel is None:
        yield required(f"{path}.cel")
    else:
        yield from _check_expression(value.cel.expression, f"{path}.cel.expression")


def check_opaque(driver: str, parameters: Any, path: str) -> Violations:
    """Require a driver and a JSON object for it."""
    yield from names.check_driver_name(driver, f"{path}.driver")
    place = f"{path}.parameters"
    if parameters is None:
        yield required(place)
    elif not isinstance(parameters, dict):
        yield invalid(place, "<value omitted>", "must be a valid JSON object")
    elif len(encode(parameters)) > MAX_PARAMETERS_BYTES:
        yield too_long(place, MAX_PARAMETERS_BYTES)


def check_request(
    value: DeviceRequest, constraints: tuple[DeviceConstraint, ...], path: str
) -> Violations:
    """Require exactly one way of asking, and every part of it to be whole."""
    yield from names.check_dns_label(value.name, f"{path}.name")
    rule = "exactly one of `exactly` or `firstAvailable` is required"
    if value.exactly is None and not value.first_available:
        yield required(path, rule)
    elif value.exactly is not None and value.first_available:
        yield invalid(path, value.name, f"{rule}, but multiple fields are set")
    elif value.exactly is not None:
        used = _list_constrained(constraints, value.name)
        yield from _check_devices(value.exactly, used, f"{path}.exactly")
    yield from check_each_unique(
        value.first_available if value.exactly is None else (),
        MAX_SUB_REQUESTS,
        f"{path}.firstAvailable",
        lambda sub, place: _check_sub_request(sub, value.name, constraints, place),
        lambda sub: sub.name,
    )


def _check_sub_request(
    value: DeviceSubRequest,
    parent: str,
    constraints: tuple[DeviceConstraint, ...],
    path: str,
) -> Violations:
    yield from names.check_dns_label(value.name, f"{path}.name")
    used = _list_constrained(constraints, parent, f"{parent}/{value.name}")
    yield from _check_devices(value, used, path)


def _check_devices(
    value: ExactDeviceRequest | DeviceSubRequest, constrained: set[str], path: str
) -> Violations:
    yield from names.check_dns_subdomain(
        value.device_class_name, f"{path}.deviceClassName"
    )
    yield from check_each(
        value.selectors, MAX_SELECTORS, f"{path}.selectors", check_selector
    )
    yield from _check_amount(value, path)
    place = f"{path}.tolerations"
    yield from check_each(value.tolerations, MAX_TOLERATIONS, place, check_toleration)
    yield from check_each_unique(
        value.derived_attributes,
        MAX_DERIVED_ATTRIBUTES,
        f"{path}.derivedAttributes",
        lambda attribute, place: _check_derived_attribute(
            attribute, constrained, place
        ),
        lambda attribute: attribute.name,
    )


def _check_amount(
    value: ExactDeviceRequest | DeviceSubRequest, path: str
) -> Violations:
    match value.allocation_mode:
        case "ExactCount":
            if value.count <= 0:
                yield invalid(f"{path}.count", value.count, "must be greater than zero")
        case "All":
            if value.count != 0:
                message = "must not be specified when allocationMode is 'All'"
                yield invalid(f"{path}.count", value.count, message)
        case mode:
            yield unsupported(f"{path}.allocationMode", mode, (ALL, EXACT_COUNT))


def _check_derived_attribute(
    value: DerivedAttribute, constrained: set[str], path: str
) -> Violations:
    if not value.name:
        yield required(f"{path}.name")
    elif value.name not in constrained:
        message = "must be named by a constraint on this request"
        yield invalid(f"{path}.name", value.name, message)
    yield from _check_expression(value.expression, f"{path}.expression")


def _check_expression(text: str, path: str) -> Violations:
    if not text.strip():
        yield required(path)
    elif len(text.encode()) > MAX_EXPRESSION_BYTES:
        yield too_long(path, MAX_EXPRESSION_BYTES)
    elif text.startswith("="):
        # The solver marks expressions of derived attributes so.
        yield invalid(path, text, "must be an expression of CEL: none begins with =")


def _list_constrained(
    constraints: tuple[DeviceConstraint, ...], *entries: str
) -> set[str]:
    """List the attributes that constraints on a (sub)request compare."""
    return {
        attribute
        for constraint in constraints
        if not constraint.requests or set(entries) & set(constraint.requests)
        for attribute in (constraint.match_attribute, constraint.distinct_attribute)
        if attribute is not None
    }
