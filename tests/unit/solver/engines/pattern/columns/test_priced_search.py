"""Gangs change places until the best ones are in."""

from __future__ import annotations

import random

import pytest

from solver.engines.pattern.columns import priced_search
from solver.engines.pattern.columns.budget import Budget
from solver.engines.pattern.columns.column_source import ColumnSource
from solver.engines.pattern.columns.incumbent import Incumbent, keeps_floors
from solver.engines.pattern.columns.integer_master import (
    Solution,
    count_short,
    evaluate,
)
from solver.engines.pattern.columns.local_search import PartialSolution
from solver.engines.pattern.columns.master import MasterResult
from solver.engines.pattern.columns.master_data import SCALE
from solver.engines.pattern.columns.model import PatternModel
from solver.engines.pattern.columns.objective import Floor, Objective
from solver.engines.pattern.columns.priced_search import PricedSearch
from solver.engines.pattern.columns.pricing import Prices
from tests.builders.patterns import gangs_model


def priced_at(
    model: PatternModel, gains: tuple[int, ...] = (), prices: tuple[int, ...] = ()
) -> MasterResult:
    """Say what gangs gain at these prices; otherwise pods cost nothing."""
    gains = gains or tuple(SCALE * kind.weight for kind in model.data.gangs)
    members = prices or (0,) * model.data.members
    return MasterResult(0, (), (), (), Prices(members), gains)


def search(
    model: PatternModel,
    gangs: tuple[int, ...] = (),
    floors: tuple[Floor, ...] = (),
    work: float = 5.0,
) -> tuple[Incumbent, Budget]:
    """Begin with these gangs, without any place for them."""
    kinds = model.data.gangs
    objective = Objective(tuple(kind.weight for kind in kinds))
    budget = Budget(work, 1)
    incumbent = Incumbent(objective, floors, Solution((0,) * len(kinds), ()))
    incumbent.bound = sum(objective.gangs)
    source = ColumnSource(model, budget)
    start = Solution(gangs or (0,) * len(kinds), ())
    PricedSearch(source, incumbent, priced_at(model)).run(start, work)
    return incumbent, budget


def test_the_best_gangs_are_found_without_a_pattern_to_begin_with() -> None:
    """Of gangs of 5, 4 and 3 devices, 8 devices take 5 and 3."""
    found, _ = search(gangs_model((5, 1), (4, 1), (3, 1), sizes=(4, 4)))
    assert found.value == 8


def test_gangs_without_places_give_way() -> None:
    """One begins with the pair that is too large by one device."""
    model = gangs_model((5, 1), (4, 1), (3, 1), sizes=(4, 4))
    order = [kind.weight for kind in model.data.gangs]
    found, _ = search(model, tuple(int(weight in {5, 4}) for weight in order))
    assert found.value == 8


def test_answers_lack_no_place() -> None:
    """Whatever is drawn: what is offered has places for all, within the nodes."""
    draw = random.Random(7)
    for _ in range(10):
        asked = [(draw.randint(1, 4), draw.randint(1, 3)) for _ in range(5)]
        sizes = tuple(draw.randint(1, 5) for _ in range(4))
        model = gangs_model(*asked, sizes=sizes)
        found, _ = search(model)
        assert found.best is not None
        assert not any(count_short(model.data, found.best))
        for owner, size in enumerate(model.data.sizes):
            uses = [nodes for used, _, nodes in found.best.uses if used == owner]
            assert sum(uses) <= size


def test_what_earlier_goals_reached_is_kept() -> None:
    """The gang of three is in, although two others are worth more."""
    model = gangs_model((2, 2), (2, 1), (3, 1), sizes=(2, 2, 2))
    of_three = tuple(int(kind.members[0][1] == 3) for kind in model.data.gangs)
    floor = Floor(Objective(of_three), 1)
    kinds = model.data.gangs
    objective = Objective(tuple(kind.weight for kind in kinds))
    budget = Budget(5.0, 1)
    source = ColumnSource(model, budget)
    incumbent = Incumbent(objective, (floor,), None)
    incumbent.bound = sum(objective.gangs)
    search = PricedSearch(source, incumbent, priced_at(model))
    search.run(Solution(of_three, ()), 5.0)
    assert incumbent.best is not None
    assert keeps_floors(incumbent.best, (floor,))
    assert evaluate(objective, incumbent.best) == incumbent.value == 5


