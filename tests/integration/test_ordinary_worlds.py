"""`moorings plan` on each family of ordinary worlds, at its smallest, is right.

The judge is that of the benchmarks, which shares no code with the product.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from benchmarks.judge.cluster import Cluster
from benchmarks.judge.greedy import Greedy
from benchmarks.judge.verdict import judge_plan
from benchmarks.worlds.ordinary.families import FAMILIES, draw_world
from moorings.plan.decide import Planner
from moorings.plan.lines import plan_lines
from solver.cel.evaluator import SelectorEvaluator

SEED = 3


@pytest.fixture(scope="module")
def planner() -> Iterator[Planner]:
    with SelectorEvaluator() as evaluator:
        yield Planner(evaluator)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_small_world_is_decided_best(family: str, planner: Planner) -> None:
    """Nothing is wrong, the value is proven, and no less than what greedy finds."""
    objects = draw_world(family, FAMILIES[family].small, SEED)
    line = json.dumps({"objects": objects}).encode()
    (written,) = plan_lines([line], planner)
    plan = json.loads(written)
    verdict = judge_plan(Cluster(objects), plan)
    assert not verdict.wrong
    assert plan["status"] == "Optimal"
    (tier,) = (tier for tier in plan["objective"] if tier["tier"] == "gangs")
    assert tier["value"] == tier["bound"] == verdict.value
    for best in (False, True):
        assert Greedy(Cluster(objects), best=best).run() <= verdict.value
