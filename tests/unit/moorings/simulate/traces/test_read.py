"""Which reader a trace has."""

from __future__ import annotations

from pathlib import Path

import pytest

from moorings.errors import BadInputError
from moorings.simulate.traces.read import read_trace
from tests.builders.simulated import TRACES


def test_the_name_says_which(tmp_path: Path) -> None:
    for name in ("small.swf", "openb.csv", "philly.json"):
        assert read_trace(TRACES / name).jobs
    with pytest.raises(BadInputError, match=r"is none of \.swf, \.csv, \.json"):
        read_trace(tmp_path / "trace.txt")
    with pytest.raises(BadInputError, match="No such file"):
        read_trace(tmp_path / "trace.swf")
    (tmp_path / "none.swf").write_text("; nothing\n")
    with pytest.raises(BadInputError, match="has no job that can be simulated"):
        read_trace(tmp_path / "none.swf")
