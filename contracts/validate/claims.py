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
from contracts.validate.allocations import claim_status
from contracts.validate.requests import (
    MAX_REQUESTS,
    MAX_SELECTORS,
    RequestNames,
    opaque,
    references,
    request,
    request_names,
    selector,
)
from contracts.validate.violation import (
    Violations,
    each,
    each_unique,
    invalid,
    required,
)

MAX_CONSTRAINTS = 32
MAX_CONFIG = 32


def claim(value: ResourceClaim) -> Violations:
    """Require a claim that the API server would store, its status included."""
    yield from names.object_name(value.metadata)
    yield from claim_spec(value.spec, "spec")
    if value.status is not None:
        known = request_names(value.spec.devices.requests)
        yield from claim_status(value.status, known, "status")


def claim_template(value: ResourceClaimTemplate) -> Violations:
    """Require a template whose claims the API server would store."""
    yield from names.object_name(value.metadata)
    yield from claim_spec(value.spec.spec, "spec.spec")


def claim_spec(value: ResourceClaimSpec, path: str) -> Violations:
    """Require whole requests, and constraints and configuration of them."""
    path = f"{path}.devices"
    devices = value.devices
    known = request_names(devices.requests)
    yield from each_unique(
        devices.requests,
        MAX_REQUESTS,
        f"{path}.requests",
        lambda item, place: request(item, devices.constraints, place),
        lambda item: item.name,
    )
    yield from each(
        devices.constraints,
        MAX_CONSTRAINTS,
        f"{path}.constraints",
        lambda item, place: _constraint(item, known, place),
    )
    yield from each(
        devices.config,
        MAX_CONFIG,
        f"{path}.config",
        lambda item, place: _config(item, known, place),
    )


def device_class(value: DeviceClass) -> Violations:
    """Require a class that the API server would store."""
    spec = value.spec
    yield from names.object_name(value.metadata)
    yield from each(spec.selectors, MAX_SELECTORS, "spec.selectors", selector)
    yield from each(
        spec.config, MAX_CONFIG, "spec.config", lambda c, path: _config(c, {}, path)
    )
    if spec.extended_resource_name is not None:
        place = "spec.extendedResourceName"
        yield from names.extended_resource_name(spec.extended_resource_name, place)


def attributes(match: str | None, distinct: str | None, path: str) -> Violations:
    """Require exactly one of matchAttribute and distinctAttribute."""
    rule = "exactly one of `matchAttribute` or `distinctAttribute` is required"
    if match is None and distinct is None:
        yield required(path, rule)
    elif match is not None and distinct is not None:
        yield invalid(path, match, f"{rule}, but multiple fields are set")
    for field, name in (("matchAttribute", match), ("distinctAttribute", distinct)):
        if name is not None:
            yield from names.fully_qualified_name(name, f"{path}.{field}")


def _constraint(value: DeviceConstraint, known: RequestNames, path: str) -> Violations:
    yield from references(value.requests, known, f"{path}.requests")
    yield from attributes(value.match_attribute, value.distinct_attribute, path)


def _config(value: DeviceConfiguration, known: RequestNames, path: str) -> Violations:
    yield from references(value.requests, known, f"{path}.requests")
    if value.opaque is None:
        yield required(f"{path}.opaque")
    else:
        driver, parameters = value.opaque.driver, value.opaque.parameters
        yield from opaque(driver, parameters, f"{path}.opaque")
