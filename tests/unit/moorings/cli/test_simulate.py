"""The command: what it prints, writes, and refuses before the work."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from moorings.cli import simulate
from moorings.cli.main import app
from moorings.errors import UsageError
from tests.builders.simulated import TRACES


def run(*options: str, trace: str = "small.swf") -> Result:
    given = ["simulate", "-t", str(TRACES / trace), "--fleet", "small", *options]
    return CliRunner().invoke(app, given, catch_exceptions=False)


def test_two_policies_side_by_side_and_the_same_bytes_twice(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    options = ("--policy", "none", "--policy", "reservations=1m", "-o", "json")
    first = run(*options, "--html", str(page))
    assert first.exit_code == 0
    text = page.read_text()
    second = run(*options, "--html", str(page))
    assert (second.stdout, page.read_text()) == (first.stdout, text)
    none, kept = json.loads(first.stdout)
    assert none["promises"]["made"] == 0 < kept["promises"]["made"]
    assert kept["promises"]["kept"] == kept["promises"]["made"]
    assert kept["leftOut"] == ["job-8"]


def test_people_read_a_table_and_what_was_left_out() -> None:
    done = run("--patience", "1m")
    assert done.exit_code == 0
    assert "queue queue-1" in done.output
    assert "6 of 6 jobs started" in done.output
    assert "1 job is left out of the trace; job-6: nobody knows" in done.output
    assert "can never fit, and left out: job-8" in done.output


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--policy", "best"], "--policy is reservations, .*, not 'best'"),
        (["--policy", "none=3m"], "--policy is"),
        (["--policy", "none"] * 2, "--policy none is given twice"),
        (["--policy", "none", "--policy", "a", "--policy", "b"], "2 times, not more"),
        (["--patience", "soon"], "patience 'soon': must be a duration"),
    ],
)
def test_what_has_no_meaning_is_refused(options: list[str], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        run(*options)


def test_long_work_is_begun_only_when_meant(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulate, "MOST_JOBS", 3)
    with pytest.raises(UsageError, match="has 7 jobs, which may take long; --limit N"):
        run()
    assert "3 of 3 jobs started" in run("--limit", "3").output
    monkeypatch.setattr(simulate, "MOST_NODES", 3)
    with pytest.raises(UsageError, match="small has 8 nodes, which may take long"):
        run(trace="openb.csv")


def test_an_interrupt_ends_it_with_what_is_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(simulate, "after_batch", interrupt)
    done = run("--policy", "none", "--policy", "reservations")
    assert done.exit_code == 130
    assert "interrupted: this is what is known by now" in done.output
    assert "none: 1 of 6 jobs started" in done.output
    assert "reservations:" not in done.output
