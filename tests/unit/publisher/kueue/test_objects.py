"""How Kueue writes topology assignments, and what they mean."""

from __future__ import annotations

from typing import Any

import pytest

from contracts.errors import DecodeError
from contracts.shapes import read
from publisher.kueue.objects import KueueTopologyAssignment

Json = dict[str, Any]


def assignment(levels: list[str], *slices: Json) -> KueueTopologyAssignment:
    raw = {"levels": levels, "slices": list(slices)}
    return read(raw, KueueTopologyAssignment, "assignment", [])


def test_common_parts_of_values_are_written_once() -> None:
    """Examples 2 and 4 of Kueue's API, in one."""
    read = assignment(
        ["block", "rack"],
        {
            "domainCount": 2,
            "valuesPerLevel": [
                {"universal": "b1"},
                {"individual": {"prefix": "r", "suffix": "-x", "roots": ["1", "2"]}},
            ],
            "podCounts": {"individual": [4, 2]},
        },
        {
            "domainCount": 1,
            "valuesPerLevel": [{"universal": "b2"}, {"individual": {"roots": ["r9"]}}],
            "podCounts": {"universal": 3},
        },
    )
    assert list(read.domains()) == [
        ({"block": "b1", "rack": "r1-x"}, 4),
        ({"block": "b1", "rack": "r2-x"}, 2),
        ({"block": "b2", "rack": "r9"}, 3),
    ]


@pytest.mark.parametrize(
    "part",
    [
        {"domainCount": 2, "podCounts": {"universal": 1}},
        {
            "domainCount": 2,
            "valuesPerLevel": [{"individual": {"roots": ["1"]}}],
            "podCounts": {"universal": 1},
        },
        {"domainCount": 1, "valuesPerLevel": [{"universal": "a"}]},
    ],
)
def test_a_slice_without_values_is_refused(part: Json) -> None:
    with pytest.raises(DecodeError, match="lacks values"):
        list(assignment(["rack"], part).domains())
