"""Solving a recorded Problem again gives the same bytes, or says what differs."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs

from solver.allocate import allocate
from solver.decision import Decision, Status
from solver.record import Recorded
from solver.replay import replay
from tests.builders import devices, gang, pool, solves
from tests.builders.problems import CLUSTER, problem_of, snapshot_of

PROBLEM = problem_of(snapshot_of({"n": [pool(*devices(2), name="n")]}, [gang()]))
DECIDED = allocate(PROBLEM)


def recorded(decision: Decision | None, **opened: Any) -> Recorded:
    """Record the Problem here and now, with this answer."""
    return solves.recorded(PROBLEM, decision, CLUSTER, **opened)


def test_the_same_problem_has_the_same_answer_to_the_byte() -> None:
    """On the same versions and platform, which the result says."""
    result, decision = replay(recorded(DECIDED))
    assert result.same_bytes is True
    assert result.differences == ()
    assert (result.same_versions, result.same_platform) == (True, True)
    assert decision == DECIDED


def test_without_an_answer_there_is_nothing_to_compare() -> None:
    """The solve was opened, and nobody has answered it yet."""
    result, _ = replay(recorded(None))
    assert (result.same_bytes, result.recorded_decision) == (None, "")


@pytest.mark.parametrize(
    ("changes", "difference"),
    [
        ({"status": Status.FEASIBLE}, "status: Feasible -> Optimal"),
        ({"objective": ()}, "objective: [] -> "),
        (
            {"gangs": (structs.replace(DECIDED.gangs[0], members=()),)},
            "gang team-a/train: other nodes, devices or reasons",
        ),
        (
            {"statistics": structs.replace(DECIDED.statistics, work=99.0)},
            "statistics only",
        ),
    ],
)
def test_another_answer_is_told_in_words(
    changes: dict[str, Any], difference: str
) -> None:
    """Status, objective, gangs; else it is only how it came about."""
    result, _ = replay(recorded(structs.replace(DECIDED, **changes)))
    assert result.same_bytes is False
    assert result.differences[0].startswith(difference)


def test_another_version_or_platform_is_said() -> None:
    """Then other bytes would be no wonder."""
    result, _ = replay(recorded(DECIDED, version="0", platform="elsewhere"))
    assert (result.same_versions, result.same_platform) == (False, False)
