"""Numbers in names are compared as numbers."""

from __future__ import annotations

from publisher.natural_order import order_naturally


def test_numbers_are_compared_as_numbers() -> None:
    names = ["p-10", "p-2", "p", "a-3-11", "a-3-2"]
    assert sorted(names, key=order_naturally) == ["a-3-2", "a-3-11", "p", "p-2", "p-10"]
