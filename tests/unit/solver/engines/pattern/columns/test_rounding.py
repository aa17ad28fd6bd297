"""What is whole of an answer with fractions."""

from __future__ import annotations

import pytest

from solver.engines.pattern.columns.integer_master import Solution
from solver.engines.pattern.columns.master_data import MasterData
from solver.engines.pattern.columns.objective import Floor, Objective
from solver.engines.pattern.columns.pricing import Pattern
from solver.engines.pattern.columns.rounding import (
    RelaxedSolution,
    round_down,
    solve_relaxation,
)
from solver.kinds.demand import GangKind

ONE, TRIPLE = GangKind(0, 1, ((0, 1),)), GangKind(0, 3, ((0, 3),))
PAIR = Pattern((1, 2), ((0, 2),))


def data_of(available: tuple[int, int], nodes: int) -> MasterData:
    """Ask for gangs of one pod and of three, on so many nodes of one class."""
    return MasterData((ONE, TRIPLE), available, 1, (nodes,), ((0,),))


def test_the_relaxed_answer_is_worth_no_less_than_any_whole_one() -> None:
    """Four pods are one triple and a third of another."""
    relaxed = solve_relaxation(data_of((0, 5), 2), {0: [PAIR]}, Objective((1, 3)), ())
    assert relaxed is not None
    assert relaxed.gangs == pytest.approx((0, 4 / 3))
    assert relaxed.uses == ((0, PAIR, 2),)
    assert relaxed.split == ()


def test_a_class_with_nodes_in_parts_is_split() -> None:
    """Three pods need one node and a half of another."""
    relaxed = solve_relaxation(
        data_of((3, 0), 2), {0: [PAIR]}, Objective((10, 0), touched=1), ()
    )
    assert relaxed is not None
    assert (relaxed.split, relaxed.uses) == ((0,), ((0, PAIR, 1),))


def test_a_floor_holds_for_the_relaxed_answer() -> None:
    """Gangs that are worth nothing now stay in where an earlier goal had them."""
    floor = Floor(Objective((1, 0)), 2)
    objective = Objective((0, 0), touched=1)
    relaxed = solve_relaxation(data_of((3, 0), 2), {0: [PAIR]}, objective, [floor])
    assert relaxed is not None
    assert relaxed.gangs == pytest.approx((2, 0))


def test_gangs_are_taken_in_while_the_whole_patterns_have_their_pods() -> None:
    """Those come first of which the greater share is in."""
    relaxed = RelaxedSolution(((0, PAIR, 2),), (), (1.5, 1.4))
    assert round_down(data_of((5, 2), 2), relaxed) == Solution((1, 1), relaxed.uses)
    none = RelaxedSolution((), (0,), (5.0, 2.0))
    assert round_down(data_of((5, 2), 2), none) == Solution((0, 0), ())


def test_a_number_of_gangs_that_is_nearly_whole_is_whole() -> None:
    """The program's numbers are true to a few digits only."""
    relaxed = RelaxedSolution(((0, PAIR, 9),), (), (5.0000001, 0.0))
    assert round_down(data_of((9, 2), 9), relaxed).gangs == (5, 0)
