"""Levels of node resources that are rounded down lose no answer, and merge nodes."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from solver.engines.pattern.columns.model import PatternModel
from solver.engines.pattern.columns.pricing import Prices
from solver.engines.pattern.states import attainable
from solver.errors import PatternLimitError
from solver.kinds.demand import Demand
from solver.kinds.nodes import find_node_kinds
from tests.builders.patterns import gangs_with_cpu_model
from tests.draw.crowds import world
from tests.lab.soak import sized

SEEDS = sized(40, 2_000)
PRICES = 10
SEEN: Counter[str] = Counter()


def draw_model(seed: int) -> PatternModel | None:
    """Draw a model: devices of many makes, or equal ones beside all amounts of CPU.

    None: it is too large, or there is nothing to decide.
    """
    draw = random.Random(seed)
    if seed % 2:
        pods = [
            (draw.randint(1, 9), draw.randint(1, 3), 1000 * draw.randint(0, 9))
            for _ in range(draw.randint(1, 5))
        ]
        nodes = [(draw.randint(1, 3), draw.randint(0, 12_000)) for _ in range(9)]
        return gangs_with_cpu_model(*pods, nodes=nodes, coarseness=1)
    problem = world(seed, nodes=(3, 12), gangs=(4, 12)).problem
    demand = Demand([gang for gang in problem.gangs if not gang.refused])
    kinds = find_node_kinds(problem, demand.query)
    if not (demand.gangs and kinds):
        return None
    try:
        return PatternModel(demand, kinds)
    except PatternLimitError:
        return None


def earned_by_node(model: PatternModel, prices: Prices) -> dict[str, int]:
    """Say what each node earns at most."""
    earned = model.pricing.find_best(prices)[0].tolist()
    return {
        node.name: worth
        for node_class, worth in zip(model.graph.classes, earned, strict=True)
        for kind, _ in node_class.kinds
        for node in kind.nodes
    }


@pytest.mark.parametrize("seed", range(SEEDS))
def test_every_node_earns_the_same(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the prices are."""
    rounded = draw_model(seed)
    monkeypatch.setattr(attainable, "MAX_SUMS", -1)
    as_they_are = draw_model(seed)
    if rounded is None or as_they_are is None:
        return
    assert rounded.is_exact
    SEEN["models"] += 1
    fewer = len(rounded.steps.states) < len(as_they_are.steps.states)
    SEEN["with fewer points"] += fewer
    merged = len(rounded.graph.classes) < len(as_they_are.graph.classes)
    SEEN["with fewer classes"] += merged
    draw = random.Random(seed)
    for _ in range(PRICES):
        members = tuple(draw.randint(0, 20) for _ in range(rounded.data.members))
        prices = Prices(members, rank=draw.choice((0, 1)), touched=draw.choice((0, 3)))
        assert earned_by_node(rounded, prices) == earned_by_node(as_they_are, prices)


def test_levels_were_rounded() -> None:
    """Else nothing was compared."""
    assert SEEN["models"] > SEEDS // 2, SEEN
    assert SEEN["with fewer points"] > SEEDS // 4, SEEN
    assert SEEN["with fewer classes"] > SEEDS // 8, SEEN
