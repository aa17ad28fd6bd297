"""Recorded solves are a row each, and solving again says where it differs."""

from __future__ import annotations

from pathlib import Path

import pytest

from contracts.ids import ClusterName, GangKey, GangUID, Namespace, SolveID
from contracts.solves import SolveDecided, SolveOpened
from moorings.cli.connecting import Connecting
from moorings.cli.output import Format
from moorings.cli.recorded_solves import (
    load_recorded,
    print_replay,
    print_solve,
    print_solves,
)
from moorings.errors import BadInputError
from moorings.recorded import SolveEntry
from moorings.views.solves import view_solve
from moorings.views.times import show_time
from solver.allocate import allocate
from solver.replay import ReplayResult
from tests import builders
from tests.builders.problems import problem_of, snapshot_of
from tests.builders.values import NAMESPACE

OPENED = SolveOpened(
    cluster=ClusterName("east"),
    solve=SolveID("0123456789abcdef-more"),
    problem="p",
    version="1",
    platform="linux",
    epoch=1,
    gangs=tuple(GangKey(Namespace("a"), GangUID(uid)) for uid in "ab"),
    opened_at="2026-11-20T12:00:00.123Z",
)
DECIDED = SolveDecided(
    cluster=OPENED.cluster,
    solve=OPENED.solve,
    problem="p",
    decision="d",
    status="Optimal",
    allocated=1,
    pending=1,
    rejected=0,
    solve_seconds=0.1234,
)
SAME = ReplayResult(
    solve="s",
    same_bytes=True,
    same_versions=True,
    same_platform=True,
    recorded_decision="d",
    replayed_decision="d",
)


def test_a_solve_without_an_answer_is_open(capsys: pytest.CaptureFixture[str]) -> None:
    """Its gangs are counted already; ids and times are as long as they need be."""
    entries = [SolveEntry(opened=OPENED), SolveEntry(opened=OPENED, decided=DECIDED)]
    print_solves(entries, Format.TABLE)
    _, still, answered = capsys.readouterr().out.splitlines()
    head = ["0123456789abcdef", *show_time(OPENED.opened_at).split()]
    assert still.split() == [*head, "open", "2"]
    assert answered.split() == [*head, "Optimal", "2", "1", "1", "123.4"]


def test_what_explains_other_bytes_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    """And nothing of it where they are the same."""
    print_replay(SAME, "")
    assert capsys.readouterr().out == "solve s: same bytes\n  decision d\n"
    other = ReplayResult(
        solve="s",
        same_bytes=False,
        same_versions=False,
        same_platform=False,
        differences=("gang [a]: other devices",),
        recorded_decision="d",
        replayed_decision="e",
    )
    print_replay(other, OPENED.opened_at)
    lines = capsys.readouterr().out.splitlines()
    at = show_time(OPENED.opened_at)
    assert lines[0] == f"solve s of {at}: different bytes"
    assert "other versions" in lines[2]
    assert "another platform" in lines[3]
    assert lines[4] == "  gang [a]: other devices"


def test_no_solves_are_said_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    print_solves([], Format.TABLE)
    said = capsys.readouterr()
    assert (said.out, said.err) == ("", "no such solves are recorded\n")


def test_one_solve_is_a_table_of_its_gangs(capsys: pytest.CaptureFixture[str]) -> None:
    """With what it was about above, and its objective below."""
    problem = problem_of(
        snapshot_of(
            {"a": [builders.pool(*builders.devices(2), name="a")]},
            [
                builders.gang(builders.member(count=2), name="in", uid="u1"),
                builders.gang(builders.member(count=2), name="out", uid="u2"),
            ],
        )
    )
    entry = SolveEntry(opened=OPENED, decided=DECIDED)
    print_solve(view_solve(entry, problem, allocate(problem)))
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"Solve:    {OPENED.solve}"
    assert lines[1] == f"At:       {show_time(OPENED.opened_at)}"
    assert lines[2].startswith("Status:   Optimal after 123.4 ms, by ")
    assert "Replay:   moorings replay 0123456789abcdef" in lines
    assert "Gangs:    2: 1 allocated, 1 waiting, 0 rejected" in lines
    rows = [line.split()[1:5] for line in lines if line.split("/")[0] == NAMESPACE]
    assert rows == [["0", "2", "allocated", "on"], ["0", "2", "waits", "Outranked:"]]
    assert any(line.startswith("OBJECTIVE") for line in lines)
    print_solve(view_solve(SolveEntry(opened=OPENED), problem, None))
    assert "Status:   open" in capsys.readouterr().out


def test_a_file_that_is_no_export_is_named(tmp_path: Path) -> None:
    path = tmp_path / "README.md"
    path.write_text("# Moorings\n")
    with pytest.raises(BadInputError, match=r"README\.md: this is no exported solve"):
        load_recorded(str(path), "", Connecting(server="", state_dir=None, cluster=""))
