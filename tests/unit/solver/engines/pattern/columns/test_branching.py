"""Branching over gangs: its bound against trying everything, and what it finds."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from itertools import product

import pytest

from solver.engines.glop import Program
from solver.engines.pattern.columns import branching
from solver.engines.pattern.columns.branching import BranchResult, GangBranching
from solver.engines.pattern.columns.master import count_pods
from solver.engines.pattern.columns.model import PatternModel
from solver.engines.pattern.columns.objective import Floor, Objective
from tests.builders.patterns import gangs_model

DRAWN = 150
SEEN: Counter[str] = Counter()


def branch(
    model: PatternModel, objective: Objective, least: int, *floors: Floor
) -> BranchResult:
    """Begin without any pattern, at the bound of all gangs for nothing."""
    pairs = zip(objective.gangs, model.data.available, strict=True)
    bound = sum(worth * gangs for worth, gangs in pairs)
    return GangBranching(model, {}, objective, floors).run(least, bound)


def weights_of(model: PatternModel) -> Objective:
    """Take the weights of the gangs."""
    return Objective(tuple(kind.weight for kind in model.data.gangs))


def fits(pods: Sequence[int], free: Sequence[int]) -> bool:
    """Try every node for every pod; `pods` and `free` in devices."""
    if not pods:
        return True
    return any(
        fits(pods[1:], [*free[:index], left - pods[0], *free[index + 1 :]])
        for index, left in enumerate(free)
        if left >= pods[0]
    )


def list_answers(model: PatternModel, sizes: Sequence[int]) -> list[tuple[int, ...]]:
    """List all gangs that have places together."""
    answers = []
    for gangs in product(*(range(most + 1) for most in model.data.available)):
        counts = enumerate(count_pods(model.data, gangs))
        pods = [model.devices[m] for m, count in counts for _ in range(count)]
        if fits(sorted(pods, reverse=True), sizes):
            answers.append(gangs)
    return answers


def weigh(objective: Objective, gangs: Sequence[int]) -> int:
    """Weigh gangs."""
    pairs = zip(objective.gangs, gangs, strict=True)
    return sum(worth * count for worth, count in pairs)


def draw_model(draw: random.Random) -> tuple[PatternModel, tuple[int, ...]]:
    """Draw a few gangs of a few pods, and nodes for some of them."""
    sizes = tuple(draw.randint(1, 5) for _ in range(draw.randint(1, 3)))
    gangs = [
        (draw.randint(1, 3), draw.randint(1, max(sizes)))
        for _ in range(draw.randint(2, 5))
    ]
    return gangs_model(*gangs, sizes=sizes), sizes


@pytest.mark.parametrize("limit", [1, 3, 300])
def test_no_answer_exceeds_the_bound(
    monkeypatch: pytest.MonkeyPatch, limit: int
) -> None:
    """However early branching stops, with floors and other worths than weights."""
    monkeypatch.setattr(branching, "MAX_SOLVED", limit)
    for seed in range(DRAWN):
        draw = random.Random(seed)
        model, sizes = draw_model(draw)
        answers = list_answers(model, sizes)
        kinds = len(model.data.gangs)
        objective = Objective(tuple(draw.randint(1, 9) for _ in range(kinds)))
        floors: tuple[Floor, ...] = ()
        if draw.random() < 0.4:
            earlier = Objective(tuple(draw.randint(0, 3) for _ in range(kinds)))
            value = max(weigh(earlier, gangs) for gangs in answers)
            answers = [gangs for gangs in answers if weigh(earlier, gangs) >= value]
            floors = (Floor(earlier, value),)
        best = max(weigh(objective, gangs) for gangs in answers)
        least = draw.choice((0, best - 1, best, best + 1))
        found = branch(model, objective, least, *floors)
        assert max(found.bound, least) >= best, seed
        assert not found.gangs or weigh(objective, found.gangs) == found.bound, seed
        if limit == 300 and best > least:
            SEEN["met" if found.bound == best else "above"] += 1


def test_bounds_were_mostly_met() -> None:
    """The law above is no empty one: what is left is what nodes cannot split."""
    assert SEEN["met"] > 5 * SEEN["above"], SEEN


def test_fractions_of_gangs_are_ruled_out() -> None:
    """Of gangs of 5, 4 and 7 devices ten take 5 and 4; a part of one is none."""
    model = gangs_model((5, 1), (4, 1), (7, 1), sizes=(5, 5))
    found = branch(model, weights_of(model), 0)
    assert (found.gangs, found.bound) == ((1, 1, 0), 9)


def test_nothing_better_is_the_bound_that_was_asked_for() -> None:
    """All cases are closed by what is known to be reached."""
    model = gangs_model((5, 1), (4, 1), (7, 1), sizes=(5, 5))
    assert branch(model, weights_of(model), 9) == BranchResult((), 9)


def test_a_program_that_gives_up_closes_no_case(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The bound is the one that was known before."""
    monkeypatch.setattr(Program, "solve", lambda _: None)
    model = gangs_model((5, 1), (4, 1), (7, 1), sizes=(5, 5))
    assert branch(model, weights_of(model), 0) == BranchResult((), 16)
