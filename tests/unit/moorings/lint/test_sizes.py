"""A gang is too large where counting alone says so, and only there."""

from __future__ import annotations

from typing import Any

import pytest

from moorings.lint.findings import LintRule
from tests.builders import (
    device,
    device_class,
    devices,
    gang,
    member,
    member_claim,
    request,
    resource_slice,
    sub_request,
)
from tests.builders.lint import lint_objects

CLASS = device_class()
NODES = tuple(
    resource_slice(*devices(4), name=name, node=name, pool=name) for name in ("a", "b")
)
SHARED = resource_slice(
    device("d", capacity={"memory": 8}, allow_multiple_allocations=True),
    *devices(1),
)


def asking(*requests: Any, **pods: Any) -> Any:
    return gang(member(member_claim(*requests), name="w", **pods))


@pytest.mark.parametrize(
    ("slices", "asked", "message"),
    [
        (NODES, asking(request(count=2), count=4), ""),
        (
            NODES,
            asking(request(count=2), count=5),
            "5 pods need 10 devices of gpu.example.com; the input has 8",
        ),
        (
            NODES,
            asking(request("a", count=3), request("b", count=2)),
            (
                "a pod of member w needs 5 devices of gpu.example.com on one node; "
                "the largest node has 4"
            ),
        ),
        # Pods that the gang can do without, other ways, and shares bind nothing.
        (NODES, asking(request(count=2), count=9, min_count=4), ""),
        (
            NODES,
            asking(
                request(first_available=[sub_request("a", count=9), sub_request("b")])
            ),
            "",
        ),
        ((SHARED,), asking(request(), count=9), ""),
        # An input without devices says nothing of them.
        ((), asking(request(count=9)), ""),
    ],
)
def test_what_is_asked_is_held_against_all_devices(
    slices: tuple[Any, ...], asked: Any, message: str
) -> None:
    """Whoever holds them now."""
    found = lint_objects(CLASS, *slices, asked).findings
    said = [each.message for each in found if each.rule is LintRule.GANG_TOO_LARGE]
    assert said == ([message] if message else [])
