"""Targets: the best gangs that can be, and places for all their pods."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from msgspec import structs

from solver.engines.pattern.columns import targets
from solver.engines.pattern.columns.budget import Budget
from solver.engines.pattern.columns.column_source import ColumnSource
from solver.engines.pattern.columns.cuts import CutMasterResult
from solver.engines.pattern.columns.improvement import Start
from solver.engines.pattern.columns.incumbent import Incumbent
from solver.engines.pattern.columns.integer_master import Solution
from solver.engines.pattern.columns.local_search import PartialSolution
from solver.engines.pattern.columns.master import Master, MasterResult
from solver.engines.pattern.columns.master_data import MasterData
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


def test_a_target_without_places_is_followed_by_a_lower_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What was given up is not ruled out: the bound stays above the value."""
    model = gangs_model((5, 1), (4, 1), (3, 1), sizes=(4, 4))
    tried: list[int] = []
    place = TargetSearch._place

    def refuse_first(
        self: TargetSearch, worth: int, start: Start, work: float
    ) -> PartialSolution:
        tried.append(worth)
        if worth == 8:
            return PartialSolution(Solution(start.solution.gangs, ()), 1)
        return place(self, worth, start, work)

    monkeypatch.setattr(TargetSearch, "_place", refuse_first)
    monkeypatch.setattr(targets, "EXCHANGE_WORK", 0.0)
    monkeypatch.setattr(targets, "STEPS_WORK", 0.0)
    found = search(model)
    assert (found.value, found.bound) == (7, 8)
    assert tried[0] == 8
    assert 7 in tried


@pytest.mark.parametrize(("work", "value"), [(0.0, 0), (2.5, 8)])
def test_steps_come_last_where_a_gap_is_left(
    monkeypatch: pytest.MonkeyPatch, work: float, value: int
) -> None:
    """No target has places, nobody changes them, and yet the best gangs are found."""
    nothing = PartialSolution(Solution((0, 0, 0), ()), 1)
    monkeypatch.setattr(TargetSearch, "_place", lambda *_: nothing)
    monkeypatch.setattr(PricedSearch, "run", lambda *_: None)
    monkeypatch.setattr(targets, "STEPS_WORK", work)
    found = search(gangs_model((5, 1), (4, 1), (3, 1), sizes=(4, 4)))
    assert (found.value, found.bound) == (value, 8)


def test_no_step_is_taken_where_nothing_can_be_better(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What is proven is left as it is."""
    asked: list[object] = []
    monkeypatch.setattr(targets, "improve_by_parts", lambda *given: asked.append(given))
    found = search(gangs_model((5, 1), (4, 1), (3, 1), sizes=(4, 4)))
    assert found.is_proven
    assert not asked


def test_no_target_is_tried_without_work() -> None:
    """The answer to begin with stays."""
    target_search, source, incumbent, relaxed = begin(gangs_model((5, 1), sizes=(4, 4)))
    source.budget = Budget(work_limit=0.0, seed=1)
    target_search.run(relaxed)
    assert incumbent.value == 0


def test_gangs_are_taken_out_until_the_rest_have_places(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A search that finds no place for all is no reason to place none."""
    monkeypatch.setattr(targets, "PLACE_WORK", 0.0)
    monkeypatch.setattr(targets, "FIRST_WORK", 0.0)
    monkeypatch.setattr(targets, "EXCHANGE_WORK", 0.0)
    monkeypatch.setattr(targets, "STEPS_WORK", 0.0)
    found = search(gangs_model((3, 2), (2, 2), (1, 1), sizes=(5, 5)))
    assert 0 < found.value <= found.bound


def refuse_fractions(
    monkeypatch: pytest.MonkeyPatch, bounds: list[int]
) -> list[tuple[int, ...]]:
    """Say of targets, one after the other, that fractions come to so much; no more."""
    asked: list[tuple[int, ...]] = []
    price, choose = TargetSearch._price_pods, TargetSearch._choose_target

    def price_pods(
        self: TargetSearch, gangs: Sequence[int]
    ) -> tuple[MasterData, MasterResult, bool]:
        asked.append(tuple(gangs))
        master, result, _ = price(self, gangs)
        bound = bounds[len(asked) - 1]
        return master, structs.replace(result, bound=bound), False

    def choose_target(self: TargetSearch, most: int) -> CutMasterResult | None:
        return choose(self, most) if len(asked) < len(bounds) else None

    monkeypatch.setattr(TargetSearch, "_price_pods", price_pods)
    monkeypatch.setattr(TargetSearch, "_choose_target", choose_target)
    return asked


def test_the_nearest_target_is_taken_once_where_no_other_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of three whose pods do not fit, that of the highest bound; then none."""
    asked = refuse_fractions(monkeypatch, [5, 7, 6])
    model = gangs_model((5, 1), (4, 1), (3, 1), sizes=(4, 4))
    target_search, _, incumbent, _ = begin(model)
    taken = target_search._choose_fitting_target(incumbent.bound)
    assert taken is not None
    assert len(asked) == 3
    assert taken[0].gangs == asked[1]
    assert taken[1].solution.gangs == asked[1]
    assert target_search._choose_fitting_target(incumbent.bound) is None


def test_no_places_are_looked_for_at_once_where_fractions_do_not_fit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The relaxed answer is begun with only for a target that could have places."""
    placed: list[int] = []

    def place(
        _search: TargetSearch, worth: int, start: Start, _work: float
    ) -> PartialSolution:
        placed.append(worth)
        return PartialSolution(start.solution, 1)

    monkeypatch.setattr(TargetSearch, "_place", place)
    model = gangs_model((5, 1), (4, 1), (3, 1), sizes=(4, 4))
    target_search, _, incumbent, relaxed = begin(model)
    target_search._try_at_once(relaxed)
    assert placed == [incumbent.bound]
    refuse_fractions(monkeypatch, [5])
    target_search, _, _, relaxed = begin(model)
    target_search._try_at_once(relaxed)
    assert len(placed) == 1
