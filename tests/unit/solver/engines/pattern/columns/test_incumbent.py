"""The best answer so far: never a worse one, never one below a floor."""

from __future__ import annotations

from solver.engines.pattern.columns.incumbent import Incumbent, keeps_floors
from solver.engines.pattern.columns.integer_master import Solution
from solver.engines.pattern.columns.objective import Floor, Objective
from solver.engines.pattern.columns.pricing import Pattern

FLOOR = Floor(Objective((1, 0)), 2)


def test_only_a_better_answer_is_taken() -> None:
    """The first one always is, even if it is worth nothing."""
    incumbent = Incumbent(Objective((3, 5)), (), None)
    assert incumbent.offer(Solution((0, 0), ()))
    assert incumbent.offer(Solution((1, 0), ()))
    assert not incumbent.offer(Solution((1, 0), ()))
    assert not incumbent.offer(Solution((0, 0), ()))
    assert (incumbent.value, incumbent.best) == (3, Solution((1, 0), ()))


def test_an_answer_below_a_floor_is_not_taken() -> None:
    """However much it is worth."""
    incumbent = Incumbent(Objective((0, 5)), (FLOOR,), Solution((2, 0), ()))
    assert not incumbent.offer(Solution((1, 9), ()))
    assert incumbent.offer(Solution((2, 1), ()))
    assert keeps_floors(Solution((2, 0), ()), [FLOOR])
    assert not keeps_floors(Solution((1, 0), ()), [FLOOR])


def test_it_is_proven_once_value_and_bound_meet() -> None:
    """Without an answer nothing is proven."""
    incumbent = Incumbent(Objective((3,)), (), None)
    assert not incumbent.is_proven
    incumbent.bound = 6
    incumbent.offer(Solution((1,), ()))
    assert not incumbent.is_proven
    incumbent.offer(Solution((2,), ()))
    assert incumbent.is_proven


def test_goals_about_nodes_are_told_from_goals_about_gangs() -> None:
    """A floor about nodes makes all later goals so."""
    touched = Floor(Objective((0,), touched=1), -3)
    assert Incumbent(Objective((1,)), (), None).counts_only_gangs
    assert not Incumbent(Objective((0,), touched=1), (), None).counts_only_gangs
    assert not Incumbent(Objective((1,)), (touched,), None).counts_only_gangs
    incumbent = Incumbent(touched.objective, (), None)
    assert incumbent.offer(Solution((0,), ((0, Pattern((1,), ((0, 1),)), 3),)))
    assert incumbent.value == -3
