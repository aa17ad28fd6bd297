"""Whole gangs that compete for the last devices, against trying everything.

The batches ask for more than there is, so who is in is what matters. The service's way
proves what brute force finds. Prices and targets alone, which are made for large
batches, never contradict it, and nearly always prove it as well.
"""

from __future__ import annotations

import random
from collections import Counter

import pytest

from contracts.device import ResourcePool
from contracts.gang import Gang, MemberClaim
from solver.allocate import allocate
from solver.decision import Status
from solver.engines.pattern.search import PatternSearch
from solver.engines.tier_values import tier_values_of
from solver.kinds.demand import Demand
from solver.kinds.nodes import find_node_kinds
from solver.problem.problem import Problem
from solver.tiers import Tier
from tests.builders import (
    DRIVER,
    constraint,
    device,
    gang,
    member,
    member_claim,
    pool,
    request,
)
from tests.builders.problems import problem_of, snapshot_of
from tests.lab.soak import sized
from tests.oracles.brute import Brute, TooManyWaysError
from tests.oracles.disagreement import disagreement

PROBLEMS = sized(100, 10_000)
AT_ONCE = 25
NUMA = f"{DRIVER}/numa"
UID = "00000000-0000-4000-8000-{:012}"
SEEN: Counter[str] = Counter()


def draw_problem(seed: int) -> Problem:
    """Draw nodes of a few devices, and gangs that ask for more than there are."""
    draw = random.Random(seed)
    nodes: dict[str, list[ResourcePool]] = {}
    for number in range(draw.randint(1, 2)):
        devices = [
            device(f"d{index}", attributes={"numa": index % 2})
            for index in range(draw.randint(1, 3))
        ]
        nodes[f"n{number}"] = [pool(*devices, name=f"n{number}")]
    free = sum(len(pools[0].devices) for pools in nodes.values())
    gangs: list[Gang] = []
    while free >= 0 and len(gangs) < 4:
        gangs.append(draw_gang(draw, len(gangs)))
        members = gangs[-1].spec.members
        free -= sum(each.count for each in members)
    return problem_of(snapshot_of(nodes, gangs))


def draw_gang(draw: random.Random, number: int) -> Gang:
    """Draw one or two kinds of pod of one or two devices; few gangs have a weight."""
    members = [
        member(draw_claim(draw), name=f"m{index}", count=draw.randint(1, 2))
        for index in range(draw.choice((1, 1, 2)))
    ]
    return gang(
        *members,
        name=f"g{number}",
        uid=UID.format(number),
        weight=draw.choice((None, None, None, 1, 5)),
        priority=draw.choice((0, 0, 0, 5)),
    )


def draw_claim(draw: random.Random) -> MemberClaim:
    """Ask for one or two devices, sometimes of one NUMA node."""
    is_matched = draw.random() < 0.3
    constraints = [constraint(NUMA)] if is_matched else []
    return member_claim(request(count=draw.randint(1, 2)), constraints=constraints)


@pytest.mark.parametrize("first", range(0, PROBLEMS, AT_ONCE))
def test_the_best_set_of_gangs_is_in(first: int) -> None:
    """By the way that is chosen, and by prices alone."""
    for seed in range(first, first + AT_ONCE):
        problem = draw_problem(seed)
        brute = Brute(problem)
        try:
            best = brute.value()
        except TooManyWaysError:
            SEEN["too many"] += 1
            continue
        decision = allocate(problem)
        assert decision.status is Status.OPTIMAL, f"seed {seed}"
        assert disagreement(decision.objective, brute.tiers(), best) == "", seed
        is_in = [bool(answer.members) for answer in decision.gangs]
        SEEN["compete" if any(is_in) and not all(is_in) else "do not"] += 1
        SEEN[compare_prices(problem, [tier.value for tier in decision.objective])] += 1


def compare_prices(problem: Problem, best: list[int]) -> str:
    """Say whether prices and targets alone prove the same weights; never others."""
    demand = Demand(problem.gangs)
    kinds = find_node_kinds(problem, demand.query)
    parameters = problem.parameters
    result = PatternSearch(demand, kinds, parameters, list_limit=-1).run()
    tiers = tier_values_of(demand, demand, kinds, result, parameters.last_tier)
    for tier, value in zip(tiers, best, strict=True):
        if tier.tier is not Tier.GANGS:
            break
        assert tier.bound is not None
        assert tier.value <= value <= tier.bound, problem.hash
        if tier.value != tier.bound:
            return "open"
    return "closed"


def test_gangs_competed_and_prices_proved_it() -> None:
    """The law above is no empty one."""
    assert SEEN["compete"] > PROBLEMS // 2, SEEN
    assert SEEN["too many"] < PROBLEMS // 10, SEEN
    assert SEEN["closed"] > 9 * SEEN["open"], SEEN
