"""Work is counted in units, and what is spent is gone."""

from __future__ import annotations

from solver.engines import cp_model
from solver.engines.pattern.columns.budget import Budget
from solver.stopping import stopped_by
from tests.builders.stopping import StopsAfter


def model_of(size: int, *, feasible: bool = True) -> cp_model.CpModel:
    """Make a model of so many variables that is as large as it can be."""
    model = cp_model.CpModel()
    variables = [model.new_int_var(0, 5, f"x{i}") for i in range(size)]
    model.add(sum(variables) >= (1 if feasible else 6 * size))
    model.maximize(sum(variables))
    return model


def test_the_largest_model_and_all_work_are_reported() -> None:
    """Of models and patterns the most at once, of work the sum."""
    budget = Budget(work_limit=10.0, seed=1)
    assert budget.solve(model_of(3), 10.0) is not None
    assert budget.solve(model_of(2), 10.0) is not None
    budget.count_patterns(7)
    budget.count_patterns(4)
    effort = budget.to_effort()
    assert (effort.models, effort.variables, effort.constraints) == (2, 3, 1)
    assert effort.patterns == 7
    assert effort.work == round(10.0 - budget.remaining, 6)


def test_without_a_solution_nothing_is_returned_and_the_work_counts() -> None:
    """Whoever asks cannot mistake it for an answer."""
    budget = Budget(work_limit=10.0, seed=1)
    assert budget.solve(model_of(1, feasible=False), 10.0) is None
    assert budget.to_effort().models == 1


def test_once_the_search_is_to_end_no_work_is_left() -> None:
    """What was spent is reported all the same."""
    budget = Budget(work_limit=10.0, seed=1)
    with stopped_by(StopsAfter(3)):
        assert budget.remaining == 10.0
        assert budget.solve(model_of(3), 10.0) is not None
        assert budget.remaining == 0.0
        assert budget.solve(model_of(3), 10.0) is None
    assert 0.0 < budget.remaining < 10.0
    assert budget.to_effort().models == 2
