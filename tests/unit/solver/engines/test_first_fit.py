"""First fit is the floor: no answer is worth less than gangs in their order."""

from __future__ import annotations

import pytest
from msgspec import structs

from solver.allocate import allocate
from solver.decision import Status
from solver.engines import apart, first_fit
from solver.engines.choose import DIRECT, Decided, EngineChoice
from solver.engines.first_fit import FIRST_FIT, raise_to_first_fit, raise_to_turns
from solver.engines.goals import EngineResult, Goal
from solver.engines.pattern.search import PatternSearch
from solver.errors import GraphTooLargeError
from solver.kinds.demand import Demand
from solver.kinds.nodes import find_node_kinds
from solver.kinds.pod_rules import settle_rules
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
    assert decision.statistics.engine == FIRST_FIT
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
    for floor in ("raise_to_first_fit", "raise_to_turns"):
        monkeypatch.setattr(f"solver.engines.solve.{floor}", lambda *given: given[-1])
    assert weights_in(problem) < with_floor


def test_a_better_answer_stays() -> None:
    """So does one that is proven, however little it is worth."""
    demand, kinds = demand_and_kinds(NODES, *GANGS)
    best = PatternSearch(demand, kinds, PARAMETERS).run()
    for status in (Status.FEASIBLE, Status.OPTIMAL):
        decided = EngineChoice("pattern"), structs.replace(best, status=status)
        assert raise_to_first_fit(demand, kinds, PARAMETERS, decided) == decided
    nothing = EngineChoice("pattern"), EngineResult(status=Status.OPTIMAL)
    assert raise_to_first_fit(demand, kinds, PARAMETERS, nothing) == nothing


def test_only_the_first_bound_is_kept() -> None:
    """Others hold for answers that keep what was reached before."""
    demand, kinds = demand_and_kinds(NODES, *GANGS)
    bounds: dict[Goal, int | None] = {
        (Tier.GANGS, 1): 55,
        (Tier.GANGS, 0): 3,
        (Tier.NODES, None): 2,
    }
    nothing = EngineResult(status=Status.NOT_PROVEN, bounds=bounds)
    decided = EngineChoice("pattern"), nothing
    choice, found = raise_to_first_fit(demand, kinds, PARAMETERS, decided)
    assert choice.engine == FIRST_FIT
    ordinary = sum(each.weight for each in demand.gangs if not each.priority)
    assert found.bounds == {
        (Tier.GANGS, 1): 55,
        (Tier.GANGS, 0): ordinary,
        (Tier.NODES, None): None,
    }


NOTHING = EngineChoice(DIRECT, "hard"), EngineResult(status=Status.NOT_PROVEN)
"""What the direct model answers where a batch is too much for it."""
ADMIN = request(admin_access=True)


def raised(problem: Problem, demand: Demand, decided: Decided) -> Decided:
    kinds = find_node_kinds(problem, demand.query)
    return raise_to_turns(problem, demand, kinds, decided)


def test_what_the_direct_model_cannot_do_at_once_it_does_in_turn() -> None:
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
    demand = Demand(problem.gangs)
    choice, found = raised(problem, demand, NOTHING)
    assert (choice.engine, found.status) == (FIRST_FIT, Status.FEASIBLE)
    names = [demand.gangs[placed.gang].name for placed in found.placements]
    assert sorted(names) == ["g1", "g2"]
    assert found.bounds[Tier.GANGS, 0] == 4


def test_pods_with_rules_about_each_other_are_fewer() -> None:
    """What one gang does decides what another may: they are never decided in turn."""
    gangs = [
        caring(2, number=number, topology_spread_constraints=(spread(),))
        for number in range(1, 6)
    ]
    problem = settle_rules(problem_of(zoned("a", "b", gangs=gangs)))
    demand = Demand(problem.gangs)
    assert demand.query.domains
    choice, found = raised(problem, demand, NOTHING)
    assert choice.engine == FIRST_FIT
    assert [placed.gang for placed in found.placements] == [0, 1]


def test_an_answer_that_is_worth_as_much_stays() -> None:
    """So does one that is proven, however little."""
    problem = problem_of(snapshot_of(NODES, GANGS))
    demand = Demand(problem.gangs)
    proven = EngineChoice(DIRECT), EngineResult(status=Status.OPTIMAL)
    assert raised(problem, demand, proven) == proven
    _, best = raised(problem, demand, NOTHING)
    choice, found = raised(problem, demand, (EngineChoice(DIRECT), best))
    assert choice.engine == DIRECT
    assert found == structs.replace(best, effort=found.effort)
    assert found.effort.models > best.effort.models, "what was tried counts"


def test_a_large_batch_with_an_answer_is_not_decided_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Every gang in turn would take longer than the answer did."""
    problem = problem_of(snapshot_of(NODES, GANGS))
    demand = Demand(problem.gangs)
    _, best = raised(problem, demand, NOTHING)
    fewer = structs.replace(best, placements=best.placements[:1])
    decided = EngineChoice(DIRECT), fewer
    assert raised(problem, demand, decided)[0].engine == FIRST_FIT
    monkeypatch.setattr(first_fit, "MOST_IN_TURN", 1)
    assert raised(problem, demand, decided) == decided
    assert raised(problem, demand, NOTHING)[0].engine == FIRST_FIT


def test_turns_end_when_their_work_is_spent(monkeypatch: pytest.MonkeyPatch) -> None:
    """The gang that is asked first has a place."""
    problem = problem_of(snapshot_of(NODES, GANGS))
    demand = Demand(problem.gangs)
    _, in_turn = raised(problem, demand, NOTHING)
    monkeypatch.setattr(apart, "MOST_WORK", 1e-9)
    _, found = raised(problem, demand, NOTHING)
    assert len(found.placements) == 1 < len(in_turn.placements)
