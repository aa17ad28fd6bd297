"""Gangs that could be in at all: within every cut, above every floor."""

from __future__ import annotations

import itertools
import operator
import random
from typing import Any

import pytest

from solver.engines.cpsat import Solved
from solver.engines.pattern.columns.budget import Budget
from solver.engines.pattern.columns.cuts import (
    QUICK_WORK,
    CutMaster,
    CutMasterGoal,
    CutMasterResult,
)
from solver.engines.pattern.columns.master import Cut
from solver.engines.pattern.columns.master_data import MasterData, split_into_pods
from solver.engines.pattern.columns.objective import Floor, Objective
from solver.kinds.demand import GangKind

PAIR = GangKind(0, 2, ((0, 2),))
MIXED = GangKind(0, 3, ((0, 1), (1, 1)))
DATA = MasterData((PAIR, MIXED), (5, 5), 2, (4,), ((0,),))


def solve(*cuts: Cut, floors: tuple[Floor, ...] = (), most: int = 99) -> list[int]:
    """Choose gangs by their weights; the gangs of each kind, then the value."""
    goal = CutMasterGoal(Objective((2, 3)), floors, most)
    result = CutMaster(DATA, cuts).solve(goal, Budget(10.0, 1), 10.0)
    assert isinstance(result, CutMasterResult)
    return [*result.gangs, result.value]


def test_without_cuts_all_gangs_are_in() -> None:
    """No gang is worth less than nothing."""
    assert solve() == [5, 5, 25]


def test_a_cut_leaves_out_whole_gangs_only() -> None:
    """A pod of kind 0 costs 1: of five, two pairs and one other fit."""
    assert solve(Cut((1, 0), 5)) == [0, 5, 15]
    assert solve(Cut((0, 1), 0)) == [5, 0, 10]


def test_a_floor_keeps_what_an_earlier_goal_reached() -> None:
    """Even where the current goal would rather have others."""
    pairs = Floor(Objective((1, 0)), 2)
    assert solve(Cut((1, 0), 5), floors=(pairs,)) == [2, 1, 7]


def test_cuts_that_no_gangs_meet_give_no_gangs() -> None:
    """A floor above all cuts is impossible: the bound is what all gangs are worth."""
    both = Floor(Objective((1, 1)), 1)
    goal = CutMasterGoal(Objective((2, 3)), (both,), 99)
    impossible = (Cut((1, 1), 0),)
    result = CutMaster(DATA, impossible).solve(goal, Budget(10.0, 1), 10.0)
    assert result == CutMasterResult((), 0, 25)


@pytest.mark.parametrize("fails", ["not proven", "nothing found"])
def test_a_choice_that_is_not_proven_soon_is_made_with_presolve(
    monkeypatch: pytest.MonkeyPatch, fails: str
) -> None:
    """Worse gangs, or none, that come first are not what is chosen."""
    asked: list[bool] = []
    solve_model = Budget.solve

    def give_up_once(
        self: Budget, model: Any, limit: float, *, presolve: bool = True
    ) -> Solved | None:
        asked.append(presolve)
        outcome = solve_model(self, model, limit, presolve=presolve)
        if len(asked) > 1 or outcome is None:
            return outcome
        if fails == "nothing found":
            return None
        nothing = (0,) * len(outcome.values)
        return Solved(nothing, optimal=False, value_reached=0, bound=99.0, work=0.0)

    monkeypatch.setattr(Budget, "solve", give_up_once)
    assert solve() == [5, 5, 25]
    assert asked == [False, True]


@pytest.mark.parametrize("better", [0, 1])
def test_of_two_choices_that_are_not_proven_the_better_and_the_lower_bound_count(
    monkeypatch: pytest.MonkeyPatch, better: int
) -> None:
    outcomes = [
        Solved((5, 4), optimal=False, value_reached=22, bound=24.0, work=0.1),
        Solved((4, 4), optimal=False, value_reached=20, bound=23.0, work=0.1),
    ]
    given = iter([outcomes[better], outcomes[1 - better]])
    monkeypatch.setattr(Budget, "solve", lambda *_, **__: next(given))
    assert solve() == [5, 4, 22]
    given = iter([outcomes[better], outcomes[1 - better]])
    goal = CutMasterGoal(Objective((2, 3)), (), 99)
    assert CutMaster(DATA, []).solve(goal, Budget(10.0, 1), 10.0).bound == 23


