"""Node selectors that kube-scheduler could not evaluate."""

from __future__ import annotations

from typing import Any

import pytest

from contracts.device import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from tests.builders import resource_slice
from tests.builders.violations import assert_broken


def requirement(key: str, operator: str, *items: str) -> NodeSelectorRequirement:
    return NodeSelectorRequirement(key=key, operator=operator, values=items)


@pytest.mark.parametrize(
    ("term", "beginning"),
    [
        (
            {"match_expressions": (requirement("a", "In"),)},
            "Expressions[0].values: Req",
        ),
        (
            {"match_expressions": (requirement("a", "Exists", "b"),)},
            "Expressions[0].val",
        ),
        (
            {"match_expressions": (requirement("a", "Gt", "1", "2"),)},
            "Expressions[0].v",
        ),
        (
            {"match_expressions": (requirement("a", "Is", "b"),)},
            "Expressions[0].operat",
        ),
        ({"match_expressions": (requirement("a b", "Exists"),)}, "Expressions[0].key"),
        (
            {"match_expressions": (requirement("a", "In", "-"),)},
            "Expressions[0].values[",
        ),
        ({"match_fields": (requirement("a", "In", "b"),)}, "Fields[0].key: Invalid"),
        (
            {"match_fields": (requirement("metadata.name", "In", "a", "b"),)},
            "Fields[0].values: Required",
        ),
        (
            {"match_fields": (requirement("metadata.name", "Exists"),)},
            "Fields[0].operator: Invalid",
        ),
    ],
)
def test_a_node_selector_that_cannot_be_evaluated_is_refused(
    term: dict[str, Any], beginning: str
) -> None:
    """kube-scheduler would fail on it."""
    selector = NodeSelector(node_selector_terms=(NodeSelectorTerm(**term),))
    path = "spec.nodeSelector.nodeSelectorTerms[0].match"

    assert_broken(resource_slice(node_selector=selector), f"{path}{beginning}")
