"""Finds what the API server would refuse in the claims and resources of a pod.

Only what decides devices and nodes is judged: names of claims and who refers to them,
that extended resources are whole numbers, the same in requests and limits, and what
`contracts/validate/pod_rules.py` says of other pods. Knows no claim.

Source: k8s.io/kubernetes/pkg/apis/core/validation, validatePodResourceClaims,
validateContainerResourceRequirements; pkg/apis/core/helper, IsExtendedResourceName.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from contracts.quantity import NANO, Quantity
from contracts.validate import names
from contracts.validate.pod_rules import (
    check_pod_affinity,
    check_port,
    check_spread,
)
from contracts.validate.violation import (
    Violation,
    Violations,
    check_each,
    check_each_unique,
    duplicate,
    forbidden,
    invalid,
    required,
)
from contracts.workload import (
    Container,
    ContainerResourceClaim,
    PodResourceClaim,
    PodSpec,
    ResourceRequirements,
)

_DOMAIN = "kubernetes.io/"
"""The domain of the resources that Kubernetes itself counts."""
_QUOTA = "requests."
_HUGE = "hugepages-"
_DIVISIBLE = "cpu"
_MILLI = NANO // 1000
_WHOLE = 1000
"""Thousandths of one."""


def check_pod_spec(value: PodSpec, path: str = "spec") -> Violations:
    """Require claims told apart, amounts that count, and rules that are understood."""
    yield from check_each_unique(
        value.resource_claims,
        None,
        f"{path}.resourceClaims",
        _check_claim,
        lambda claim: claim.name,
    )
    claims = {claim.name for claim in value.resource_claims}
    for field, container in list_containers(value):
        place = f"{path}.{field}.resources"
        yield from _check_references(
            container.resources.claims, claims, f"{place}.claims"
        )
        yield from _check_amounts(container.resources, place)
        ports = f"{path}.{field}.ports"
        yield from check_each(container.ports, None, ports, check_port)
    if value.node_name and value.scheduling_gates:
        message = "cannot be set until all schedulingGates have been cleared"
        yield forbidden(f"{path}.nodeName", message)
    yield from check_pod_affinity(value.affinity, f"{path}.affinity")
    yield from check_spread(
        value.topology_spread_constraints, f"{path}.topologySpreadConstraints"
    )


def list_containers(value: PodSpec) -> Iterator[tuple[str, Container]]:
    """Go through the containers of a pod, each with its field."""
    for index, container in enumerate(value.init_containers):
        yield f"initContainers[{index}]", container
    for index, container in enumerate(value.containers):
        yield f"containers[{index}]", container


class Fraction(Struct, frozen=True, kw_only=True):
    """A part of what is counted in whole numbers."""

    field: str
    amount: Quantity

    def __str__(self) -> str:
        whole = -(-self.amount.nano // NANO)
        return f"{self.amount.text} is not a whole number; it counts as {whole}"


def list_fractions(value: PodSpec, path: str = "spec") -> Iterator[Fraction]:
    """Go through amounts that the API server takes, and kube-scheduler rounds up.

    Those of extended resources it refuses.
    """
    for field, container in list_containers(value):
        resources = container.resources
        for kind, amounts in (
            ("requests", resources.requests),
            ("limits", resources.limits),
        ):
            for name, amount in amounts.items():
                is_counted = name != _DIVISIBLE and not is_extended_resource(name)
                if is_counted and amount.nano % NANO:
                    place = f"{path}.{field}.resources.{kind}[{name}]"
                    yield Fraction(field=place, amount=amount)


def _check_claim(value: PodResourceClaim, path: str) -> Violations:
    by_name, by_template = value.resource_claim_name, value.resource_claim_template_name
    if not value.name:
        yield required(f"{path}.name")
    else:
        yield from names.check_dns_label(value.name, f"{path}.name")
    if by_name is not None and by_template is not None:
        message = (
            "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be "
            "specified"
        )
        yield invalid(path, value.name, message)
    if by_name is None and by_template is None:
        message = (
            "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
        )
        yield invalid(path, value.name, message)
    if by_name is not None:
        yield from names.check_dns_subdomain(by_name, f"{path}.resourceClaimName")
    if by_template is not None:
        place = f"{path}.resourceClaimTemplateName"
        yield from names.check_dns_subdomain(by_template, place)


def _check_references(
    references: tuple[ContainerResourceClaim, ...], claims: set[str], path: str
) -> Violations:
    """Require claims of the pod, and no request of one twice."""
    seen: set[tuple[str, str]] = set()
    for index, reference in enumerate(references):
        place = f"{path}[{index}]"
        name, request = reference.name, reference.request
        if not name:
            yield required(place)
            continue
        whole_too = (name, "") in seen or (not request and _is_seen(seen, name))
        if whole_too or (name, request) in seen:
            yield duplicate(place, f"{name}/{request}".rstrip("/"))
        seen.add((name, request))
        if name not in claims:
            message = f'"{name}": must be one of the names in pod.spec.resourceClaims'
            yield Violation(field=place, rule="Not found", message=message)


def _is_seen(seen: set[tuple[str, str]], name: str) -> bool:
    return any(each == name for each, _ in seen)


def _check_amounts(value: ResourceRequirements, path: str) -> Violations:
    for field, amounts in (("limits", value.limits), ("requests", value.requests)):
        for name, amount in amounts.items():
            yield from _check_amount(name, amount, f"{path}.{field}[{name}]")
    for name, amount in value.requests.items():
        limit = value.limits.get(name)
        place = f"{path}.requests"
        if _may_be_overcommitted(name):
            if limit is not None and amount > limit:
                yield _amounts_differ(
                    place, name, amount, "less than or equal to", limit
                )
        elif limit is None:
            message = "Limit must be set for non overcommitable resources"
            yield required(f"{path}.limits", f"{message}: {name}")
        elif amount != limit:
            yield _amounts_differ(place, name, amount, "equal to", limit)


def _check_amount(name: str, amount: Quantity, path: str) -> Violations:
    if amount.nano < 0:
        message = "must be greater than or equal to 0"
        yield invalid(path, amount.text, message)
    if is_extended_resource(name) and _count_thousandths(amount) % _WHOLE:
        yield invalid(path, amount.text, "must be an integer")


def _count_thousandths(amount: Quantity) -> int:
    """Count as Go's MilliValue: away from zero."""
    thousandths = -(-abs(amount.nano) // _MILLI)
    return thousandths if amount.nano >= 0 else -thousandths


def _amounts_differ(
    path: str, name: str, amount: Quantity, how: str, limit: Quantity
) -> Violation:
    return invalid(path, amount.text, f"must be {how} {name} limit of {limit.text}")


def is_extended_resource(name: str) -> bool:
    """True if a resource is an extended resource, counted in whole numbers."""
    return "/" in name and _DOMAIN not in name and not name.startswith(_QUOTA)


def _may_be_overcommitted(name: str) -> bool:
    is_native = "/" not in name or _DOMAIN in name
    return is_native and not name.startswith(_HUGE)
