"""Two answers differ only in what Kubernetes would tell apart."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from tests.oracles.differential.compare import compare, error_of, quantity
from tests.oracles.differential.draw import Json

RESULT = {
    "request": "req-0",
    "driver": "gpu.example.com",
    "pool": "node-1",
    "device": "dev-0",
    "shareID": "a",
    "consumedCapacity": {"memory": "1Gi"},
}
TERM = {
    "matchExpressions": [
        {"key": "zone", "operator": "In", "values": ["east", "west"]},
        {"key": "disk", "operator": "Exists"},
    ]
}


def answer(result: Json | None = None, **fields: Any) -> Json:
    devices = {"results": [RESULT if result is None else result], **fields}
    nodes = {"nodeSelectorTerms": [TERM]}
    allocation = {"devices": devices, "nodeSelector": nodes}
    return {"outcome": "success", "allocations": [allocation]}


def refused(text: str, outcome: str = "error") -> Json:
    return {"outcome": outcome, "error": text}


def test_ids_spelling_and_order_of_values_are_no_difference() -> None:
    """Kubernetes could not tell them apart."""
    other = answer(
        {
            **RESULT,
            "shareID": "b",
            "consumedCapacity": {"memory": "1024Mi"},
            "tolerations": [],
        },
        config=[],
    )
    other["allocations"][0]["nodeSelector"]["nodeSelectorTerms"] = [
        {
            "matchExpressions": [
                {"key": "disk", "operator": "Exists"},
                {"key": "zone", "operator": "In", "values": ["west", "east"]},
            ]
        }
    ]
    assert compare(answer(), other) == []


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"device": "dev-1"}, "devices"),
        ({"request": "req-0/sub-0"}, "devices"),
        ({"shareID": None}, "shareID"),
        ({"adminAccess": True}, "adminAccess"),
        ({"consumedCapacity": {"memory": "2Gi"}}, "consumedCapacity"),
        ({"tolerations": [{"operator": "Exists"}]}, "tolerations"),
    ],
)
def test_a_result_that_differs_is_told(change: Json, told: str) -> None:
    """By the field that differs."""
    (difference,) = compare(answer(), answer({**RESULT, **change}))
    assert told in difference


def test_config_and_nodes_that_differ_are_told() -> None:
    """They are part of an allocation."""
    other = answer(config=[{"source": "FromClass", "requests": ["req-0"]}])
    del other["allocations"][0]["nodeSelector"]
    told = compare(answer(), other)
    assert [item.split(":")[1].strip() for item in told] == ["config", "nodeSelector"]


def test_a_claim_less_is_told() -> None:
    """Missing answers are differences."""
    assert compare(answer(), {"outcome": "success", "allocations": []})


def test_errors_are_the_same_by_what_they_mean() -> None:
    """Not by their words."""
    text = "claim {}, request r: unsupported count mode {}"
    assert compare(refused(text.format("a", "X")), refused(text.format("b", "Y"))) == []
    assert compare(refused(text), refused("CEL runtime error: no such key"))
    assert compare(refused("x"), refused("y"))
    assert compare(refused(text), refused(text, "nodeFailure"))
    assert compare({"outcome": "none"}, {"outcome": "none"}) == []


def test_any_error_will_do_where_upstream_crashes() -> None:
    """A crash has no meaning to compare."""
    crash = refused("panic: runtime error: nil pointer dereference")
    assert compare(crash, refused("missing device class name")) == []
    assert compare(crash, {"outcome": "none"})


def test_a_selector_of_a_derived_attribute_is_told_apart() -> None:
    """An error of a derived attribute is not one of the selector."""
    text = "evaluate derived attribute a on device b failed: CEL runtime error"
    assert error_of(refused(text)) == "derived attribute fails"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1500m", Fraction(3, 2)),
        ("1.5Gi", Fraction(3 * 1024**3, 2)),
        ("-2k", Fraction(-2000)),
        ("1e21", Fraction(10**21)),
        ("10E", Fraction(10**19)),
        (7, Fraction(7)),
    ],
)
def test_quantities_are_exact(text: str | int, value: Fraction) -> None:
    """No amount is rounded before it is compared."""
    assert quantity(text) == value
