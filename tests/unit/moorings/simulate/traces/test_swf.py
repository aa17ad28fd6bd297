"""The Standard Workload Format: its fields, and what is said of a bad line."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from moorings.errors import BadInputError
from moorings.simulate.traces.swf import read_swf
from tests.builders.simulated import TRACES

LINE = "1 100 0 3600 32 -1 -1 32 7200 -1 1 1 1 -1 1 1 -1 -1"


def test_each_field_has_its_place() -> None:
    trace = read_swf(TRACES / "small.swf")
    first, *_, last, huge = trace.jobs
    assert (first.name, first.queue, first.at_s) == ("job-1", "queue-1", 0)
    assert (first.runs_s, first.limit_s, first.devices) == (3600, 7200, 32)
    assert (last.name, last.queue, last.limit_s, last.devices) == (
        "job-7",
        "user-3",
        None,
        1,
    )
    assert (huge.queue, huge.devices) == ("partition-3", 512)
    assert [each.name for each in trace.left_out] == ["job-6"]


def test_a_packed_trace_is_the_same(tmp_path: Path) -> None:
    packed = tmp_path / "small.swf.gz"
    packed.write_bytes(gzip.compress((TRACES / "small.swf").read_bytes()))
    assert read_swf(packed) == read_swf(TRACES / "small.swf")
    packed.write_bytes(packed.read_bytes()[:60])
    with pytest.raises(BadInputError, match="line 1: cannot be unpacked"):
        read_swf(packed)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("1 2 3", "line 3: has 3 fields, and a job has 18"),
        (LINE.replace("3600", "x"), "field 4 .run time. is 'x', not a number"),
        (LINE.replace("3600", "inf"), "field 4 .run time. is 'inf', not a number"),
        (LINE.replace("3600", "-2"), "field 4 .run time. is -2, and at least -1"),
        (LINE.replace("7200", "1e12"), "field 9 .requested time. is 1e12, and at most"),
        (f"{LINE}\n{LINE}", "line 4: has job job-1 again, which is on line 3"),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, line: str, said: str) -> None:
    file = tmp_path / "bad.swf"
    file.write_text(f"; a comment\n\n{line}\n")
    with pytest.raises(BadInputError, match=said):
        read_swf(file)
