"""One linear program: gangs take pods, patterns supply them, floors are kept."""

from __future__ import annotations

import pytest

from solver.engines.pattern.columns.master_data import SCALE
from solver.engines.pattern.columns.model import PatternModel
from solver.engines.pattern.columns.objective import Floor, Objective
from solver.engines.pattern.columns.pricing import Pattern, Prices
from solver.engines.pattern.columns.restricted_master import (
    RestrictedMaster,
    each_alone,
)
from tests.builders.patterns import gangs_model

MODEL = gangs_model((3, 1), (2, 1), sizes=(4, 5))
WEIGHTS = Objective(tuple(kind.weight for kind in MODEL.data.gangs))
SIZES = dict(enumerate(MODEL.data.sizes))


def master(
    *floors: Floor, without_place: tuple[float, ...] = (), model: PatternModel = MODEL
) -> RestrictedMaster:
    """State it without patterns, each class in a row of its own."""
    rows = each_alone(SIZES)
    return RestrictedMaster(
        model.data, WEIGHTS, floors, rows, without_place=without_place
    )


def full_patterns() -> list[Pattern]:
    """List what fills a node of each class with pods."""
    return MODEL.pricing.find_best(Prices(tuple(SCALE * d for d in MODEL.devices)))[1]


def test_gangs_are_in_as_far_as_patterns_have_places() -> None:
    """Nothing without patterns, all with a full node of each class."""
    restricted = master()
    solved = restricted.solve()
    assert solved is not None
    assert solved.worth == 0
    for owner, pattern in enumerate(full_patterns()):
        assert restricted.add(((owner, pattern, 1),))
    solved = restricted.solve()
    assert solved is not None
    assert solved.worth == pytest.approx(sum(WEIGHTS.gangs))
    assert restricted.read_gangs() == pytest.approx((1, 1))
    assert [uses for uses, _ in restricted.read_columns()] == list(restricted.columns)


def test_a_column_is_added_once_and_never_without_pods() -> None:
    """What is known already is not new."""
    restricted, pattern = master(), full_patterns()[0]
    assert not restricted.add(((0, MODEL.pricing.to_pattern(()), 1),))
    assert restricted.add(((0, pattern, 1),))
    assert not restricted.add(((0, pattern, 1),))
    assert len(list(restricted.columns)) == 1


def test_only_patterns_that_earn_more_than_their_nodes_cost_are_added() -> None:
    """Nodes cost nothing before anything is used on them."""
    restricted, pattern = master(), full_patterns()[0]
    solved = restricted.solve()
    assert solved is not None
    assert not restricted.add_better([(0, 0, pattern)], solved)
    assert restricted.add_better([(0, 1, pattern)], solved)


def test_floors_cost_pods_without_a_place_where_these_are_allowed() -> None:
    """A gang that an earlier goal took in is in, whatever it takes."""
    floor = Floor(Objective((1, 0)), 1)
    assert master(floor).solve() is None
    restricted = master(floor, without_place=(7.0,))
    solved = restricted.solve()
    assert solved is not None
    pods = sum(pods for _, pods in MODEL.data.gangs[0].members)
    assert solved.worth == pytest.approx(WEIGHTS.gangs[0] - 7 * pods)
    assert solved.floors[0] >= 0


def test_limits_of_gangs_and_nodes_can_change() -> None:
    """The program grows and shrinks between solves."""
    restricted = master()
    restricted.add_patterns({0: full_patterns()[:1], 1: full_patterns()[1:2]})
    restricted.limit_gangs((0, 0), (0, 0))
    solved = restricted.solve()
    assert solved is not None
    assert solved.worth == 0
    restricted.limit_gangs((0, 0), (1, 1))
    for owner in SIZES:
        restricted.limit_row(owner, 0)
    solved = restricted.solve()
    assert solved is not None
    assert solved.worth == 0


@pytest.mark.parametrize("price", [0.0, 0.5, 1.0, 2.5])
def test_any_prices_give_a_bound(price: float) -> None:
    """What nodes earn, and what gangs are worth beyond their pods (Lagrange)."""
    restricted = master()
    rounded = restricted.round([price], ())
    earned = MODEL.pricing.find_best(rounded.prices)[0].tolist()
    total = sum(size * each for size, each in zip(SIZES.values(), earned, strict=True))
    bound = restricted.bound(rounded, total, (0, 0), (1, 1))
    assert bound >= SCALE * sum(WEIGHTS.gangs)
    assert bound == total + sum(max(0, g) for g in restricted.weigh_gangs(rounded))
