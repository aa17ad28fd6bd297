"""Packing and the direct model share the kinds and nothing else, and never disagree.

On small batches the direct model proves the best value: packing finds no more, proves
no less, and the judge accepts its devices. Batches that packing refuses are counted.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from functools import partial

import pytest
from msgspec import structs

from solver import allocate as pipeline
from solver.cel.evaluator import SelectorEvaluator
from solver.decision import Status
from solver.engines.choose import PACKING
from solver.engines.solve import answer
from solver.errors import NotPackableError
from solver.problem.problem import Problem
from solver.tiers import Tier
from tests.draw.drawn import drawn
from tests.draw.everything import TINY, draw_everything
from tests.draw.gang_worlds import gang_world

SOAK = bool(os.environ.get("MOORINGS_SOAK"))
PROBLEMS = 4_000 if SOAK else 200
SEEN: Counter[str] = Counter()


@pytest.fixture(scope="module")
def evaluator() -> Iterator[SelectorEvaluator]:
    with SelectorEvaluator() as made:
        yield made


def gangs_alone(problem: Problem) -> Problem:
    """The batch without goals after those that packing pursues."""
    return Problem(
        problem.pages,
        problem.gangs,
        problem.selectors,
        structs.replace(problem.parameters, last_tier=Tier.ALTERNATIVES),
        neighbours=problem.neighbours,
        quotas=problem.quotas,
    )


def compare(problem: Problem, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Decide by packing, let the judge look at it, and compare with all engines."""
    monkeypatch.setattr(pipeline, "answer", answer)
    best = pipeline.allocate(gangs_alone(problem))
    monkeypatch.setattr(pipeline, "answer", partial(answer, engine=PACKING))
    try:
        packed = pipeline.allocate(gangs_alone(problem))
    except NotPackableError as error:
        SEEN[f"refused: {error}"] += 1
        return
    SEEN.update(["compared", packed.status.value])
    assert best.status is Status.OPTIMAL, name
    mine = [tier for tier in packed.objective if tier.tier is Tier.GANGS]
    theirs = [tier for tier in best.objective if tier.tier is Tier.GANGS]
    for own, other in zip(mine, theirs, strict=True):
        assert own.value <= other.value, name
        assert own.bound is None or own.bound >= other.value, name
        if own.value != other.value:
            break


@pytest.mark.parametrize("part", range(4))
def test_packing_agrees_on_devices(
    part: int, evaluator: SelectorEvaluator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Claims of all features that allocation knows, on few nodes."""
    for seed in range(part, PROBLEMS, 4):
        problem, _ = drawn(seed, evaluator, nodes=2 + seed % 5, gangs=6)
        compare(problem, monkeypatch, f"seed {seed}")


@pytest.mark.parametrize("part", range(2))
def test_packing_agrees_on_gangs(part: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Gangs with racks, groups and shared values; and everything at once."""
    for seed in range(part, PROBLEMS // 4, 2):
        compare(gang_world(seed)[0], monkeypatch, f"gang world {seed}")
        compare(draw_everything(seed, TINY)[0], monkeypatch, f"everything {seed}")


def test_much_was_compared() -> None:
    """The laws above are about many batches, and packing proves most of them."""
    assert SEEN["compared"] >= PROBLEMS // 4, SEEN
    assert SEEN["Optimal"] >= SEEN["compared"] // 2, SEEN
