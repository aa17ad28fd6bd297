"""Over a part of the states: at least what was placed one after the other."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from solver.allocate import allocate
from solver.decision import Decision, Status
from solver.engines import choose
from solver.engines.choose import Decided
from solver.engines.greedy.search import GreedySearch
from solver.engines.pattern.search import PatternSearch
from solver.engines.pattern.states import graph
from solver.engines.pattern.states.graph import MAX_STATES
from solver.engines.tier_values import weight_in
from solver.engines.truncated import TRUNCATED, TruncatedSearch
from solver.errors import GraphTooLargeError
from solver.kinds.demand import Demand
from solver.kinds.nodes import find_node_kinds
from solver.problem.problem import Problem
from solver.tiers import Tier
from tests.builders import device, gang, member, member_claim, pool, request
from tests.builders.models import DRAWN_UID
from tests.builders.problems import problem_of, snapshot_of
from tests.draw.crowds import world

SEEDS = range(4)


def shares(*sizes: int, cards: int = 2, nodes: int = 2) -> Problem:
    """Ask for shares of cards of ten, in gangs of one pod; each is worth its size."""
    devices_of_node = [
        device(f"c{c}", capacity={"gib": 10}, allow_multiple_allocations=True)
        for c in range(cards)
    ]
    pools = {f"n{n}": [pool(*devices_of_node, name=f"n{n}")] for n in range(nodes)}
    gangs = [
        gang(
            member(member_claim(request(capacity={"gib": size}))),
            name=f"g{number}",
            uid=DRAWN_UID.format(number),
            weight=size,
        )
        for number, size in enumerate(sizes)
    ]
    return problem_of(snapshot_of(pools, gangs))


def decide(problem: Problem) -> tuple[Demand, Decided]:
    demand = Demand(problem.gangs)
    kinds = find_node_kinds(problem, demand.query)
    return demand, TruncatedSearch(demand, kinds, problem.parameters).run("too many")


def value_of(problem: Problem) -> tuple[int, int | None]:
    demand, (_, result) = decide(problem)
    return weight_in(demand, result.placements, 0), result.bounds[Tier.GANGS, 0]


def test_what_the_relaxation_allows_is_proven() -> None:
    """Four cards of ten: 5 + 5, 6 + 4, 7 + 3, 8 + 2; by age 8 would find no place."""
    problem = shares(2, 3, 4, 5, 5, 6, 7, 8)
    demand, (choice, result) = decide(problem)
    assert choice.engine == TRUNCATED
    assert result.status is Status.OPTIMAL
    assert weight_in(demand, result.placements, 0) == 40


def test_a_gap_is_stated() -> None:
    """Of five shares of six, four cards take four; the others are not worth a card."""
    assert value_of(shares(6, 6, 6, 6, 6)) == (24, 24)
    value, bound = value_of(shares(6, 6, 6, 6, 6, 5))
    assert value == 24
    assert bound is not None
    assert 24 <= bound < 35


@pytest.mark.parametrize("seed", SEEDS)
def test_no_order_alone_is_better(seed: int) -> None:
    """Nor is any with the states of all of them."""
    problem = world(seed, nodes=(3, 8), gangs=(8, 16)).problem
    demand = Demand(problem.gangs)
    kinds = find_node_kinds(problem, demand.query)
    by_age = GreedySearch(demand, kinds).run(range(len(demand.gangs)))
    _, (_, result) = decide(problem)
    priorities = sorted({each.priority for each in demand.gangs}, reverse=True)
    ours, plain = (
        [weight_in(demand, placements, priority) for priority in priorities]
        for placements in (result.placements, by_age)
    )
    assert ours >= plain


def refuse(*_: object, **__: object) -> PatternSearch:
    raise GraphTooLargeError("too much for patterns, too")


def not_wanted(*_: object, **__: object) -> PatternSearch:
    pytest.fail("so many states were to be mixed")


@pytest.mark.parametrize(
    ("most", "search"), [(MAX_STATES, refuse), (1, not_wanted)], ids=["steps", "states"]
)
def test_where_states_cannot_be_mixed_the_best_order_counts(
    most: int, search: Callable[..., PatternSearch], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Be it that there are too many of them; the bound stays."""
    problem = shares(6, 6, 6, 6, 6, 5)
    value, bound = value_of(problem)
    monkeypatch.setattr("solver.engines.truncated.MAX_STATES", most)
    monkeypatch.setattr("solver.engines.truncated.PatternSearch", search)
    assert value_of(problem) == (value, bound)


def test_gangs_change_places_in_the_best_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where neither an order nor the mixed states reach the bound."""
    problem = shares(8, 8, 2, 6, 9, 8, 6, 9, 7, 5, 4, 6)
    monkeypatch.setattr("solver.engines.truncated.PatternSearch", refuse)
    value, bound = value_of(problem)
    monkeypatch.setattr("solver.engines.truncated.MOST_TURNS", 0)
    value_without, _ = value_of(problem)
    assert bound is not None
    assert value_without < value <= bound


def decided_again(seed: int) -> Decision:
    return allocate(world(seed, nodes=(3, 8), gangs=(8, 16)).problem)


def test_the_judge_agrees_and_so_does_another_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By the service's way, with hardly any states."""
    monkeypatch.setattr(graph, "MAX_STATES", 10)
    monkeypatch.setattr(choose, "WHOLE", 0)
    engines = set()
    for seed in SEEDS:
        decision = decided_again(seed)
        engines.add(decision.statistics.engine)
        assert decision == decided_again(seed)
    assert TRUNCATED in engines