def test_without_work_for_presolve_there_is_no_second_choice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[float] = []
    outcome = Solved((5, 4), optimal=False, value_reached=22, bound=24.0, work=0.1)

    def give(_: Budget, __: Any, limit: float, **___: object) -> Solved:
        asked.append(limit)
        return outcome

    monkeypatch.setattr(Budget, "solve", give)
    goal = CutMasterGoal(Objective((2, 3)), (), 99)
    result = CutMaster(DATA, []).solve(goal, Budget(10.0, 1), QUICK_WORK)
    assert result == CutMasterResult((5, 4), 22, 24)
    assert asked == [pytest.approx(QUICK_WORK)]


def test_cuts_that_came_later_count() -> None:
    """Those that were known before do, too."""
    cuts = [Cut((1, 0), 5)]
    master = CutMaster(DATA, cuts)
    goal = CutMasterGoal(Objective((2, 3)), (), 99)
    assert master.solve(goal, Budget(10.0, 1), 10.0).value == 15
    cuts.append(Cut((0, 1), 3))
    assert master.solve(goal, Budget(10.0, 1), 10.0).gangs == (1, 3)


def test_as_good_as_within_all_cuts_at_once() -> None:
    """Whatever is drawn: the best of all sets of gangs that are within every cut."""
    draw = random.Random(5)
    for _ in range(100):
        cuts = [
            Cut((draw.randint(0, 9), draw.randint(0, 9)), draw.randint(0, 60))
            for _ in range(draw.randint(1, 12))
        ]
        most = draw.randint(5, 30)
        sets = itertools.product(range(6), repeat=2)
        best = max(
            2 * pairs + 3 * mixed
            for pairs, mixed in sets
            if 2 * pairs + 3 * mixed <= most
            and all(
                c.prices[0] * (2 * pairs + mixed) + c.prices[1] * mixed <= c.earned
                for c in cuts
            )
        )
        goal = CutMasterGoal(Objective((2, 3)), (), most)
        result = CutMaster(DATA, cuts).solve(goal, Budget(10.0, 1), 10.0)
        assert (result.value, result.bound) == (best, best)


def test_without_work_the_bound_is_what_was_known() -> None:
    """And no gangs are a target."""
    goal = CutMasterGoal(Objective((2, 3)), (), 20)
    master = CutMaster(DATA, [Cut((1, 0), 5)])
    assert master.solve(goal, Budget(10.0, 1), 0.0) == CutMasterResult((), 0, 20)


def test_cuts_that_rule_nothing_out_are_not_in_the_model() -> None:
    """Of a hundred cuts one matters, and CP-SAT is told of that one alone."""
    cuts = [*(Cut((1, 1), 100 + n) for n in range(100)), Cut((1, 0), 5)]
    budget = Budget(10.0, 1)
    goal = CutMasterGoal(Objective((2, 3)), (), 99)
    assert CutMaster(DATA, cuts).solve(goal, budget, 10.0).value == 15
    effort = budget.to_effort()
    assert effort.constraints == 3, "the cut, the most and the least that it is worth"


def test_of_gangs_of_equal_worth_those_are_chosen_that_cost_least() -> None:
    """Of all sets within a cut that are worth the most."""
    draw = random.Random(6)
    for _ in range(50):
        pods = [draw.randint(1, 9) for _ in range(5)]
        kinds = tuple(GangKind(0, 1, ((0, each),)) for each in pods)
        worth = tuple(draw.randint(1, 3) for _ in kinds)
        data = MasterData(kinds, (1,) * 5, 1, (4,), ((0,),))
        cut = Cut((draw.randint(1, 4),), draw.randint(3, 12))
        goal = CutMasterGoal(Objective(worth), (), 99)
        result = CutMaster(data, [cut]).solve(goal, Budget(10.0, 1), 10.0)
        by_worth: dict[int, list[int]] = {}
        for gangs in itertools.product(range(2), repeat=5):
            cost = cut.prices[0] * sum(map(operator.mul, pods, gangs))
            if cost <= cut.earned:
                value = sum(map(operator.mul, worth, gangs))
                by_worth.setdefault(value, []).append(cost)
        assert result.value == max(by_worth)
        spent = cut.prices[0] * sum(map(operator.mul, pods, result.gangs))
        assert spent == min(by_worth[result.value])


def test_single_pods_ask_for_the_same_as_their_gangs() -> None:
    """Each is a gang of its own, with a worth of its own."""
    alone = split_into_pods(DATA, (4, 2), (10, 20))
    assert alone.available == (4, 2)
    assert [kind.members for kind in alone.gangs] == [((0, 1),), ((1, 1),)]
    assert [kind.weight for kind in alone.gangs] == [10, 20]
