"""Reads a pod's affinity: the nodes that it requires.

Affinity travels as it was written, because most of it decides nothing here; this is
the one reading of it. Knows no node.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from contracts.codec import convert
from contracts.device import NODE_FIELD, NodeSelector
from contracts.errors import DecodeError
from contracts.ids import NodeName
from contracts.shapes import read

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
NODE_AFFINITY = "nodeAffinity"
POD_AFFINITIES = ("podAffinity", "podAntiAffinity")
_INTEGER = re.compile(r"[+-]?\d{1,30}", re.ASCII)
_INT64 = 2**63


def read_required_nodes(affinity: Mapping[str, Any]) -> NodeSelector | None:
    """Read which nodes are required; None: any will do. Preferences are left out.

    Raises:
        DecodeError: it is not of the shape that a pod's affinity has.
    """
    for key in affinity:
        if key not in (NODE_AFFINITY, *POD_AFFINITIES):
            raise DecodeError("affinity", key, "unknown field")
    selector = _affinity_part(affinity, NODE_AFFINITY).get(REQUIRED)
    if selector is None:
        return None
    path = f"{NODE_AFFINITY}.{REQUIRED}"
    if not isinstance(selector, Mapping):
        raise DecodeError("affinity", path, "Expected `object`")
    unknown: list[str] = []
    try:
        required = read(selector, NodeSelector, "affinity", unknown)
    except DecodeError as error:
        field = error.field.removeprefix("$").removeprefix(".")
        raise DecodeError("affinity", f"{path}.{field}", error.reason) from error
    if unknown:
        raise DecodeError("affinity", f"{path}.{unknown[0]}", "unknown field")
    return required


def read_pinned_node(affinity: Mapping[str, Any]) -> NodeName | None:
    """Read the one node that is required by its name; None: there is no such node.

    Raises:
        DecodeError: it is not of the shape that a pod's affinity has.
    """
    selector = read_required_nodes(affinity)
    names: set[str] = set()
    for term in selector.node_selector_terms if selector is not None else ():
        names_in_term = {
            field.values[0]
            for field in term.match_fields
            if (field.key, field.operator, len(field.values)) == (NODE_FIELD, "In", 1)
        }
        if len(names_in_term) != 1:
            return None
        names |= names_in_term
    return NodeName(names.pop()) if len(names) == 1 else None


def list_required_pods(affinity: Mapping[str, Any]) -> tuple[str, ...]:
    """Name the parts that require other pods to be near or far.

    Raises:
        DecodeError: it is not of the shape that a pod's affinity has.
    """
    return tuple(
        f"{name}.{REQUIRED}"
        for name in POD_AFFINITIES
        if convert(
            _affinity_part(affinity, name).get(REQUIRED) or [], list[Any], "affinity"
        )
    )


def find_unreadable_numbers(selector: NodeSelector) -> Iterator[str]:
    """Yield the paths of values that are compared as numbers and are none."""
    for number, term in enumerate(selector.node_selector_terms):
        for index, label in enumerate(term.match_expressions):
            if label.operator not in ("Gt", "Lt") or len(label.values) != 1:
                continue
            text = label.values[0]
            is_integer = _INTEGER.fullmatch(text) is not None
            if not is_integer or not -_INT64 <= int(text) < _INT64:
                yield f"nodeSelectorTerms[{number}].matchExpressions[{index}].values[0]"


def _affinity_part(affinity: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    part = affinity.get(name)
    if part is None:
        return {}
    if not isinstance(part, Mapping):
        raise DecodeError("affinity", name, "Expected `object`")
    return part
