"""What masters bring is kept for the searches that follow."""

from __future__ import annotations

from solver.engines.pattern.columns.budget import Budget
from solver.engines.pattern.columns.column_source import ColumnSource
from solver.engines.pattern.columns.master import Master
from solver.engines.pattern.columns.objective import Objective
from tests.builders import gang, member
from tests.builders.patterns import nodes_of_sizes, pattern_model


def test_patterns_and_cuts_of_all_masters_are_kept() -> None:
    """And how many patterns there were to choose from is counted."""
    model = pattern_model(nodes_of_sizes(2, 3), gang(member(count=4)))
    budget = Budget(10.0, 1)
    source = ColumnSource(model, budget)
    result = source.run(Master(model.data, Objective((4,)), ()), model.first_prices)
    assert source.cuts == list(result.cuts)
    patterns = len(source.pool)
    assert patterns
    source.run(Master(model.data, Objective((4,)), ()), (1,))
    assert len(source.cuts) > len(result.cuts)
    assert len(source.pool) >= patterns
    assert budget.to_effort().patterns == len(source.pool)
