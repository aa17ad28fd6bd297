"""Later goals get better while who is in stays."""

from __future__ import annotations

import pytest

from solver.engines.pattern.columns import improvement
from solver.engines.pattern.columns.budget import Budget
from solver.engines.pattern.columns.column_source import ColumnSource
from solver.engines.pattern.columns.greedy import Greedy
from solver.engines.pattern.columns.improvement import improve
from solver.engines.pattern.columns.incumbent import Incumbent
from solver.engines.pattern.columns.integer_master import Solution, evaluate
from solver.engines.pattern.columns.master import Master
from solver.engines.pattern.columns.objective import Floor, Objective
from solver.engines.pattern.columns.rounding import solve_relaxation
from tests.builders import gang, member
from tests.builders.patterns import nodes_of_sizes, pattern_model

UID = "00000000-0000-4000-8000-{:012}"
WEIGHT, FEW_NODES = Objective((1,)), Objective((0,), touched=1)


def improved(*, is_bound_known: bool) -> tuple[Solution, Incumbent]:
    """Begin with four pods on four nodes, where one node could take them all."""
    model = pattern_model(
        nodes_of_sizes(1, 1, 1, 1, 4),
        *(gang(member(), name=f"g{i}", uid=UID.format(i)) for i in range(4)),
    )
    start = Greedy(model).run()
    floors = [Floor(WEIGHT, 4)]
    source = ColumnSource(model, Budget(10.0, 1))
    source.pool.add_uses(start.uses)
    result = source.run(Master(model.data, FEW_NODES, floors), model.first_prices)
    incumbent = Incumbent(FEW_NODES, floors, start)
    incumbent.bound = result.bound if is_bound_known else 0
    patterns = source.pool.list_promising()
    relaxed = solve_relaxation(model.data, patterns, FEW_NODES, floors)
    assert relaxed is not None
    improve(source, incumbent, relaxed)
    return start, incumbent


@pytest.mark.parametrize("is_bound_known", [True, False])
def test_the_best_answer_is_found(*, is_bound_known: bool) -> None:
    """At once where the bound is right, part by part where nothing reaches it."""
    _, found = improved(is_bound_known=is_bound_known)
    assert found.best is not None
    assert found.value == -1
    assert evaluate(WEIGHT, found.best) == 4


def test_without_work_the_answer_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is never worse."""
    monkeypatch.setattr(improvement, "LATER_WORK", 0.0)
    monkeypatch.setattr(improvement, "BOUND_WORK", 0.0)
    start, found = improved(is_bound_known=True)
    assert found.value >= evaluate(FEW_NODES, start)
