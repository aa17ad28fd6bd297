"""One solve as it is shown, and the difference between two answers."""

from __future__ import annotations

from contracts.ids import ClusterName, SolveID
from contracts.solves import SolveDecided, SolveOpened
from moorings.console.what_if import WhatIf, change_problem
from moorings.recorded import SolveEntry
from moorings.views.solves import compare, view_entry, view_solve
from solver.allocate import allocate
from tests import builders
from tests.builders.problems import problem_of, snapshot_of

NODES = {"a": [builders.pool(*builders.devices(2), name="a")]}
PROBLEM = problem_of(
    snapshot_of(
        NODES,
        [
            builders.gang(builders.member(count=2), name="in", uid="u1", priority=1),
            builders.gang(builders.member(count=2), name="out", uid="u2"),
        ],
    )
)
DECISION = allocate(PROBLEM)
OPENED = SolveOpened(
    cluster=ClusterName("local"),
    solve=SolveID("s1"),
    problem=PROBLEM.hash,
    version="1",
    platform="linux",
    epoch=1,
    gangs=tuple(gang.key for gang in PROBLEM.gangs),
    opened_at="2026-11-20T12:00:00Z",
)
DECIDED = SolveDecided(
    cluster=ClusterName("local"),
    solve=SolveID("s1"),
    problem=PROBLEM.hash,
    decision="d",
    status="Optimal",
    allocated=1,
    pending=1,
    rejected=0,
    solve_seconds=0.0123,
)


def test_a_row_says_whether_it_was_answered() -> None:
    assert view_entry(SolveEntry(opened=OPENED))["status"] == "open"
    row = view_entry(SolveEntry(opened=OPENED, decided=DECIDED))
    assert (row["status"], row["allocated"], row["milliseconds"]) == (
        "Optimal",
        1,
        12.3,
    )


def test_a_solve_has_its_question_and_its_answer() -> None:
    view = view_solve(SolveEntry(opened=OPENED, decided=DECIDED), PROBLEM, DECISION)
    assert view["cluster"]["devices"] == 2
    assert view["nodes"] == ["a"]
    answers = {gang["name"]: gang for gang in view["batch"]}
    got = answers[f"{builders.NAMESPACE}/in"]
    assert (got["answer"]["verdict"], got["places"]) == ("allocated", {"a": 2})
    waits = answers[f"{builders.NAMESPACE}/out"]
    assert waits["answer"]["verdict"] == "none"
    assert waits["answer"]["reasons"]
    first = view["objective"][0]
    assert (first["value"], first["bound"]) == (2, 2)


def test_an_open_solve_has_no_answer() -> None:
    view = view_solve(SolveEntry(opened=OPENED), PROBLEM, None)
    assert [gang["answer"] for gang in view["batch"]] == [None, None]
    assert view["objective"] == []


def test_answers_are_compared_by_gang_and_by_node() -> None:
    changed = change_problem(PROBLEM, WhatIf(leave_out=("u1",)), [], {})
    result = compare(DECISION, allocate(changed))
    gangs = {gang["name"].partition("/")[2]: gang for gang in result["gangs"]}
    assert gangs["in"]["after"] is None
    assert gangs["out"]["before"]["verdict"] == "none"
    assert gangs["out"]["after"]["verdict"] == "allocated"
    (node,) = result["nodes"]
    assert node["before"] == {f"{builders.NAMESPACE}/in": 2}
    assert node["after"] == {f"{builders.NAMESPACE}/out": 2}
