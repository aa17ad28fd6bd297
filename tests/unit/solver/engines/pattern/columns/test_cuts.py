"""Gangs that could be in at all: within every cut, above every floor."""

from __future__ import annotations

from solver.engines.pattern.columns.budget import Budget
from solver.engines.pattern.columns.cuts import (
    CutMaster,
    CutMasterGoal,
    CutMasterResult,
    split_into_pods,
)
from solver.engines.pattern.columns.master import Cut, MasterData
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
    """A floor above all cuts is impossible: the bound is the goal's own."""
    both = Floor(Objective((1, 1)), 1)
    goal = CutMasterGoal(Objective((2, 3)), (both,), 99)
    impossible = (Cut((1, 1), 0),)
    result = CutMaster(DATA, impossible).solve(goal, Budget(10.0, 1), 10.0)
    assert result == CutMasterResult((), 0, 99)


def test_cuts_that_came_later_count() -> None:
    """What gangs cost by a cut is computed once, and by all of them."""
    cuts = [Cut((1, 0), 5)]
    master = CutMaster(DATA, cuts)
    goal = CutMasterGoal(Objective((2, 3)), (), 99)
    assert master.solve(goal, Budget(10.0, 1), 10.0).value == 15
    cuts.append(Cut((0, 1), 3))
    assert master.solve(goal, Budget(10.0, 1), 10.0).gangs == (1, 3)


def test_single_pods_ask_for_the_same_as_their_gangs() -> None:
    """Each is a gang of its own, with a worth of its own."""
    alone = split_into_pods(DATA, (4, 2), (10, 20))
    assert alone.available == (4, 2)
    assert [kind.members for kind in alone.gangs] == [((0, 1),), ((1, 1),)]
    assert [kind.weight for kind in alone.gangs] == [10, 20]
