"""What of a pod's affinity binds it to nodes, and what only other pods decide."""

from __future__ import annotations

from typing import Any

import pytest

from contracts.codec import convert
from contracts.device import NodeSelector
from contracts.errors import DecodeError
from contracts.pods.node_affinity import (
    NODE_AFFINITY,
    REQUIRED,
    find_unreadable_numbers,
    list_required_pods,
    read_pinned_node,
    read_required_nodes,
)


def required(*terms: Any) -> dict[str, Any]:
    """Make an affinity that requires nodes of these terms."""
    return {NODE_AFFINITY: {REQUIRED: {"nodeSelectorTerms": list(terms)}}}


def named(*names: str, operator: str = "In") -> dict[str, Any]:
    """Make a term of nodes by their names."""
    field = {"key": "metadata.name", "operator": operator, "values": list(names)}
    return {"matchFields": [field]}


@pytest.mark.parametrize(
    ("affinity", "node"),
    [
        ({}, None),
        (required(named("a")), "a"),
        (required(named("a"), named("a")), "a"),
        (required(named("a"), named("b")), None),
        (required(named("a"), {}), None),
        (required(named("a", "b")), None),
        (required(named("a", operator="NotIn")), None),
    ],
)
def test_a_pod_is_pinned_by_the_one_node_that_every_term_names(
    affinity: dict[str, Any], node: str | None
) -> None:
    """Terms are alternatives, so one that names no node or another unpins it."""
    assert read_pinned_node(affinity) == node


def test_preferences_require_nothing() -> None:
    """Only what is required keeps a pod from a node."""
    preferred: dict[str, Any] = {
        "preferredDuringSchedulingIgnoredDuringExecution": [{}]
    }
    assert read_required_nodes({NODE_AFFINITY: preferred}) is None
    assert list_required_pods({"podAffinity": preferred}) == ()


def test_pods_that_must_be_near_or_far_are_named() -> None:
    """What only other pods can decide is shown by the field."""
    affinity = {"podAffinity": {REQUIRED: []}, "podAntiAffinity": {REQUIRED: [{}]}}
    assert list_required_pods(affinity) == (f"podAntiAffinity.{REQUIRED}",)


@pytest.mark.parametrize(
    ("affinity", "field"),
    [
        ({"nodes": {}}, "nodes"),
        ({NODE_AFFINITY: 1}, NODE_AFFINITY),
        ({NODE_AFFINITY: {REQUIRED: []}}, f"{NODE_AFFINITY}.{REQUIRED}"),
        (required({"matchLabels": {}}), "matchLabels"),
        (required(7), "nodeSelectorTerms[0]"),
    ],
)
def test_a_malformed_affinity_is_refused_by_its_field(
    affinity: dict[str, Any], field: str
) -> None:
    """Nothing that cannot be read is taken for a preference."""
    with pytest.raises(DecodeError) as raised:
        read_required_nodes(affinity)
    assert raised.value.field.endswith(field)


def test_numbers_that_are_none_are_named_by_path() -> None:
    """`Gt` and `Lt` compare 64-bit integers; `In` compares texts."""
    numbers = ("7", "x", str(2**63), "-1")
    terms = [
        {"matchExpressions": [{"key": "k", "operator": "Gt", "values": [text]}]}
        for text in numbers
    ]
    texts = {"matchExpressions": [{"key": "k", "operator": "In", "values": ["x"]}]}
    raw = {"nodeSelectorTerms": [*terms, texts]}
    selector = convert(raw, NodeSelector, "selector")
    assert list(find_unreadable_numbers(selector)) == [
        "nodeSelectorTerms[1].matchExpressions[0].values[0]",
        "nodeSelectorTerms[2].matchExpressions[0].values[0]",
    ]