def test_no_more_work_is_done_than_is_given() -> None:
    """Without work the answer stays."""
    found, budget = search(gangs_model((5, 1), (3, 1), sizes=(4, 4)), work=0.0)
    assert found.value == 0
    assert budget.to_effort().models == 0


def test_what_is_beyond_its_work_is_left_for_others() -> None:
    """The bound is out of reach, so the search goes on to its end."""
    model = gangs_model(*((pods, 2) for pods in (5, 4, 3)), sizes=(4, 4, 5))
    source = ColumnSource(model, Budget(8.0, 1))
    objective = Objective(tuple(kind.weight for kind in model.data.gangs))
    incumbent = Incumbent(objective, (), None)
    incumbent.bound = 14
    search = PricedSearch(source, incumbent, priced_at(model))
    search.run(Solution((0, 0, 0), ()), 0.01)
    assert incumbent.value > 0
    assert 7.9 < source.budget.remaining < 8.0


def test_a_neighborhood_that_could_not_gain_is_passed_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nodes full of the best gangs: fractions say so, and CP-SAT is not asked."""
    model = gangs_model((4, 1), (3, 1), sizes=(4,))
    monkeypatch.setattr(priced_search, "PATIENCE", 3)
    found, budget = search(model)
    assert found.value == 4
    assert budget.to_effort().models <= 2 * priced_search.PHASES


def test_gangs_that_prices_say_little_of_change_places_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """First those without places and those at a loss; what is sure comes last."""
    monkeypatch.setattr(priced_search, "GANG_KINDS", 4)
    model = gangs_model(*((pods, 1) for pods in range(1, 7)), sizes=(4, 4))
    number_of = {kind.members[0][1]: g for g, kind in enumerate(model.data.gangs)}
    gain_of = {1: 0, 2: 1, 3: -1, 4: 90, 5: 80, 6: -70}
    gains = tuple(gain_of[kind.members[0][1]] for kind in model.data.gangs)
    objective = Objective(tuple(kind.weight for kind in model.data.gangs))
    incumbent = Incumbent(objective, (), None)
    source = ColumnSource(model, Budget(1.0, 1))
    search = PricedSearch(source, incumbent, priced_at(model, gains))
    no_pods = Solution((0,) * len(gains), ())
    out_at_a_loss = {number_of[2], number_of[4], number_of[5]}
    chosen = search._choose_gangs(no_pods)
    assert out_at_a_loss < chosen
    assert chosen - out_at_a_loss <= {number_of[1], number_of[3]}
    without_places = tuple(int(g == number_of[6]) for g in range(len(gains)))
    chosen = search._choose_gangs(Solution(without_places, ()))
    assert chosen == {number_of[6], *out_at_a_loss}


def test_half_of_a_neighborhood_is_of_nodes_that_earn_too_little(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A node in use that could take one pod more, and those that are empty."""
    monkeypatch.setattr(priced_search, "LEAST_CLASSES", 4)
    model = gangs_model((9, 1), (9, 2), sizes=(1, 2, 3, 4, 5, 6))
    incumbent = Incumbent(Objective((1, 2)), (), None)
    source = ColumnSource(model, Budget(1.0, 1))
    prices = tuple(SCALE * devices for devices in model.devices)
    priced = priced_at(model, (0, 0), prices)
    search = PricedSearch(source, incumbent, priced)
    earned, patterns = model.pricing.find_best(Prices(prices))
    full = [(owner, pattern, 1) for owner, pattern in enumerate(patterns)]
    solution = Solution((9, 6), tuple(full))
    assert search._find_classes_at_a_loss(solution) == []
    poor = [owner for owner, most in enumerate(earned.tolist()) if most > 4 * SCALE]
    uses = [use for use in full if use[0] not in poor]
    one_pod = model.pricing.to_pattern(patterns[poor[0]].steps[:1])
    partly = Solution((9, 6), (*uses, (poor[0], one_pod, 1)))
    assert search._find_classes_at_a_loss(partly) == poor
    seen: list[int] = []
    for _ in range(3):
        chosen = search._choose_classes(partly)
        assert len(chosen) == 4
        assert set(poor) <= set(chosen)
        seen.extend(owner for owner in chosen if owner not in poor)
    assert set(seen) == set(range(6)) - set(poor)
    begun_anew = PricedSearch(source, incumbent, priced)
    dealt = [set(begun_anew._choose_classes(solution)) for _ in range(2)]
    assert list(map(len, dealt)) == [4, 2]
    assert set.union(*dealt) == set(range(6))


