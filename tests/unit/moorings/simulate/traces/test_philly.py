"""The job log of Philly."""

from __future__ import annotations

from pathlib import Path

import pytest

from moorings.errors import BadInputError
from moorings.simulate.traces.philly import read_philly
from tests.builders.simulated import TRACES


def test_attempts_are_added_up() -> None:
    trace = read_philly(TRACES / "philly.json")
    early, first = trace.jobs
    assert (early.name, early.at_s, early.runs_s) == ("application-15-0004", 0, 3600)
    assert (first.queue, first.at_s, first.runs_s, first.devices) == (
        "6214e9",
        60,
        90,
        3,
    )
    assert [each.reason for each in trace.left_out] == [
        "it never had a GPU",
        "nobody knows when it came, or how long it ran",
    ]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"vc": "6214e9"', '"vc": 5', r"Expected `str`, got `int` - at `\$\[0\]\.vc`"),
        ("07:02:36", "soon", r"\[0\]: attempts\[0\].start_time is '2017-10-09 soon'"),
        ("_0002", "_0001", r"\[1\]: has job application-15-0001 again, which is \[0\]"),
        ("[\n", "", "is no job log of Philly"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, old: str, new: str, said: str) -> None:
    file = tmp_path / "bad.json"
    file.write_text((TRACES / "philly.json").read_text().replace(old, new, 1))
    with pytest.raises(BadInputError, match=said):
        read_philly(file)
