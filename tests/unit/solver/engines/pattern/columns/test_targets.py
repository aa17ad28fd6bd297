"""Targets: the best gangs that can be, and places for all their pods."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from solver.engines.pattern.columns import targets
from solver.engines.pattern.columns.budget import Budget
from solver.engines.pattern.columns.column_source import ColumnSource
from solver.engines.pattern.columns.incumbent import Incumbent
from solver.engines.pattern.columns.integer_master import Solution
from solver.engines.pattern.columns.master import Master
from solver.engines.pattern.columns.model import PatternModel
from solver.engines.pattern.columns.objective import Objective
from solver.engines.pattern.columns.priced_search import PricedSearch
from solver.engines.pattern.columns.rounding import RelaxedSolution, solve_relaxation
from solver.engines.pattern.columns.targets import TargetSearch
from tests.builders.patterns import gangs_model


def begin(
    model: PatternModel,
) -> tuple[TargetSearch, ColumnSource, Incumbent, RelaxedSolution]:
    """Price once, and begin with nothing."""
    objective = Objective(tuple(kind.weight for kind in model.data.gangs))
    source = ColumnSource(model, Budget(10.0, 1))
    result = source.run(Master(model.data, objective, ()), model.first_prices)
    incumbent = Incumbent(objective, (), Solution((0,) * len(model.data.gangs), ()))
    incumbent.bound = result.bound
    patterns = source.pool.list_promising()
    relaxed = solve_relaxation(model.data, patterns, objective, ())
    assert relaxed is not None
    return TargetSearch(source, incumbent, result), source, incumbent, relaxed


def search(model: PatternModel) -> Incumbent:
    """Price once, then try targets."""
    target_search, _, incumbent, relaxed = begin(model)
    target_search.run(relaxed)
    return incumbent


def test_the_best_set_of_gangs_is_found_and_proven() -> None:
    """Of gangs of 5, 4 and 3 devices, 8 devices take 5 and 3: nothing is left."""
    found = search(gangs_model((5, 1), (4, 1), (3, 1), sizes=(4, 4)))
    assert (found.value, found.bound) == (8, 8)


def test_nodes_that_cannot_take_fractions_lower_the_bound() -> None:
    """Pods of three devices leave one of four over, whatever gangs there are."""
    found = search(gangs_model((2, 3), (1, 3), (3, 3), sizes=(4, 4, 4)))
    assert (found.value, found.bound) == (9, 9)


def test_gangs_change_places_where_the_target_finds_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A search that finds no place for all is no reason to place none."""
    monkeypatch.setattr(targets, "PLACE_WORK", 0.0)
    found = search(gangs_model((3, 2), (2, 2), (1, 1), sizes=(5, 5)))
    assert 0 < found.value <= found.bound


def test_gangs_change_places_where_no_target_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """From the relaxed answer on; the bound is met all the same."""
    monkeypatch.setattr(TargetSearch, "_find_target", lambda _: None)
    found = search(gangs_model((5, 1), (4, 1), (3, 1), sizes=(4, 4)))
    assert (found.value, found.bound) == (8, 8)


def test_nothing_is_changed_where_nothing_can_be_better(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What is proven is left as it is."""
    asked: list[object] = []
    monkeypatch.setattr(PricedSearch, "run", lambda *given: asked.append(given))
    found = search(gangs_model((5, 1), (4, 1), (3, 1), sizes=(4, 4)))
    assert found.is_proven
    assert not asked


def test_no_target_is_tried_without_work() -> None:
    """The answer to begin with stays."""
    target_search, source, incumbent, relaxed = begin(gangs_model((5, 1), sizes=(4, 4)))
    source.budget = Budget(work_limit=0.0, seed=1)
    target_search.run(relaxed)
    assert incumbent.value == 0


def test_targets_of_whose_pods_no_fractions_fit_are_cut_off(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As long as there are any; then the tree of subproblems is asked."""
    fitted: list[tuple[int, ...]] = []

    def refuse(_search: TargetSearch, gangs: Sequence[int]) -> None:
        fitted.append(tuple(gangs))

    branched: list[bool] = []
    monkeypatch.setattr(TargetSearch, "_fit", refuse)
    monkeypatch.setattr(TargetSearch, "_branch", lambda _: branched.append(True))
    monkeypatch.setattr(targets, "MAX_CUT_OFF", 3)
    target_search, _, _, _ = begin(gangs_model((5, 1), (4, 1), (3, 1), sizes=(4, 4)))
    assert target_search._find_target() is None
    assert len(fitted) == 3
    assert branched
