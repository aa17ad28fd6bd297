"""A linear program that grows by columns, and the prices of its rows."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from ortools.linear_solver import pywraplp  # type: ignore[import-untyped]  # none

from solver.engines.glop import AS_IT_IS, PREPROCESSED, Program


def test_prices_pay_for_what_is_scarce() -> None:
    """One row is full, the other has room: only the first one has a price."""
    program = Program([(None, 4.0), (None, 100.0)])
    program.add(3.0, [(0, 1.0), (1, 1.0)], None)
    solution = program.solve()
    assert solution is not None
    assert program.read_values() == pytest.approx([4.0])
    assert solution.prices == pytest.approx([3.0, 0.0])
    assert solution.worth == pytest.approx(12.0)


def test_a_column_that_is_added_later_is_used_if_it_earns_more() -> None:
    """The next solve begins at the last one and goes on."""
    program = Program([(None, 4.0)])
    program.add(1.0, [(0, 1.0)], None)
    program.solve()
    program.add(5.0, [(0, 1.0)], 3.0)
    assert program.solve() is not None
    assert program.read_values() == pytest.approx([1.0, 3.0])


def test_what_cannot_be_met_has_no_solution() -> None:
    """None, as for numerical trouble: whoever asks goes on without it."""
    program = Program([(5.0, None)])
    program.add(1.0, [(0, 1.0)], 1.0)
    assert program.solve() is None


def test_limits_change_between_two_solves() -> None:
    """A column that is limited, then a row."""
    program = Program([(None, 4.0)])
    program.add(1.0, [(0, 1.0)], None)
    program.add(2.0, [(0, 1.0)], None)
    program.limit(1, 0.0, 3.0)
    assert program.solve() is not None
    assert program.read_values() == pytest.approx([1.0, 3.0])
    program.limit_row(0, 2.0)
    assert program.solve() is not None
    assert program.read_values() == pytest.approx([0.0, 2.0])


@pytest.mark.parametrize(
    "change",
    [
        lambda program: program.add(3.0, [(0, 1.0)], None),
        lambda program: program.limit(0, 0.0, 1.0),
        lambda program: program.limit_row(0, 2.0),
    ],
    ids=["a column is added", "a column is limited", "a row is limited"],
)
def test_values_of_a_program_that_changed_are_not_read(
    change: Callable[[Program], None],
) -> None:
    """GLOP would answer with zeros: they are asked for before anything changes."""
    program = Program([(None, 4.0)])
    program.add(1.0, [(0, 1.0)], None)
    program.add(2.0, [(0, 1.0)], 3.0)
    with pytest.raises(RuntimeError, match="no solution"):
        program.read_values()
    assert program.solve() is not None
    assert program.read_values(1) == pytest.approx([1.0])
    change(program)
    with pytest.raises(RuntimeError, match="changed"):
        program.read_values()


class OnceAbnormal:
    """GLOP that gives up once, and counts how it was asked."""

    def __init__(self, solver: pywraplp.Solver) -> None:
        self._solver = solver
        self.parameters: list[str] = []

    def Solve(self) -> int:  # noqa: N802
        """Give up at first."""
        self.parameters.append("solve")
        is_first = self.parameters.count("solve") == 1
        return int(pywraplp.Solver.ABNORMAL if is_first else self._solver.Solve())

    def __getattr__(self, name: str) -> object:
        return getattr(self._solver, name)

    def SetSolverSpecificParametersAsString(self, text: str) -> None:  # noqa: N802
        """Note what is set."""
        self.parameters.append(text)
        self._solver.SetSolverSpecificParametersAsString(text)


def test_a_program_that_glop_gives_up_is_tried_with_presolve() -> None:
    """Once; the next solve begins as ever."""
    program = Program([(None, 4.0)])
    program.add(1.0, [(0, 1.0)], None)
    solver = OnceAbnormal(program._solver)
    program._solver = solver
    solved = program.solve()
    assert solved is not None
    assert solved.worth == pytest.approx(4.0)
    assert program.read_values() == pytest.approx([4.0])
    assert solver.parameters == ["solve", PREPROCESSED, "solve", AS_IT_IS]
    assert program.solve() is not None
    assert solver.parameters[4:] == ["solve"]
