"""Which nodes a selector means, as kube-scheduler reads it."""

from __future__ import annotations

from typing import Any

import pytest

from contracts.device import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from contracts.ids import NodeName
from solver.devices.node_selectors import node_matches
from solver.errors import NodeSelectorError
from solver.snapshot.parts import NodePart

NODE = NodePart(name=NodeName("n"), labels={"zone": "a", "rank": "7", "word": "x"})


def label(key: str, operator: str, *values: str) -> dict[str, Any]:
    """Make a comparison of a label."""
    found = NodeSelectorRequirement(key=key, operator=operator, values=values)
    return {"match_expressions": (found,)}


def name(operator: str, *values: str) -> dict[str, Any]:
    """Make a comparison of the node's name."""
    found = NodeSelectorRequirement(
        key="metadata.name", operator=operator, values=values
    )
    return {"match_fields": (found,)}


def matches(*terms: dict[str, Any]) -> bool:
    """Whether the node is one that these terms mean."""
    made = tuple(NodeSelectorTerm(**term) for term in terms)
    return node_matches(NodeSelector(node_selector_terms=made), NODE)


@pytest.mark.parametrize(
    ("term", "holds"),
    [
        (label("zone", "In", "b", "a"), True),
        (label("zone", "NotIn", "a"), False),
        (label("none", "In", "a"), False),
        (label("none", "NotIn", "a"), True),
        (label("zone", "Exists"), True),
        (label("none", "DoesNotExist"), True),
        (label("rank", "Gt", "6"), True),
        (label("rank", "Gt", "7"), False),
        (label("rank", "Lt", "8"), True),
        (label("word", "Gt", "1"), False),
        (label("none", "Lt", "1"), False),
        (name("In", "n"), True),
        (name("NotIn", "n"), False),
    ],
)
def test_a_comparison_holds_as_its_operator_says(
    term: dict[str, Any], *, holds: bool
) -> None:
    """A label that is not there, or is no number, compares as Kubernetes has it."""
    assert matches(term) is holds


def test_terms_are_alternatives_and_comparisons_hold_together() -> None:
    """An empty term means no node, and so does a selector without terms."""
    yes, no = label("zone", "Exists"), label("zone", "DoesNotExist")
    assert matches(no, yes)
    assert not matches({**yes, **name("In", "m")})
    assert not matches({})
    assert not matches()


@pytest.mark.parametrize(
    "term",
    [
        label("zone", "In"),
        label("zone", "Exists", "a"),
        label("rank", "Gt", "x"),
        label("rank", "Gt", str(2**63)),
        label("zone", "Is", "a"),
        label("a b", "Exists"),
        label("zone", "In", "-"),
        name("Exists"),
        name("In", "a", "b"),
    ],
)
def test_a_malformed_comparison_is_an_error_even_where_another_term_holds(
    term: dict[str, Any],
) -> None:
    """It is never taken for a no: kube-scheduler would refuse the whole selector."""
    with pytest.raises(NodeSelectorError):
        matches(label("zone", "Exists"), term)
