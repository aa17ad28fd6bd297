"""The pod list of openb."""

from __future__ import annotations

from pathlib import Path

import pytest

from moorings.errors import BadInputError
from moorings.simulate.traces.openb import read_openb
from tests.builders.simulated import TRACES


def test_pods_with_gpus_that_ran_are_jobs() -> None:
    trace = read_openb(TRACES / "openb.csv")
    first, second = trace.jobs
    assert (first.queue, first.at_s, first.runs_s, first.devices) == ("ls", 0, 3600, 1)
    assert (second.queue, second.at_s, second.runs_s) == ("be", 10, 970)
    assert [each.reason for each in trace.left_out] == [
        "it asks for no GPU",
        "nobody knows when it came, began or ended",
    ]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("num_gpu", "gpus", "line 1: is no header of openb: num_gpu is missing"),
        (
            "1000,4600,1000",
            "1000,4600",
            "line 2: has 10 columns, and the header has 11",
        ),
        ("1000,4600", "-5,4600", "line 2: creation_time is '-5', not a number of 0"),
        ("8,1000", "9999,1000", "line 5: num_gpu is 9999, and at most 1024"),
        ("openb-pod-0001", "openb-pod-0000", "line 3: has job openb-pod-0000 again"),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, old: str, new: str, said: str) -> None:
    file = tmp_path / "bad.csv"
    file.write_text((TRACES / "openb.csv").read_text().replace(old, new))
    with pytest.raises(BadInputError, match=said):
        read_openb(file)
