"""Two searches for better gangs, and what is taken of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from runtime import forks
from solver.engines.goals import Effort
from solver.engines.pattern.columns import exchange as module
from solver.engines.pattern.columns.budget import Budget
from solver.engines.pattern.columns.column_source import ColumnSource
from solver.engines.pattern.columns.exchange import SEARCHES, Report, exchange
from solver.engines.pattern.columns.incumbent import Incumbent
from solver.engines.pattern.columns.integer_master import Solution
from solver.engines.pattern.columns.master import SCALE, MasterResult
from solver.engines.pattern.columns.model import PatternModel
from solver.engines.pattern.columns.objective import Objective
from solver.engines.pattern.columns.priced_search import PricedSearch
from solver.engines.pattern.columns.pricing import Prices
from solver.portfolio import race, run_by
from tests.builders.patterns import gangs_model


def begin(model: PatternModel, bound: int) -> tuple[ColumnSource, Incumbent]:
    """Begin with nothing in, and a bound."""
    kinds = model.data.gangs
    objective = Objective(tuple(kind.weight for kind in kinds))
    incumbent = Incumbent(objective, (), Solution((0,) * len(kinds), ()))
    incumbent.bound = bound
    return ColumnSource(model, Budget(8.0, 1)), incumbent


def run(source: ColumnSource, incumbent: Incumbent, work: float = 2.0) -> None:
    """Let gangs change places, at prices of nothing."""
    model = source.model
    gains = tuple(SCALE * kind.weight for kind in model.data.gangs)
    prices = Prices((0,) * model.data.members)
    priced = MasterResult(0, (), (), (), prices, gains)
    assert incumbent.best is not None
    exchange(source, incumbent, priced, incumbent.best, work)


def test_what_is_proven_ends_all_searches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of gangs of 5, 4 and 3 devices, 8 devices take 5 and 3, which nothing exceeds."""
    told: list[list[Report]] = []

    def watch(*given: object) -> list[list[Report]]:
        told.extend(race(*given))  # type: ignore[arg-type]
        return told

    monkeypatch.setattr(module, "race", watch)
    source, incumbent = begin(gangs_model((5, 1), (4, 1), (3, 1), sizes=(4, 4)), 8)
    run(source, incumbent)
    assert (incumbent.value, incumbent.is_proven) == (8, True)
    assert len(told) == SEARCHES
    proven = [report.is_proven for reports in told for report in reports]
    assert proven.count(True) == 1


def test_the_better_of_the_answers_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """One search finds a gang, the other one two; neither proves anything."""
    model = gangs_model((5, 1), (4, 1), (3, 1), sizes=(4, 4))
    orders: list[int] = []
    begun = PricedSearch.__init__

    def note(self: PricedSearch, *given: object) -> None:
        begun(self, *given)  # type: ignore[arg-type]
        self.order = given[-1]  # type: ignore[attr-defined]
        orders.append(self.order)  # type: ignore[attr-defined]

    def rounds(self: PricedSearch, _: Solution) -> Iterator[None]:
        is_last = self.order == SEARCHES - 1  # type: ignore[attr-defined]
        wanted = {5, 3} if is_last else {4}
        kinds = model.data.gangs
        gangs = tuple(int(kind.weight in wanted) for kind in kinds)
        self._incumbent.offer(Solution(gangs, ()))
        yield

    monkeypatch.setattr(PricedSearch, "__init__", note)
    monkeypatch.setattr(PricedSearch, "rounds", rounds)
    source, incumbent = begin(model, 9)
    run(source, incumbent)
    assert orders == list(range(SEARCHES))
    assert incumbent.value == 8


def test_the_search_with_the_most_work_is_what_counts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The rest of the batch has as much left as if that had been the only one."""
    efforts = [
        Effort(models=3, variables=7, constraints=2, work=0.5),
        Effort(models=2, variables=5, constraints=4, work=0.75),
    ]
    told = [[Report(None, False, effort)] for effort in efforts]
    monkeypatch.setattr(module, "race", lambda *_: told)
    source, incumbent = begin(gangs_model((5, 1), sizes=(4,)), 5)
    run(source, incumbent)
    assert source.budget.remaining == 8.0 - 0.75
    assert source.budget.to_effort() == Effort(
        models=5, variables=7, constraints=4, work=1.25, beside=0.5
    )
    assert source.budget.to_effort().spent == 0.75
    assert incumbent.value == 0


def test_without_work_nobody_searches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even for as long as it takes to begin."""
    monkeypatch.setattr(module, "race", lambda *_: pytest.fail("a search began"))
    source, incumbent = begin(gangs_model((5, 1), sizes=(5,)), 5)
    source.budget.join([Effort(work=8.0)])
    run(source, incumbent)
    assert incumbent.value == 0


def test_in_copies_of_the_process_the_same_is_found(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Also where the bound is out of reach, so that both go on to their end."""
    monkeypatch.setattr(forks, "count_processors", lambda: 2)
    found = []
    for is_forked in (False, True):
        model = gangs_model(*((pods, 2) for pods in (5, 4, 3)), sizes=(4, 4, 5))
        source, incumbent = begin(model, 14)
        if is_forked:
            with run_by(forks.run_in_forks):
                run(source, incumbent, 0.2)
        else:
            run(source, incumbent, 0.2)
        effort = source.budget.to_effort()
        found.append((incumbent.best, incumbent.value, effort, source.budget.remaining))
    assert found[0] == found[1]
    assert not caplog.messages, "no copy was lost, whose search would be made good here"