def new_search(model: PatternModel) -> PricedSearch:
    """Begin without an answer, at prices of nothing."""
    objective = Objective(tuple(kind.weight for kind in model.data.gangs))
    source = ColumnSource(model, Budget(1.0, 1))
    incumbent = Incumbent(objective, (), None)
    return PricedSearch(source, incumbent, priced_at(model))


def test_places_that_no_pod_takes_are_decided_anew() -> None:
    """Three full nodes have places for 12 pods; what gangs leave of them is spare."""
    model = gangs_model((3, 1), (9, 1), sizes=(3, 4, 5))
    prices = Prices(tuple(SCALE * devices for devices in model.devices))
    _, patterns = model.pricing.find_best(prices)
    uses = tuple((owner, pattern, 1) for owner, pattern in enumerate(patterns))
    search = new_search(model)
    small, large = (int(kind.weight == 3) for kind in model.data.gangs)
    find = search._find_classes_with_surplus
    assert set(find(Solution((0, 0), uses))) == {0, 1, 2}
    assert set(find(Solution((small, large), uses))) == {0, 1, 2}
    assert find(Solution((1, 1), uses)) == []
    assert find(Solution((2, 2), uses)) == []
    # Nine of ten places are taken: two classes are enough to decide on the other one.
    for owner, places in enumerate((3, 4, 5)):
        assert sum(pods for _, pods in patterns[owner].counts) == places
    one_pod = model.pricing.to_pattern(patterns[0].steps[:1])
    one_spare = Solution((1 - small, 1 - large), (*uses[1:], (0, one_pod, 1)))
    assert len(set(find(one_spare))) == len(find(one_spare)) == 2


def test_neighborhoods_are_as_large_as_their_work_allows() -> None:
    """What is easy grows unless it gains; what is hard shrinks, within limits."""
    search = new_search(gangs_model((3, 1), sizes=(4,)))
    least, most = priced_search.LEAST_CLASSES, priced_search.MOST_CLASSES
    search._resize(0.0, is_better=True)
    assert search._size == least
    search._resize(0.0, is_better=False)
    assert search._size == least * 5 // 4
    search._resize(0.5, is_better=False)
    assert search._size == least * 5 // 4
    for _ in range(20):
        search._resize(0.0, is_better=False)
    assert search._size == most
    search._resize(1.0, is_better=True)
    assert search._size == most * 4 // 5
    for _ in range(20):
        search._resize(1.0, is_better=False)
    assert search._size == least


@pytest.mark.parametrize(("short", "expected"), [(1, [3, 6, 20, 20]), (0, [3, 1, 1])])
def test_places_become_dearer_while_pods_lack_them(
    short: int, expected: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An answer that is stuck is left: gangs come in before their pods have places."""
    search = new_search(gangs_model((3, 1), sizes=(4,)))
    search._incumbent.bound = 3
    seen: list[int] = []

    def run_with(solution: Solution, penalty: int, until: float) -> PartialSolution:
        assert until < 1.0
        seen.append(penalty)
        return PartialSolution(solution, short)

    monkeypatch.setattr(search, "_run_with", run_with)
    search.run(Solution((0,), ()), 1.0)
    assert len(seen) == priced_search.PHASES
    assert seen[: len(expected)] == expected
