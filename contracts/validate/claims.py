"""ResourceClaims, their templates, and DeviceClasses, as users write them.

Expects what `defaults.py` fills in to be there. Admin access also depends on the
labels of the namespace, which is not known here.
"""

from __future__ import annotations

from contracts.claim import (
    DeviceClass,
    DeviceConfiguration,
    DeviceConstraint,
    ResourceClaim,
    ResourceClaimSpec,
    ResourceClaimTemplate,
)
from contracts.validate import names
from contracts.validate.allocations import check_claim_status
from contracts.validate.requests import (
    MAX_REQUESTS,
    MAX_SELECTORS,
    RequestNames,
    check_opaque,
    check_references,
    check_request,
    check_selector,
    list_request_names,
)
from contracts.validate.violation import (
    Violations,
    check_each,
    check_each_unique,
    invalid,
    required,
)

MAX_CONSTRAINTS = 32
MAX_CONFIG = 32


def check_claim(value: ResourceClaim) -> Violations:
    """Require a claim that the API server would store, its status included."""
    yield from names.check_object_name(value.metadata)
    yield from check_claim_spec(value.spec, "spec")
    if value.status is not None:
        request_names = list_request_names(value.spec.devices.requests)
        yield from check_claim_status(value.status, request_names, "status")


def check_claim_template(value: ResourceClaimTemplate) -> Violations:
    """Require a template whose claims the API server would store."""
    yield from names.check_object_name(value.metadata)
    yield from check_claim_spec(value.spec.spec, "spec.spec")


def check_claim_spec(value: ResourceClaimSpec, path: str) -> Violations:
    """Require whole requests, and constraints and configuration of them."""
    path = f"{path}.devices"
    devices = value.devices
    request_names = list_request_names(devices.requests)
    yield from check_each_unique(
        devices.requests,
        MAX_REQUESTS,
        f"{path}.requests",
        lambda device_request, place: check_request(
            device_request, devices.constraints, place
        ),
        lambda device_request: device_request.name,
    )
    yield from check_each(
        devices.constraints,
        MAX_CONSTRAINTS,
        f"{path}.constraints",
        lambda constraint, place: _check_constraint(constraint, request_names, place),
    )
    yield from check_each(
        devices.config,
        MAX_CONFIG,
        f"{path}.config",
        lambda config, place: _check_config(config, request_names, place),
    )


def check_device_class(value: DeviceClass) -> Violations:
    """Require a class that the API server would store."""
    spec = value.spec
    yield from names.check_object_name(value.metadata)
    yield from check_each(
        spec.selectors, MAX_SELECTORS, "spec.selectors", check_selector
    )
    yield from check_each(
        spec.config,
        MAX_CONFIG,
        "spec.config",
        lambda c, path: _check_config(c, {}, path),
    )
    if spec.extended_resource_name is not None:
        place = "spec.extendedResourceName"
        yield from names.check_extended_resource_name(
            spec.extended_resource_name, place
        )


def check_attributes(match: str | None, distinct: str | None, path: str) -> Violations:
    """Require exactly one of matchAttribute and distinctAttribute."""
    rule = "exactly one of `matchAttribute` or `distinctAttribute` is required"
    if match is None and distinct is None:
        yield required(path, rule)
    elif match is not None and distinct is not None:
        yield invalid(path, match, f"{rule}, but multiple fields are set")
    for field, name in (("matchAttribute", match), ("distinctAttribute", distinct)):
        if name is not None:
            yield from names.check_fully_qualified_name(name, f"{path}.{field}")


def _check_constraint(
    value: DeviceConstraint, request_names: RequestNames, path: str
) -> Violations:
    yield from check_references(value.requests, request_names, f"{path}.requests")
    yield from check_attributes(value.match_attribute, value.distinct_attribute, path)


def _check_config(
    value: DeviceConfiguration, request_names: RequestNames, path: str
) -> Violations:
    yield from check_references(value.requests, request_names, f"{path}.requests")
    if value.opaque is None:
        yield required(f"{path}.opaque")
    else:
        driver, parameters = value.opaque.driver, value.opaque.parameters
        yield from check_opaque(driver, parameters, f"{path}.opaque")
