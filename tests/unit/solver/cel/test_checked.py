"""The checked expression, read from what the engine serializes."""

from __future__ import annotations

from typing import Any

from solver.cel.checked import CelNode, CheckedExpression
from solver.cel.engine import Engine


def read(expression: str) -> CheckedExpression:
    compiled: Any = Engine().prepare(expression)
    return CheckedExpression.read(compiled.serialize())


def outline(node: CelNode) -> str:
    """Write a node and its parts in short."""
    parts = " ".join(map(outline, node.parts))
    return f"{node.name or node.kind}({parts})" if parts else node.name or node.kind


def test_nodes_are_read_with_what_they_are_made_of() -> None:
    found = read('device.driver.contains("abc") || {1: "x"}.size() == [2].size()')
    left, right = found.root.parts
    assert found.root.name == "_||_"
    assert outline(left) == "contains(device.driver const)"
    assert outline(right) == "_==_(size(map(const const)) size(list(const)))"
    assert (left.parts[1].size, right.parts[1].parts[0].parts[0].size) == (3, 1)
    types = [found.types[part.id] for part in (found.root, left.parts[0])]
    assert types == ["scalar", "text"]
    map_node, list_node = right.parts[0].parts[0], right.parts[1].parts[0]
    assert [found.types[n.id] for n in (map_node, list_node)] == ["map", "list"]


def test_macros_are_read_with_their_variables() -> None:
    macro = read("[1].all(x, x > 0)").root
    assert (macro.kind, macro.variables[0], macro.is_bind) == (
        "comprehension",
        "x",
        False,
    )
    bind = read("cel.bind(y, 1, y > 0)").root
    assert (bind.accumulator, bind.is_bind) == ("y", True)
    assert read("[1].exists(i, v, i == v)").root.variables == ("i", "v")
    assert read('has({"a": 1}.a)').root.is_test
