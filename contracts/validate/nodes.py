"""Node selectors, as slices, devices and allocations have them.

Judges form alone: which nodes match is not known here.

Source: k8s.io/kubernetes/pkg/apis/core/validation, ValidateNodeSelector.
"""

from __future__ import annotations

from contracts.device import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from contracts.pods.node_affinity import find_unreadable_numbers
from contracts.validate import names
from contracts.validate.violation import (
    Violations,
    check_each,
    forbidden,
    invalid,
    required,
)


def check_node_selector(selector: NodeSelector, path: str) -> Violations:
    """Require terms that the API server would store."""
    terms = selector.node_selector_terms
    if not terms:
        message = "must have at least one node selector term"
        yield required(f"{path}.nodeSelectorTerms", message)
    yield from check_each(terms, None, f"{path}.nodeSelectorTerms", _check_term)


def check_evaluable(selector: NodeSelector, path: str) -> Violations:
    """Require terms that kube-scheduler can evaluate, too."""
    yield from check_node_selector(selector, path)
    for field in find_unreadable_numbers(selector):
        yield invalid(f"{path}.{field}", None, "is compared as a number")


def _check_term(term: NodeSelectorTerm, path: str) -> Violations:
    yield from check_each(
        term.match_expressions, None, f"{path}.matchExpressions", _check_label
    )
    yield from check_each(term.match_fields, None, f"{path}.matchFields", _check_field)


def _check_label(requirement: NodeSelectorRequirement, path: str) -> Violations:
    values = f"{path}.values"
    match requirement.operator:
        case "In" | "NotIn":
            if not requirement.values:
                message = "must be specified when `operator` is 'In' or 'NotIn'"
                yield required(values, message)
        case "Exists" | "DoesNotExist":
            if requirement.values:
                message = (
                    "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
                )
                yield forbidden(values, message)
        case "Gt" | "Lt":
            if len(requirement.values) != 1:
                message = "must be one value when `operator` is 'Lt' or 'Gt'"
                yield required(values, message)
        case operator:
            yield invalid(f"{path}.operator", operator, "not a valid selector operator")
    yield from names.check_label_key(requirement.key, f"{path}.key")
    yield from check_each(requirement.values, None, values, names.check_label_value)


def _check_field(requirement: NodeSelectorRequirement, path: str) -> Violations:
    if requirement.operator not in ("In", "NotIn"):
        message = "not a valid selector operator"
        yield invalid(f"{path}.operator", requirement.operator, message)
    elif len(requirement.values) != 1:
        message = "must be one value when `operator` is 'In' or 'NotIn' for node fields"
        yield required(f"{path}.values", message)
    if requirement.key != "metadata.name":
        message = "not a valid field selector key"
        yield invalid(f"{path}.key", requirement.key, message)
    else:
        yield from check_each(
            requirement.values, None, f"{path}.values", names.check_dns_subdomain
        )
