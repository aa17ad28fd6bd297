"""Finds what the API server would refuse in the rules between pods.

Host ports, required terms of affinity, and topology spread. Knows no node.

Source: k8s.io/kubernetes/pkg/apis/core/validation, validateContainerPorts,
validatePodAffinityTerm, validateTopologySpreadConstraints;
k8s.io/apimachinery/pkg/apis/meta/v1/validation, ValidateLabelSelector.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from contracts.errors import DecodeError
from contracts.labels import LabelSelector, LabelSelectorRequirement
from contracts.pod_terms import (
    MAX_PORT,
    PROTOCOLS,
    PodAffinityTerm,
    TopologySpreadConstraint,
)
from contracts.pods.node_affinity import POD_AFFINITIES, PREFERRED, REQUIRED
from contracts.shapes import read
from contracts.validate import names
from contracts.validate.violation import (
    Violation,
    Violations,
    check_each,
    duplicate,
    forbidden,
    invalid,
    required,
    unsupported,
)
from contracts.workload import ContainerPort

_DO_NOT_SCHEDULE = "DoNotSchedule"
_ACTIONS = (_DO_NOT_SCHEDULE, "ScheduleAnyway")
_POLICIES = ("Honor", "Ignore")
_EMPTY = "can not be empty"
_NOT_POSITIVE = "must be greater than zero"


def check_port(value: ContainerPort, path: str) -> Violations:
    """Require a port of the node that there can be."""
    if value.host_port and not 0 < value.host_port <= MAX_PORT:
        message = f"must be between 1 and {MAX_PORT}, inclusive"
        yield invalid(f"{path}.hostPort", value.host_port, message)
    if value.protocol and value.protocol not in PROTOCOLS:
        yield unsupported(f"{path}.protocol", value.protocol, sorted(PROTOCOLS))


def check_pod_affinity(affinity: Mapping[str, Any], path: str) -> Violations:
    """Require terms about other pods that are understood to the last field."""
    for part in POD_AFFINITIES:
        said = affinity.get(part)
        place = f"{path}.{part}"
        if said is None:
            continue
        if not isinstance(said, Mapping):
            yield invalid(place, said, "Expected `object`")
            continue
        for key in said:
            if key not in (REQUIRED, PREFERRED):
                yield _unknown_field(f"{place}.{key}")
        terms = said.get(REQUIRED)
        if isinstance(terms, list | tuple):
            yield from check_each(terms, None, f"{place}.{REQUIRED}", _check_raw_term)
        elif terms is not None:
            yield invalid(f"{place}.{REQUIRED}", terms, "Expected `array`")


def _check_raw_term(raw: Any, path: str) -> Violations:
    """Read a term, as affinity travels as it was written."""
    unknown: list[str] = []
    try:
        term = read(raw, PodAffinityTerm, "pod", unknown)
    except DecodeError as error:
        field = path + error.field.removeprefix("$")
        yield Violation(field=field, rule="Invalid value", message=error.reason)
        return
    for field in unknown:
        yield _unknown_field(f"{path}.{field}")
    yield from _check_selector(term.label_selector, f"{path}.labelSelector")
    yield from _check_selector(term.namespace_selector, f"{path}.namespaceSelector")
    for namespace in term.namespaces:
        yield from names.check_dns_label(namespace, f"{path}.namespace")
    if not term.topology_key:
        yield required(f"{path}.topologyKey", _EMPTY)
    else:
        yield from names.check_label_key(term.topology_key, f"{path}.topologyKey")


def check_spread(
    constraints: tuple[TopologySpreadConstraint, ...], path: str
) -> Violations:
    """Require constraints that differ and say what they keep from a node."""
    yield from check_each(constraints, None, path, _check_constraint)
    kinds = [(one.topology_key, one.when_unsatisfiable) for one in constraints]
    for index, (key, action) in enumerate(kinds):
        if (key, action) in kinds[index + 1 :]:
            field = f"{path}[{index}].{{topologyKey, whenUnsatisfiable}}"
            yield duplicate(field, f"{{{key}, {action}}}")


def _check_constraint(value: TopologySpreadConstraint, path: str) -> Violations:
    action, least = value.when_unsatisfiable, value.min_domains
    if value.max_skew < 1:
        yield invalid(f"{path}.maxSkew", value.max_skew, _NOT_POSITIVE)
    if not value.topology_key:
        yield required(f"{path}.topologyKey", _EMPTY)
    if action not in _ACTIONS:
        yield unsupported(f"{path}.whenUnsatisfiable", action, _ACTIONS)
    if least is not None and least < 1:
        yield invalid(f"{path}.minDomains", least, _NOT_POSITIVE)
    if least is not None and action != _DO_NOT_SCHEDULE:
        message = (
            f"can only use minDomains if whenUnsatisfiable={_DO_NOT_SCHEDULE}, not "
            f"{action}"
        )
        yield invalid(f"{path}.minDomains", least, message)
    for field, policy in (
        ("nodeAffinityPolicy", value.node_affinity_policy),
        ("nodeTaintsPolicy", value.node_taints_policy),
    ):
        if policy is not None and policy not in _POLICIES:
            yield unsupported(f"{path}.{field}", policy, _POLICIES)
    yield from _check_selector(value.label_selector, f"{path}.labelSelector")


def _check_selector(value: LabelSelector | None, path: str) -> Violations:
    if value is None:
        return
    for key, text in value.match_labels.items():
        yield from names.check_label_key(key, f"{path}.matchLabels")
        yield from names.check_label_value(text, f"{path}.matchLabels")
    place = f"{path}.matchExpressions"
    yield from check_each(value.match_expressions, None, place, _check_requirement)


def _check_requirement(value: LabelSelectorRequirement, path: str) -> Violations:
    match value.operator:
        case "In" | "NotIn":
            if not value.values:
                message = "must be specified when `operator` is 'In' or 'NotIn'"
                yield required(f"{path}.values", message)
        case "Exists" | "DoesNotExist":
            if value.values:
                message = (
                    "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
                )
                yield forbidden(f"{path}.values", message)
        case _:
            message = "not a valid selector operator"
            yield invalid(f"{path}.operator", value.operator, message)
    yield from names.check_label_key(value.key, f"{path}.key")
    yield from check_each(value.values, None, f"{path}.values", names.check_label_value)


def _unknown_field(path: str) -> Violation:
    return Violation(field=path, rule="unknown field")
