"""The model says what trying everything says, on drawn problems of every feature."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

from solver.allocate import allocate
from solver.cel.evaluator import SelectorEvaluator
from solver.decision import Decision, Status
from solver.engines.choose import DIRECT
from solver.engines.relaxation import CapacityProgram
from solver.engines.solve import answer
from solver.kinds.demand import Demand
from solver.kinds.nodes import find_node_kinds
from solver.problem.problem import Problem
from solver.tiers import Tier
from tests.draw.drawn import drawn
from tests.lab.soak import sized
from tests.oracles.brute import Brute, TooManyWaysError
from tests.oracles.brute_world import MalformedError
from tests.oracles.disagreement import disagreement

PROBLEMS = sized(600, 20_000)
AT_ONCE = 100
FEATURES = {
    "admin": "about-admin",
    "alternatives": "first-available",
    "all": "all",
    "binding": "binding",
    "capacity": "capacity-request",
    "compatibility groups": "compatibility-groups",
    "counters": "counters",
    "derived attributes": "derived-attributes",
    "distinct": "distinct",
    "expected": "expected",
    "generations": "about-generations",
    "held": "held",
    "lists": "list-attribute",
    "match": "match",
    "node fit": "node-fit",
    "per device": "per-device",
    "seen by all": "place-all",
    "seen by selector": "place-selector",
    "shareable": "shareable",
    "shared": "shared",
    "skip": "skip-node-operations",
    "taints": "taints",
}
"""What must occur, by the tag of the case."""
SEEN: Counter[str] = Counter()


@pytest.fixture(scope="module")
def evaluator() -> Iterator[SelectorEvaluator]:
    with SelectorEvaluator() as made:
        yield made


@pytest.mark.parametrize("first", range(0, PROBLEMS, AT_ONCE))
def test_value_is_that_of_brute_force(first: int, evaluator: SelectorEvaluator) -> None:
    """Tiers equal the best of all answers as far as they are proven; 1 and 2 are.

    What is not proven is no better than the best, and the judge has agreed.
    """
    for seed in range(first, first + AT_ONCE):
        problem, tags = drawn(seed, evaluator)
        try:
            brute = Brute(problem)
            best = brute.value()
        except (TooManyWaysError, MalformedError):
            SEEN["not tried"] += 1
            continue
        decision = allocate(problem)
        wrong = disagreement(decision.objective, brute.tiers(), best)
        assert not wrong, f"seed {seed}: {wrong}"
        assert decision.status is Status.OPTIMAL, f"seed {seed}"
        SEEN.update(
            f"proven {t.tier}" for t in decision.objective if t.bound == t.value
        )
        SEEN.update(f"tier {t.tier}" for t in decision.objective)
        if "shared" not in tags:
            compare_capacity(problem, decision)
        if problem.expected:
            direct = answer(problem, DIRECT).tiers
            wrong = disagreement(direct, brute.tiers(), best)
            assert not wrong, f"seed {seed}, direct: {wrong}"
            # Where devices draw from counters it leaves out what is left over.
            later = {Tier.LEFTOVER, Tier.NODES} if "counters" in tags else set[Tier]()
            assert all(
                tier.bound == tier.value or tier.tier in later for tier in direct
            ), f"seed {seed}"
            SEEN["lost"] += any(t.value for t in direct if t.tier is Tier.LEFTOVER)
        placed = any(gang.members for gang in decision.gangs)
        SEEN.update([*tags, "placed" if placed else "none"])


def compare_capacity(problem: Problem, decision: Decision) -> None:
    """What all nodes have together bounds every best answer, and not by nothing."""
    demand = Demand(problem.gangs)
    program = CapacityProgram(demand, find_node_kinds(problem, demand.query))
    for tier in decision.objective:
        if tier.tier is Tier.GANGS and tier.priority is not None:
            bound = program.relax(tier.priority).bound
            assert tier.value <= bound, problem.hash
            asked = sum(g.weight for g in demand.gangs if g.priority == tier.priority)
            SEEN["bounded"] += bound < asked


def test_every_feature_was_met() -> None:
    """The law above is about all features, and about yes and no."""
    met = SEEN["placed"] + SEEN["none"]
    assert SEEN["placed"] > met // 5, SEEN
    assert SEEN["not tried"] < met // 20, SEEN
    assert SEEN["lost"] > met // 50, SEEN
    assert SEEN["bounded"] > met // 50, SEEN
    for tier in (Tier.GANGS, Tier.ALTERNATIVES):
        assert SEEN[f"proven {tier}"] == SEEN[f"tier {tier}"], SEEN
    rare = {name for name, tag in FEATURES.items() if SEEN[tag] < met // 100}
    assert not rare, (rare, SEEN)
