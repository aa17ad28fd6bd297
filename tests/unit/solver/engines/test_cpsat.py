"""One outcome a status: nothing is read of a model that has no solution."""

from __future__ import annotations

import pytest

from solver.engines import cp_model
from solver.engines.cpsat import Infeasible, Solved, Unknown, solve, total
from solver.errors import ModelInvalidError


def test_a_solution_says_its_value_and_that_it_is_the_best() -> None:
    """Where it is proven, the bound is the value."""
    model = cp_model.CpModel()
    x = model.new_int_var(0, 9, "x")
    model.add(3 * x <= 20)
    model.maximize(total([(x, 2), (x, 3)]))
    outcome = solve(model, work_limit=1.0, seed=1, feasibility=False)
    assert isinstance(outcome, Solved)
    assert (outcome.value(x), outcome.value_reached) == (6, 30)
    assert outcome.optimal
    assert outcome.whole_bound == 30


def test_without_a_solution_it_is_proven_that_there_is_none() -> None:
    """Infeasible is an answer, not a failure."""
    model = cp_model.CpModel()
    x = model.new_int_var(0, 1, "x")
    model.add(x >= 1)
    model.add(x <= 0)
    assert isinstance(
        solve(model, work_limit=1.0, seed=1, feasibility=True), Infeasible
    )


def test_a_limit_that_comes_first_proves_nothing() -> None:
    """More pigeons than holes, and no time to find out."""
    model = cp_model.CpModel()
    holes, pigeons = 12, 13
    sits = [
        [model.new_bool_var(f"{p}/{h}") for h in range(holes)] for p in range(pigeons)
    ]
    for pigeon in sits:
        model.add_bool_or(pigeon)
    for hole in range(holes):
        for p in range(pigeons):
            for q in range(p):
                model.add_bool_or([~sits[p][hole], ~sits[q][hole]])
    outcome = solve(model, work_limit=1e-3, seed=1, feasibility=False)
    assert isinstance(outcome, Unknown)


def test_a_model_that_cpsat_refuses_is_our_bug() -> None:
    """It is raised, and never taken for an answer."""
    model = cp_model.CpModel()
    x = model.new_int_var(0, 2**62, "x")
    model.add(sum((2**61) * x for _ in range(8)) >= 0)
    with pytest.raises(ModelInvalidError):
        solve(model, work_limit=1.0, seed=1, feasibility=False)


@pytest.mark.parametrize(("bound", "whole"), [(7.9, 7), (8.0, 8), (7.9999999, 8)])
def test_an_unproven_bound_is_rounded_to_what_whole_numbers_reach(
    bound: float, whole: int
) -> None:
    """Down, but for what is only a rounding error away from the next number."""
    found = Solved((), optimal=False, value_reached=3, bound=bound, work=0.0)
    assert found.whole_bound == whole
