"""One goal over patterns that prices find: an answer, and a bound above it."""

from __future__ import annotations

from solver.engines.pattern.columns.budget import Budget
from solver.engines.pattern.columns.generation import generate
from solver.engines.pattern.columns.greedy import Greedy
from solver.engines.pattern.columns.incumbent import Incumbent
from solver.engines.pattern.columns.integer_master import Solution, evaluate
from solver.engines.pattern.columns.model import PatternModel
from solver.engines.pattern.columns.objective import Floor, Objective
from tests.builders import gang, member
from tests.builders.patterns import nodes_of_sizes, pattern_model

UID = "00000000-0000-4000-8000-{:012}"


def model_of(gangs: int, pods: int, *sizes: int) -> PatternModel:
    """Ask for so many gangs of so many pods on nodes of these sizes."""
    return pattern_model(
        nodes_of_sizes(*sizes),
        *(
            gang(member(count=pods), name=f"g{i}", uid=UID.format(i))
            for i in range(gangs)
        ),
    )


def search(
    model: PatternModel,
    objective: Objective,
    *floors: Floor,
    best: Solution | None = None,
) -> Incumbent:
    """Search for one objective."""
    return generate(model, Budget(10.0, 1), objective, floors, best)


def test_value_and_bound_meet_where_pods_come_alone() -> None:
    """Seven devices, however they are spread, serve seven pods."""
    found = search(model_of(9, 1, 3, 4), Objective((1,)))
    assert (found.value, found.bound) == (7, 7)


def test_the_bound_knows_that_gangs_are_whole() -> None:
    """Seven devices serve two gangs of three pods: a third of one is none."""
    found = search(model_of(9, 3, 3, 4), Objective((3,)))
    assert (found.value, found.bound) == (6, 6)


def test_the_value_is_that_of_the_answer() -> None:
    """And never above the bound."""
    objective = Objective((5,))
    found = search(model_of(4, 2, 3, 3, 3), objective)
    assert found.best is not None
    assert evaluate(objective, found.best) == found.value
    assert found.value <= found.bound


def test_a_later_goal_keeps_what_earlier_ones_reached() -> None:
    """All gangs stay in, on as few nodes as can be."""
    model = model_of(4, 1, 1, 1, 4)
    start = Greedy(model).run()
    all_in = Floor(Objective((1,)), 4)
    few = Objective((0,), touched=1)
    found = search(model, few, all_in, best=start)
    assert found.best is not None
    assert evaluate(all_in.objective, found.best) == 4
    assert found.value >= evaluate(few, start)
    assert found.value <= found.bound
