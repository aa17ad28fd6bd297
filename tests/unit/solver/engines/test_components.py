"""What does not touch is decided apart, where all together are too much."""

from __future__ import annotations

import random

import pytest
from msgspec import structs

from contracts.gang import Gang
from solver.allocate import allocate
from solver.cel.evaluator import SelectorEvaluator
from solver.decision import Decision, Status
from solver.engines import components
from solver.engines.components import COMPONENTS, find_able_nodes, find_components
from solver.engines.direct.search import DirectSearch
from solver.engines.goals import EngineResult
from solver.engines.pattern.search import PatternSearch
from solver.engines.pattern.states import graph
from solver.errors import GraphTooLargeError
from solver.kinds.counting import bound_pods
from solver.kinds.demand import Demand
from solver.kinds.nodes import find_node_kinds
from solver.problem.problem import Problem
from tests.builders import (
    DRIVER,
    device,
    devices,
    gang,
    member,
    member_claim,
    pool,
    request,
    resource_slice,
)
from tests.builders.models import DRAWN_UID
from tests.builders.problems import observe, problem_of, snapshot_of
from tests.draw.drawn import drawn

MODELS = ("red", "green", "blue")


def asking(
    number: int, *models: str, pods: int = 1, count: int = 1, priority: int = 0
) -> Gang:
    """Ask for devices of some models, in one pod of each; no model: of any."""
    return gang(
        *(
            member(
                member_claim(request(count=count, select=_of_model(model))),
                name=f"m{index}",
                count=pods,
            )
            for index, model in enumerate(models or ("",))
        ),
        name=f"g{number}",
        uid=DRAWN_UID.format(number),
        priority=priority,
    )


def _of_model(model: str) -> tuple[str, ...]:
    return (f'device.attributes["{DRIVER}"].model == "{model}"',) if model else ()


def problem(*gangs: Gang) -> Problem:
    """Ask for these on two nodes of each model, with four devices each."""
    pools = {
        f"{model}-{n}": [
            pool(*devices(4, attributes={"model": model}), name=f"{model}-{n}")
        ]
        for model in MODELS
        for n in range(2)
    }
    return problem_of(snapshot_of(pools, gangs))


def parts_of(asked: Problem) -> tuple[tuple[int, ...], ...]:
    """Find the components."""
    demand = Demand(asked.gangs)
    return find_components(demand, find_node_kinds(asked, demand.query))


def weights(decision: Decision) -> list[tuple[int, int | None]]:
    """List values and bounds."""
    return [(tier.value, tier.bound) for tier in decision.objective]


def test_gangs_touch_where_their_pods_could_be_on_one_kind_of_node() -> None:
    """By themselves, or by a gang between them."""
    red, green, blue = (asking(i, model) for i, model in enumerate(MODELS))
    assert parts_of(problem(red, green, blue, asking(3, "red"))) == ((0, 3), (1,), (2,))
    bridge = asking(3, "red", "blue")
    assert parts_of(problem(red, green, blue, bridge)) == ((0, 2, 3), (1,))
    assert parts_of(problem(red, green, blue, asking(3))) == ((0, 1, 2, 3),)


def test_all_is_one_where_nodes_share_a_device() -> None:
    """Somebody elsewhere could take it."""
    asked = problem(asking(0, "red"), asking(1, "green"))
    assert len(parts_of(asked)) == 2
    pools = {"n0": [pool(*devices(2, attributes={"model": "red"}), name="n0")]}
    gangs = [asking(0, "red"), asking(1, "green")]
    link = device("link", attributes={"model": "green"})
    item = resource_slice(link, name="f", pool="f", all_nodes=True)
    seen_by_all = problem_of(observe(snapshot_of(pools, gangs), "f", item))
    assert parts_of(seen_by_all) == ((0, 1),)


def test_many_small_ones_are_put_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each gang is in just one of them."""
    monkeypatch.setattr(components, "MOST_AT_ONCE", 2)
    gangs = [asking(i, model) for i, model in enumerate((*MODELS, "red"))]
    assert parts_of(problem(*gangs)) == ((0, 3), (1, 2))


def test_values_and_bounds_of_parts_add_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Together they have too many states, each by itself has not."""
    gangs = [
        asking(number, MODELS[number % 3], pods=1 + number % 3, count=1 + number % 2)
        for number in range(12)
    ]
    together = allocate(problem(*gangs))
    assert together.statistics.engine == "pattern"
    monkeypatch.setattr(graph, "MAX_STATES", 9)
    apart = allocate(problem(*gangs))
    assert apart.statistics.engine == COMPONENTS
    assert "node states" in apart.statistics.engine_reason
    assert apart.status is together.status is Status.OPTIMAL
    assert weights(apart) == weights(together)


