"""Match nodes against a NodeSelector.

Terms are alternatives, the comparisons of a term must all hold, a term without any
matches nothing. A selector that cannot be read is an error, not a no.

Source: k8s.io/component-helpers/scheduling/corev1/nodeaffinity.
"""

from __future__ import annotations

import re

from contracts.device import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from contracts.labels import holds
from solver.errors import NodeSelectorError
from solver.snapshot.parts import NodePart

_NAME = r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
_DOMAIN = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
_KEY = re.compile(rf"({_DOMAIN}/)?{_NAME}")
_VALUE = re.compile(rf"({_NAME})?")
_INTEGER = re.compile(r"[+-]?\d+", re.ASCII)
_INT64 = 2**63


def node_matches(selector: NodeSelector, node: NodePart) -> bool:
    """True if any term of a selector matches a node.

    Raises:
        NodeSelectorError: a comparison is malformed, whether it matters or not.
    """
    terms = [term for term in selector.node_selector_terms if _has_requirements(term)]
    for term in terms:
        for requirement in term.match_expressions:
            _check_label(requirement)
        for requirement in term.match_fields:
            _check_field(requirement)
    return any(_term_matches(term, node) for term in terms)


def _has_requirements(term: NodeSelectorTerm) -> bool:
    return bool(term.match_expressions or term.match_fields)


def _term_matches(term: NodeSelectorTerm, node: NodePart) -> bool:
    return all(
        _label_holds(requirement, node.labels) for requirement in term.match_expressions
    ) and all(_field_holds(requirement, node.name) for requirement in term.match_fields)


def _check_label(requirement: NodeSelectorRequirement) -> None:
    key, operator, values = requirement.key, requirement.operator, requirement.values
    if not _KEY.fullmatch(key):
        raise NodeSelectorError(f"key {key!r} is no label")
    match operator:
        case "In" | "NotIn":
            wrong = not values
        case "Exists" | "DoesNotExist":
            wrong = bool(values)
        case "Gt" | "Lt":
            wrong = len(values) != 1 or _read_integer(values[0]) is None
        case _:
            raise NodeSelectorError(f"{operator!r} is not a valid operator")
    if wrong or not all(_VALUE.fullmatch(value) for value in values):
        raise NodeSelectorError(f"operator {operator} of {key} has values {values}")


def _check_field(requirement: NodeSelectorRequirement) -> None:
    if requirement.operator not in ("In", "NotIn") or len(requirement.values) != 1:
        raise NodeSelectorError(
            f"field {requirement.key} takes In or NotIn and one value, not "
            f"{requirement.operator} and {requirement.values}"
        )


def _label_holds(requirement: NodeSelectorRequirement, labels: dict[str, str]) -> bool:
    if requirement.operator not in ("Gt", "Lt"):
        return holds(requirement, labels)
    here = _read_integer(labels.get(requirement.key, ""))
    there = _read_integer(requirement.values[0])
    if here is None or there is None:
        return False
    return here > there if requirement.operator == "Gt" else here < there


def _field_holds(requirement: NodeSelectorRequirement, name: str) -> bool:
    value = name if requirement.key == "metadata.name" else ""
    return (value == requirement.values[0]) == (requirement.operator == "In")


def _read_integer(text: str) -> int | None:
    if not _INTEGER.fullmatch(text):
        return None
    value = int(text)
    return value if -_INT64 <= value < _INT64 else None
