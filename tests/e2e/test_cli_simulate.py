"""The executable simulates a trace: the same bytes twice, errors with their line."""

from __future__ import annotations

import json
from pathlib import Path

from tests.builders.simulated import TRACES
from tests.lab.command_line import moorings

SMALL = ("simulate", "--fleet", "small", "--patience", "1m", "-t")


def test_a_trace_is_simulated(tmp_path: Path) -> None:
    pages = []
    for number in range(2):
        page = tmp_path / f"{number}.html"
        trace = str(TRACES / "small.swf")
        done = moorings(*SMALL, trace, "--html", str(page), "-o", "json", home=tmp_path)
        assert done.returncode == 0
        (report,) = json.loads(done.stdout)
        assert report["promises"]["broken"] == 0
        pages.append((done.stdout, page.read_text()))
    assert pages[0] == pages[1]


def test_a_bad_line_is_named(tmp_path: Path) -> None:
    bad = tmp_path / "bad.swf"
    bad.write_text("; made up\n1 2 3\n")
    done = moorings(*SMALL, str(bad), home=tmp_path)
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr == f"error: {bad}: line 2: has 3 fields, and a job has 18\n"
