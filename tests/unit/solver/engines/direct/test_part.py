"""Some gangs, placed by a direct model of their own."""

from __future__ import annotations

import pytest

from contracts.gang import Gang
from solver.decision import Status
from solver.engines.direct import part
from solver.engines.direct.part import place_part
from solver.engines.goals import Effort
from tests.builders import devices, gang, member, member_claim, pool, request
from tests.builders.problems import problem_of, snapshot_of

FOUR = {"a": [pool(*devices(2), name="a")], "b": [pool(*devices(2), name="b")]}


def asking(number: int, pods: int) -> Gang:
    uid = f"00000000-0000-4000-8000-{number:012}"
    return gang(
        member(member_claim(request(count=2)), count=pods), name=f"g{number}", uid=uid
    )


def test_those_are_in_for_which_there_is_room() -> None:
    problem = problem_of(snapshot_of(FOUR, (asking(0, 1), asking(1, 2))))
    found = place_part(problem, problem.gangs)
    assert [item.gang for item in found.placements] == [1]
    assert found.status is Status.OPTIMAL


def test_one_gang_without_room_costs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is counted; no model is made."""
    monkeypatch.delattr(part, "DirectSearch")
    problem = problem_of(snapshot_of(FOUR, (asking(0, 3),)))
    found = place_part(problem, problem.gangs)
    assert (found.status, found.placements, found.effort) == (
        Status.OPTIMAL,
        (),
        Effort(),
    )
