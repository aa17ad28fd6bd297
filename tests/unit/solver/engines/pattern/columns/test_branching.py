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
from solver.engines.pattern.columns.master_data import count_pods
from solver.engines.pattern.columns.model import PatternModel
from solver.engines.pattern.columns.objective import Floor, Objective
from tests.builders.patterns import gangs_model, gangs_with_cpu_model

DRAWN, COARSELY = 150, 60
SEEN: Counter[str] = Counter()
PLENTY = 1 << 20
Amounts = tuple[int, int]
"""Devices, and thousandths of a CPU."""


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


def fits(pods: Sequence[Amounts], free: Sequence[Amounts]) -> bool:
    """Try every node for every pod."""
    if not pods:
        return True
    (devices, cpu), *others = pods
    return any(
        fits(others, [*free[:index], (d - devices, c - cpu), *free[index + 1 :]])
        for index, (d, c) in enumerate(free)
        if d >= devices and c >= cpu
    )


def list_answers(
    model: PatternModel, nodes: Sequence[Amounts]
) -> list[tuple[int, ...]]:
    """List all gangs that have places together."""
    kinds = zip(model.devices, model.demand.member_kinds, strict=True)
    needs = [(devices, (*kind.needs, 0)[0]) for devices, kind in kinds]
    answers = []
    for gangs in product(*(range(most + 1) for most in model.data.available)):
        counts = enumerate(count_pods(model.data, gangs))
        pods = [needs[m] for m, count in counts for _ in range(count)]
        if fits(sorted(pods, reverse=True), nodes):
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


def draw_coarse_model(draw: random.Random) -> tuple[PatternModel, list[Amounts]]:
    """Draw gangs that ask for CPU, too, of which levels are coarser than need be."""
    nodes = [(draw.randint(1, 4), draw.randint(5, 40) * 100) for _ in range(2)]
    gangs = [
        (draw.randint(1, 2), draw.randint(1, 3), draw.randint(3, 20) * 100)
        for _ in range(draw.randint(2, 4))
    ]
    coarseness = draw.choice((2, 3, 7))
    return gangs_with_cpu_model(*gangs, nodes=nodes, coarseness=coarseness), nodes


@pytest.mark.parametrize("limit", [1, 3, 300])
def test_no_answer_exceeds_the_bound(
    monkeypatch: pytest.MonkeyPatch, limit: int
) -> None:
    """However early branching stops, with floors and other worths than weights."""
    monkeypatch.setattr(branching, "MAX_SOLVED", limit)
    for seed in range(DRAWN):
        draw = random.Random(seed)
        model, sizes = draw_model(draw)
        answers = list_answers(model, [(size, PLENTY) for size in sizes])
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


def test_coarse_levels_bound_what_exact_ones_come_to() -> None:
    """Pods are rounded up for answers, and down for bounds."""
    above = 0
    for seed in range(COARSELY):
        draw = random.Random(seed)
        model, nodes = draw_coarse_model(draw)
        assert not model.is_exact
        objective = Objective(tuple(draw.randint(1, 9) for _ in model.data.gangs))
        answers = list_answers(model, nodes)
        best = max(weigh(objective, gangs) for gangs in answers)
        found = branch(model, objective, draw.choice((0, best - 1)))
        assert found.bound >= best, seed
        model.bound_pricing = model.pricing
        above += branch(model, objective, 0).bound < best
    assert above, "answers alone would bound too low"


def test_subproblems_that_cannot_keep_a_floor_are_closed() -> None:
    """Only these: GLOP has no answer there, and would end the search at 12."""
    model = gangs_model((3, 2), (3, 4), (1, 2), (3, 1), sizes=(3, 2, 5))
    floor = Floor(Objective((1, 3, 1, 0)), 2)
    found = branch(model, Objective((7, 3, 3, 8)), 0, floor)
    assert found == BranchResult((1, 0, 1, 0), 10)


def test_what_is_split_for_longest_is_divided_first() -> None:
    """Of kinds split as long the largest; what is whole once begins anew."""
    model = gangs_model((1, 1), (2, 1), (3, 1), sizes=(4,))
    tree = GangBranching(model, {}, weights_of(model), ())
    worth = weights_of(model).gangs
    small, middle, large = sorted(range(3), key=lambda g: worth[g])

    def choose(*split: int) -> int | None:
        return tree._choose([0.5 if g in split else 1.0 for g in range(3)])

    assert choose(small, middle) == middle
    assert choose(small, large) == small
    assert choose(middle, large) == large
    assert choose(small, middle, large) == large
    assert choose() is None


def test_fractions_of_gangs_are_ruled_out() -> None:
    """Of gangs of 5, 4 and 7 devices ten take 5 and 4; a part of one is none."""
    model = gangs_model((5, 1), (4, 1), (7, 1), sizes=(5, 5))
    found = branch(model, weights_of(model), 0)
    assert (found.gangs, found.bound) == ((1, 1, 0), 9)


def test_nothing_better_is_the_bound_that_was_asked_for() -> None:
    """All subproblems are closed by what is known to be reached."""
    model = gangs_model((5, 1), (4, 1), (7, 1), sizes=(5, 5))
    assert branch(model, weights_of(model), 9) == BranchResult((), 9)


def test_a_program_that_gives_up_closes_no_subproblem(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The bound is the one that was known before."""
    monkeypatch.setattr(Program, "solve", lambda _: None)
    model = gangs_model((5, 1), (4, 1), (7, 1), sizes=(5, 5))
    assert branch(model, weights_of(model), 0) == BranchResult((), 16)
