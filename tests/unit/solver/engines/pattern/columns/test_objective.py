"""Goals as numbers: gangs are worth something, ranks and nodes cost."""

from __future__ import annotations

from solver.engines.pattern.columns.integer_master import Solution, evaluate
from solver.engines.pattern.columns.objective import (
    Objective,
    add_up,
    bound_trivially,
    weigh_pattern,
)
from solver.engines.pattern.columns.pricing import Pattern

USED = Pattern((3,), ((0, 1),), 2, -5)
EMPTY = Pattern((), ())


def test_a_node_costs_only_if_a_pod_is_on_it() -> None:
    """Ranks cost each, slack value counts as it changed."""
    objective = Objective((1,), rank=10, slack=2, touched=7)
    assert weigh_pattern(objective, EMPTY) == 0
    assert weigh_pattern(objective, USED) == -10 - 20 - 7


def test_nothing_is_worth_more_than_all_gangs_for_nothing() -> None:
    """Gangs that cost are left out of the bound."""
    assert bound_trivially(Objective((3, -2, 0)), (2, 5, 9)) == 6


def test_objectives_are_added_by_their_factors() -> None:
    """The value of a sum is the sum of the values."""
    current, earlier = Objective((1, 0), rank=1), Objective((0, 2), slack=1, touched=1)
    both = add_up(current, 100, [(3, earlier)])
    solution = Solution((4, 5), ((0, USED, 2),))
    assert evaluate(both, solution) == 100 * evaluate(current, solution) + 3 * (
        evaluate(earlier, solution)
    )


def test_a_solution_is_worth_its_gangs_less_what_its_nodes_cost() -> None:
    """Each node that uses a pattern is weighed."""
    objective = Objective((10,), touched=1)
    assert evaluate(objective, Solution((3,), ((0, USED, 2),))) == 28
