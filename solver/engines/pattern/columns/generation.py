"""One goal over more patterns than can be listed: price, relax, round, search.

Prices give a bound, a pool of patterns, and an answer with fractions. What then lies
between an answer in whole numbers and the bound depends on the goal: where it counts
gangs alone, targets are aimed at; later goals are improved part by part.
"""

from __future__ import annotations

from collections.abc import Sequence

from solver.engines.pattern.columns.budget import Budget
from solver.engines.pattern.columns.column_source import ColumnSource
from solver.engines.pattern.columns.improvement import improve
from solver.engines.pattern.columns.incumbent import Incumbent
from solver.engines.pattern.columns.integer_master import Solution
from solver.engines.pattern.columns.master import Master
from solver.engines.pattern.columns.model import PatternModel
from solver.engines.pattern.columns.objective import Floor, Objective, bound_trivially
from solver.engines.pattern.columns.rounding import round_down, solve_relaxation
from solver.engines.pattern.columns.targets import TargetSearch


def generate(
    model: PatternModel,
    budget: Budget,
    objective: Objective,
    floors: Sequence[Floor],
    best: Solution | None,
) -> Incumbent:
    """Find an answer and a bound; `best`: an answer to begin with, above all floors."""
    source, data = ColumnSource(model, budget), model.data
    incumbent = Incumbent(objective, floors, best)
    # First price: the master's bound holds for whole numbers too, and its columns and
    # what was nearly as good fill the pool.
    master = Master(data, objective, floors)
    if best is not None:
        master.add_columns(best.uses)
        source.pool.add_uses(best.uses)
    result = source.run(master, model.first_prices)
    incumbent.bound = min(result.bound, bound_trivially(objective, data.available))
    # Then relax and round: few classes are split, and what is whole is an answer.
    patterns_by_class = source.pool.list_promising()
    relaxed = solve_relaxation(data, patterns_by_class, objective, floors)
    if relaxed is None:
        incumbent.offer(Solution((0,) * len(data.gangs), ()))
        return incumbent
    incumbent.offer(round_down(data, relaxed))
    # Last search between that answer and the bound.
    if incumbent.counts_only_gangs:
        TargetSearch(source, incumbent, result).run(relaxed)
    else:
        improve(source, incumbent, relaxed)
    return incumbent
