"""Many names on a line."""

from __future__ import annotations

from moorings.views.names import name_some


def test_many_names_are_counted() -> None:
    assert name_some([]) == ""
    assert name_some(["b", "a"]) == "a, b"
    assert name_some([f"n{i}" for i in range(5)]) == "n0, n1, n2, n3, n4"
    assert name_some([f"n{i}" for i in range(8)]) == "n0, n1, n2, n3, n4 and 3 more"
    assert name_some(["c", "b", "a"], 1) == "a and 2 more"
