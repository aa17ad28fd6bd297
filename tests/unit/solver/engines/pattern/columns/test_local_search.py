"""Places for gangs of a certain worth: ever fewer pods lack one."""

from __future__ import annotations

from solver.engines.pattern.columns.budget import Budget
from solver.engines.pattern.columns.column_pool import ColumnPool
from solver.engines.pattern.columns.incumbent import Incumbent
from solver.engines.pattern.columns.integer_master import Solution
from solver.engines.pattern.columns.local_search import (
    BELOW_FLOORS,
    NeighborhoodSearch,
    PartialSolution,
)
from solver.engines.pattern.columns.master_data import MasterData
from solver.engines.pattern.columns.neighborhoods import PooledNeighborhoods
from solver.engines.pattern.columns.objective import Objective
from solver.engines.pattern.columns.pricing import Pattern
from solver.kinds.demand import GangKind

SMALL, LARGE = 0, 1
"""Member kinds of one device and of two."""
DATA = MasterData(
    gangs=(GangKind(0, 3, ((SMALL, 3),)), GangKind(0, 4, ((LARGE, 2),))),
    available=(3, 3),
    members=2,
    sizes=(2, 1),
    clusters=((0, 1),),
)
TWO_SMALL = Pattern((1, 2), ((SMALL, 2),))
ONE_LARGE = Pattern((3,), ((LARGE, 1),))
ONE_SMALL = Pattern((4,), ((SMALL, 1),))
WEIGHT = Objective((3, 4))


def pool() -> ColumnPool:
    """Two nodes take two small pods or a large one, a third one small pod."""
    made = ColumnPool()
    made.add_uses([(0, TWO_SMALL, 1), (0, ONE_LARGE, 1), (1, ONE_SMALL, 1)])
    return made


def search(worth: int) -> NeighborhoodSearch:
    """Look for gangs of this worth."""
    incumbent = Incumbent(WEIGHT, (), None)
    return NeighborhoodSearch(DATA, incumbent, costs=(1, 2), worth=worth)


def run(
    worth: int, start: Solution, budget: Budget | None = None, until: float = 0.0
) -> PartialSolution:
    """Look for places for gangs of this worth, with the patterns of the pool."""
    neighborhoods = PooledNeighborhoods(pool(), len(DATA.gangs), ())
    return search(worth).run(start, neighborhoods, budget or Budget(10.0, 1), until)


def test_the_shortage_is_of_devices_and_names_its_gangs() -> None:
    """Of two large pods one has a node; the small ones are worth too little."""
    short = search(4).measure(Solution((0, 1), ((0, ONE_LARGE, 1),)))
    assert (short.shortage, short.short_gangs) == (2, (1,))
    small = Solution((1, 0), ((0, TWO_SMALL, 2),))
    assert search(3).measure(small).shortage == 0
    assert search(4).measure(small).shortage == BELOW_FLOORS


def test_a_start_without_places_becomes_an_answer() -> None:
    """Large pods have places instead of small ones."""
    found = run(4, Solution((0, 1), ((0, TWO_SMALL, 2),)))
    assert found.shortage == 0
    assert found.solution.gangs == (0, 1)
    assert (0, ONE_LARGE, 2) in found.solution.uses


def test_what_cannot_be_stays_short_by_as_little_as_can_be() -> None:
    """Three small pods and two large ones need seven devices; there are five."""
    found = run(7, Solution((1, 1), ()))
    assert found.shortage == 2
    assert 3 * found.solution.gangs[0] + 4 * found.solution.gangs[1] >= 7


def test_a_complete_start_costs_no_work() -> None:
    """And stays as it is."""
    budget = Budget(10.0, 1)
    start = Solution((1, 0), ((0, TWO_SMALL, 2),))
    found = run(3, start, budget)
    assert found.solution == start
    assert budget.to_effort().models == 0


def test_no_more_work_is_spent_than_was_given() -> None:
    """Without any, the start is what comes back."""
    start = Solution((0, 1), ())
    found = run(4, start, until=10.0)
    assert found.solution == start
