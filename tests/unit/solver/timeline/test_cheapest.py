"""The cheapest gangs of a region, by counting and cuts."""

from __future__ import annotations

from math import inf

import pytest

from contracts.ids import NodeName
from solver.engines.cpsat import Infeasible
from solver.timeline.cheapest import (
    LARGEST,
    CheapestSet,
    Lack,
    Price,
    RegionModel,
    SolveLimits,
    bound_cost,
    bound_loss,
)
from solver.timeline.counting import Counts, Limit, NodeRoom, Region

LIMITS = SolveLimits(1.0, 1)


def region(*given: int, most: int = 9) -> Region:
    """Make one node on which each gang's end gives so many devices."""
    limit = Limit(((0, 1),), 0, tuple(enumerate(given)))
    return Region((NodeRoom(NodeName("n"), ((0, most),), (limit,)),))


def prices(*lost: int, priority: int = 0) -> list[Price]:
    return [Price(priority, (each, 1, 1)) for each in lost]


def choose(
    pods: int, where: Region, costs: list[Price], *lacks: Lack, level: int = 0
) -> CheapestSet | Infeasible | None:
    counts = Counts((pods,), (where,))
    return RegionModel(counts, where, costs, level, lacks).choose(None, LIMITS)[0]


def ended(chosen: CheapestSet | Infeasible | None) -> set[int]:
    assert isinstance(chosen, CheapestSet)
    return set(chosen.ended)


def test_sums_are_minimized_in_their_order() -> None:
    where = region(2, 2, 4)

    assert ended(choose(4, where, prices(10, 10, 21))) == {0, 1}
    assert ended(choose(4, where, prices(10, 10, 20))) == {2}


def test_sums_too_large_for_one_number_are_weighed_one_by_one() -> None:
    where = region(2, 2, 4)
    large = LARGEST // 4

    assert ended(choose(4, where, prices(large, large, 2 * large))) == {2}


def test_who_is_above_the_priority_stays() -> None:
    where = region(4)

    assert isinstance(choose(4, where, prices(1, priority=5)), Infeasible)
    assert ended(choose(4, where, prices(1, priority=5), level=5)) == {0}


def test_a_set_that_is_not_enough_is_not_chosen_again() -> None:
    where, costs = region(4, 4, 4), prices(1, 2, 3)
    final = Lack(frozenset({0, 1}), is_final=True)
    alone = Lack(frozenset({0}), is_final=False)

    assert final.forbids(frozenset({1}))
    assert not alone.forbids(frozenset())
    assert ended(choose(4, where, costs, final)) == {2}
    assert ended(choose(4, where, costs, alone)) == {1}


def test_of_equal_sums_the_youngest_go() -> None:
    where, costs = region(4, 4, 4), prices(1, 1, 1)
    counts = Counts((4,), (where,))
    model = RegionModel(counts, where, costs, 0, ())
    chosen = choose(4, where, costs)
    assert isinstance(chosen, CheapestSet)

    younger, _ = model.choose_younger(chosen, (2, 0, 1), LIMITS)

    assert ended(younger) == {2}


def test_bounds_are_at_most_what_it_costs() -> None:
    where = region(2, 2, 4)
    counts, costs = Counts((4,), (where,)), prices(10, 10, 21)

    level, lost = bound_cost(counts, where, costs) or (None, inf)
    assert level == 0
    assert lost == pytest.approx(20)
    assert bound_cost(Counts((10,), (where,)), where, costs) is None
    assert bound_loss(counts, where, costs, -1) == inf