def test_a_part_that_nobody_decides_has_first_fit_and_a_bound(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What is proven of the other one counts; of later goals nothing is."""
    run = PatternSearch.run

    def refuse_several(self: PatternSearch) -> EngineResult:
        if len(self._model.demand.gangs) > 1:
            raise GraphTooLargeError("too many states")
        return run(self)

    def give_up(_: DirectSearch) -> EngineResult:
        return EngineResult(status=Status.NOT_PROVEN)

    monkeypatch.setattr(PatternSearch, "run", refuse_several)
    monkeypatch.setattr(DirectSearch, "run", give_up)
    gangs = [asking(i, "green", pods=3, count=2) for i in range(3)]
    decision = allocate(problem(asking(9, "red", pods=8), *gangs))
    assert decision.statistics.engine == COMPONENTS
    assert decision.status is Status.FEASIBLE
    assert [bool(answer.members) for answer in decision.gangs].count(True) == 2
    (value, bound), *later = weights(decision)
    assert bound is not None
    assert 8 < value < bound <= 8 + 8
    assert all(later_bound is None for _, later_bound in later)


def test_each_part_may_take_its_share_of_the_work_that_is_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What one part does not take is for those after it."""
    given: list[float] = []
    run = PatternSearch.run

    def search(self: PatternSearch) -> EngineResult:
        if len(self._model.demand.gangs) > 1:
            raise GraphTooLargeError("too many states")
        given.append(self._budget.remaining)
        result = run(self)
        effort = structs.replace(result.effort, work=2.0)
        return structs.replace(result, effort=effort)

    monkeypatch.setattr(PatternSearch, "run", search)
    asked = problem(*(asking(i, model) for i, model in enumerate(MODELS)))
    decision = allocate(asked)
    limit = asked.parameters.work_limit
    assert given == [limit / 3, (limit - 2) / 2, limit - 4]
    assert decision.statistics.work == 6.0


def test_below_a_gap_only_the_sum_of_all_gangs_is_a_bound(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One part could give way to the other where that is more urgent."""
    run = PatternSearch.run

    def refuse_green(self: PatternSearch) -> EngineResult:
        if len(self._model.demand.gangs) != len(red):
            raise GraphTooLargeError("too many states")
        return run(self)

    def give_up(_: DirectSearch) -> EngineResult:
        return EngineResult(status=Status.NOT_PROVEN)

    monkeypatch.setattr(PatternSearch, "run", refuse_green)
    monkeypatch.setattr(DirectSearch, "run", give_up)
    red = [asking(10, "red", pods=8), asking(11, "red", pods=4)]
    green = [asking(i, "green", pods=3, count=2, priority=5) for i in range(3)]
    tiers = weights(allocate(problem(*red, *green)))
    assert tiers[0][1] is not None
    assert tiers[0][0] < tiers[0][1]
    assert tiers[1] == (8, 12)


@pytest.mark.parametrize("seed", range(8))
def test_no_answer_is_another_one_apart(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of gangs that compete, at two priorities."""
    draw = random.Random(seed)
    gangs = [asking(0, "red"), asking(1, "green", "blue")]
    gangs += (
        asking(
            number,
            *draw.sample(MODELS[1:], 2) if draw.random() < 0.3 else MODELS[:1],
            pods=draw.randint(1, 3),
            count=draw.randint(1, 3),
            priority=draw.choice((0, 5)),
        )
        for number in range(2, 10)
    )
    together = allocate(problem(*gangs))
    assert together.statistics.engine == "pattern"
    run = PatternSearch.run

    def refuse_first(_: PatternSearch) -> EngineResult:
        monkeypatch.setattr(PatternSearch, "run", run)
        raise GraphTooLargeError("too many states")

    monkeypatch.setattr(PatternSearch, "run", refuse_first)
    apart = allocate(problem(*gangs))
    assert apart.statistics.engine == COMPONENTS
    assert weights(apart) == weights(together)


def test_able_nodes_are_those_that_counting_leaves() -> None:
    """In drawn cases with all features: what is passed over could hold no pod."""
    passed_over = 0
    with SelectorEvaluator() as evaluator:
        for seed in range(60):
            asked, _ = drawn(seed, evaluator, nodes=3)
            demand = Demand(asked.gangs)
            kinds = find_node_kinds(asked, demand.query)
            for member, nodes in zip(
                demand.member_kinds, find_able_nodes(demand, kinds), strict=True
            ):
                able = [bound_pods(member, kind.shape) > 0 for kind in kinds]
                assert [bool(nodes >> n & 1) for n in range(len(kinds))] == able
                passed_over += able.count(False)
    assert passed_over > 0
