"""A gang alone is in the domains where least is lost, as trying everything says."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from contracts.gang_rules import GangTopology
from solver.allocate import allocate
from solver.decision import Decision, Status
from solver.engines import leftover
from solver.problem.problem import Problem
from solver.tiers import Tier
from tests.builders import (
    devices,
    gang,
    member,
    member_claim,
    node,
    pool,
    request,
    topology_rule,
)
from tests.builders.problems import (
    PARAMETERS,
    expected_of,
    observe_core,
    problem_of,
    snapshot_of,
)
from tests.oracles.brute import Brute, TooManyWaysError
from tests.oracles.disagreement import disagreement

WORLDS = 100
RACK, BLOCK = "example.com/rack", "example.com/block"
ALONE = "a gang alone, in its domains"


def world(seed: int) -> Problem:
    """Ask for one gang bound to racks or blocks, on a few nodes that differ."""
    draw = random.Random(seed)
    pools, nodes = {}, []
    for number in range(draw.randint(2, 5)):
        name, rack = f"node-{number}", draw.randrange(3)
        pools[name] = [pool(*devices(draw.randint(0, 4)), name=name)]
        labels = {RACK: f"r{rack}", BLOCK: f"b{rack // 2}"}
        nodes.append(node(name, labels=labels if draw.random() < 0.9 else {}))
    asked = member_claim(request(count=draw.randint(1, 3)))
    snapshot = snapshot_of(
        pools, [gang(member(asked, count=draw.randint(1, 3)), topology=rules(draw))]
    )
    sample = member(member_claim(request(count=draw.randint(1, 3))))
    snapshot = observe_core(snapshot, *nodes)
    expected = expected_of(snapshot, sample, size=1000)
    return problem_of(snapshot, PARAMETERS, expected)


def rules(draw: random.Random) -> tuple[GangTopology, ...]:
    return draw.choice(
        (
            (topology_rule(RACK),),
            (topology_rule(BLOCK),),
            (topology_rule(RACK, group_size=draw.randint(1, 2)),),
        )
    )


def is_all_proven(decision: Decision) -> bool:
    return all(tier.bound == tier.value for tier in decision.objective)


def test_no_place_of_a_gang_alone_is_better(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who is in is what trying all says; what is lost as well, where it is proven."""
    monkeypatch.setattr(leftover, "TINY", 0)
    seen = Counter[str]()
    for seed in range(WORLDS):
        problem = world(seed)
        decision = allocate(problem)
        if decision.statistics.engine_reason != ALONE:
            continue
        try:
            brute = Brute(problem)
            best = brute.value()
        except TooManyWaysError:
            continue
        assert decision.status is Status.OPTIMAL, seed
        assert disagreement(decision.objective, brute.tiers(), best) == "", seed
        lost = sum(t.value for t in decision.objective if t.tier is Tier.LEFTOVER)
        seen["proven" if is_all_proven(decision) else "open"] += 1
        seen["lost"] += lost > 0
    assert min(seen["proven"], seen["open"], seen["lost"]) > WORLDS // 20, seen
