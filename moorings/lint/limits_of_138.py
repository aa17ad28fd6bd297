"""Limits that Kubernetes 1.38 brings: errors there, warnings before it.

Source: pkg/apis/resource/validation of 1.38: names and amounts of capacity requests,
node selectors of devices.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from contracts.claim import ResourceClaim
from contracts.device import ResourceSlice
from contracts.features import Features
from contracts.kubernetes.claim_specs import list_claim_specs
from contracts.quantity import Quantity
from contracts.validate.names import check_qualified_name
from contracts.validate.violation import Violation, invalid, too_many
from moorings.lint.findings import Finding, LintRule, Severity
from moorings.plan.objects import PlanObject

_MOST_CAPACITIES = 32


def check_limits_of_138(entry: PlanObject, features: Features) -> Iterator[Finding]:
    """Find what the API server of 1.38 refuses and older ones take."""
    value = entry.decoded.value
    found = [*_check_requests(value), *_check_results(value), *_check_devices(value)]
    is_refused = features.rules_of_138
    for violation in found:
        yield Finding(
            severity=Severity.ERROR if is_refused else Severity.WARNING,
            kind=entry.decoded.kind,
            namespace=value.metadata.namespace,
            name=value.metadata.name,
            field=violation.field,
            rule=LintRule.INVALID,
            message=violation.reason + ("" if is_refused else ", from 1.38 on"),
        )


def _check_requests(value: object) -> Iterator[Violation]:
    for spec in list_claim_specs(value):
        for number, request in enumerate(spec.devices.requests):
            path = f"spec.devices.requests[{number}]"
            if request.exactly is not None and request.exactly.capacity is not None:
                asked = request.exactly.capacity.requests
                yield from _check_amounts(asked, f"{path}.exactly.capacity.requests")
            for rank, sub in enumerate(request.first_available or ()):
                if sub.capacity is not None:
                    where = f"{path}.firstAvailable[{rank}].capacity.requests"
                    yield from _check_amounts(sub.capacity.requests, where)


def _check_results(value: object) -> Iterator[Violation]:
    if not isinstance(value, ResourceClaim) or value.status is None:
        return
    if value.status.allocation is None:
        return
    for number, result in enumerate(value.status.allocation.devices.results):
        path = f"status.allocation.devices.results[{number}].consumedCapacity"
        yield from _check_amounts(result.consumed_capacity, path)


def _check_amounts(amounts: Mapping[str, Quantity], path: str) -> Iterator[Violation]:
    if len(amounts) > _MOST_CAPACITIES:
        yield too_many(path, len(amounts), _MOST_CAPACITIES)
    for name, amount in amounts.items():
        yield from check_qualified_name(name, path)
        if amount.nano < 0:
            message = "must be greater than or equal to 0"
            yield invalid(f"{path}[{name}]", str(amount), message)


def _check_devices(value: object) -> Iterator[Violation]:
    if not isinstance(value, ResourceSlice):
        return
    for number, device in enumerate(value.spec.devices):
        selector = device.node_selector
        if selector is not None and len(selector.node_selector_terms) != 1:
            yield invalid(
                f"spec.devices[{number}].nodeSelector.nodeSelectorTerms",
                len(selector.node_selector_terms),
                "must have exactly one node selector term",
            )
