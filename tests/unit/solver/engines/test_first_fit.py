"""First fit is the floor: no answer is worth less than gangs in their order."""

from __future__ import annotations

import pytest
from msgspec import structs

from solver.allocate import allocate
from solver.decision import Status
from solver.engines.apart import APART
from solver.engines.choose import DIRECT, Decided, EngineChoice
from solver.engines.construct.search import Constructed
from solver.engines.first_fit import FIRST_FIT, at_least_constructed
from solver.engines.goals import EngineResult, Goal
from solver.engines.pattern.search import PatternSearch
from solver.errors import GraphTooLargeError
from solver.kinds.affinity.resolve import resolve_affinity
from solver.kinds.demand import Demand
from solver.kinds.nodes import find_node_kinds
from solver.problem.problem import Problem
from solver.tiers import Tier
from tests.builders import gang, member, member_claim, request
from tests.builders.neighbours import caring, spread, zoned
from tests.builders.patterns import demand_and_kinds, nodes_of_sizes
from tests.builders.problems import (
    PARAMETERS,
    observe_core,
    problem_of,
    snapshot_of,
)
from tests.draw.crowds import world

UID = "00000000-0000-4000-8000-{:012}"
NODES = nodes_of_sizes(*[4] * 20)
GANGS = [
    gang(
        member(member_claim(request(count=1 + number % 3)), count=1 + number % 4),
        name=f"g{number}",
        uid=UID.format(number),
        priority=number % 2,
    )
    for number in range(40)
]


HARD = (1, 2)
"""Seeds of crowds of which the direct model finds less, or nothing."""


def hard_problem(seed: int, monkeypatch: pytest.MonkeyPatch) -> Problem:
    """Make a batch with too many states and hardly any work for the direct model."""

    def refuse(_: PatternSearch) -> EngineResult:
        raise GraphTooLargeError("too many states")

    monkeypatch.setattr(PatternSearch, "run", refuse)
    drawn = world(seed, nodes=(20, 60), gangs=(10, 40))
    nodes = {name: [made] for name, made in drawn.pools.items()}
    snapshot = observe_core(
        snapshot_of(nodes, drawn.gangs, taken=drawn.taken), *drawn.known
    )
    return problem_of(snapshot, structs.replace(PARAMETERS, work_limit=0.001))


def weights_in(problem: Problem) -> list[int]:
    """Decide, and list the weight that is in by priority."""
    tiers = allocate(problem).objective
    return [tier.value for tier in tiers if tier.tier is Tier.GANGS]


@pytest.mark.parametrize("seed", HARD)
def test_a_batch_that_is_too_hard_is_placed_in_turn(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The judge agrees, and the gap is stated."""
    decision = allocate(hard_problem(seed, monkeypatch))
    assert decision.status is Status.FEASIBLE
    assert decision.statistics.engine in {FIRST_FIT, DIRECT}
    assert sum(bool(answer.members) for answer in decision.gangs) > 10
    for tier in decision.objective:
        if tier.tier is Tier.GANGS:
            assert tier.bound is not None
            assert 0 < tier.value <= tier.bound


@pytest.mark.parametrize("seed", HARD)
def test_without_the_floor_less_would_be_placed(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The direct model alone stops early: the batches above are hard."""
    problem = hard_problem(seed, monkeypatch)
    with_floor = weights_in(problem)
    no_floor = "solver.engines.solve.at_least_constructed"
    monkeypatch.setattr(no_floor, lambda *given: given[-1])
    nothing = "solver.engines.direct.search.construct"
    monkeypatch.setattr(nothing, lambda *_: Constructed())
    as_it_is = "solver.engines.direct.search.complete"
    monkeypatch.setattr(as_it_is, lambda *given: given[2])
    assert weights_in(problem) < with_floor


def raised(problem: Problem, decided: Decided) -> Decided:
    demand = Demand(problem.gangs)
    kinds = find_node_kinds(problem, demand.query)
    return at_least_constructed(problem, demand, kinds, problem.parameters, decided)


def test_a_better_answer_stays() -> None:
    """So does one that is proven, however little it is worth."""
    problem = problem_of(snapshot_of(NODES, GANGS))
    demand, kinds = demand_and_kinds(NODES, *GANGS)
    best = PatternSearch(demand, kinds, PARAMETERS).run()
    for status in (Status.FEASIBLE, Status.OPTIMAL):
        decided = EngineChoice("pattern"), structs.replace(best, status=status)
        assert raised(problem, decided) == decided
    nothing = EngineChoice("pattern"), EngineResult(status=Status.OPTIMAL)
    assert raised(problem, nothing) == nothing


def test_bounds_hold_up_to_the_first_goal_that_differs() -> None:
    """Others hold for answers that keep what was reached before."""
    problem = problem_of(snapshot_of(NODES, GANGS))
    bounds: dict[Goal, int | None] = {
        (Tier.GANGS, 1): 55,
        (Tier.GANGS, 0): 3,
        (Tier.NODES, None): 2,
    }
    nothing = EngineResult(status=Status.NOT_PROVEN, bounds=bounds)
    choice, found = raised(problem, (EngineChoice("pattern"), nothing))
    assert choice.engine == FIRST_FIT
    ordinary = sum(each.weight for each in problem.gangs if not each.priority)
    assert found.bounds == {
        (Tier.GANGS, 1): 55,
        (Tier.GANGS, 0): ordinary,
        (Tier.NODES, None): None,
    }


NOTHING = EngineChoice(APART, "hard"), EngineResult(status=Status.NOT_PROVEN)
"""What engines answer where a batch is too much for them."""
ADMIN = request(admin_access=True)


def test_what_is_beyond_patterns_is_constructed() -> None:
    """The most urgent gangs first; what the others cannot have is a stated gap."""
    gangs = [
        gang(
            member(member_claim(request(count=3)), member_claim(ADMIN, name="watch")),
            name=f"g{number}",
            uid=UID.format(number),
            priority=number,
        )
        for number in range(3)
    ]
    problem = problem_of(snapshot_of(nodes_of_sizes(4, 4), gangs))
    choice, found = raised(problem, NOTHING)
    assert (choice.engine, found.status) == (FIRST_FIT, Status.FEASIBLE)
    names = [problem.gangs[placed.gang].name for placed in found.placements]
    assert sorted(names) == ["g1", "g2"]
    assert found.bounds[Tier.GANGS, 0] == 4


def test_pods_with_rules_about_each_other_are_constructed() -> None:
    """The direct model has that at hand before it answers."""
    gangs = [
        caring(2, number=number, topology_spread_constraints=(spread(),))
        for number in range(1, 6)
    ]
    problem = resolve_affinity(problem_of(zoned("a", "b", gangs=gangs)))
    assert Demand(problem.gangs).query.domains
    choice, found = raised(problem, NOTHING)
    assert choice.engine == FIRST_FIT
    assert len(found.placements) >= 2
    direct = EngineChoice(DIRECT, "hard"), NOTHING[1]
    assert not raised(problem, direct)[1].placements


def test_an_answer_that_is_worth_as_much_stays() -> None:
    """So does one that is proven, however little."""
    problem = problem_of(snapshot_of(NODES, GANGS))
    proven = EngineChoice(APART), EngineResult(status=Status.OPTIMAL)
    assert raised(problem, proven) == proven
    _, best = raised(problem, NOTHING)
    assert raised(problem, (EngineChoice(APART), best)) == (EngineChoice(APART), best)
