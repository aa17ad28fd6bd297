"""No answer is worth less than gangs in their order, each where it first fits.

First fit is kube-scheduler's own order, which shares no search with the engines. The
batches ask for more than there is; every answer is judged by `allocate`.
"""

from __future__ import annotations

from collections import Counter

import pytest
from msgspec import structs

from contracts.gang import Gang
from moorings.upstream.allocate import allocate_upstream
from solver.allocate import allocate
from solver.decision import Decision
from solver.engines import choose
from solver.engines.apart import APART
from solver.engines.choose import DIRECT
from solver.engines.pattern.states import graph
from solver.engines.truncated import TRUNCATED
from solver.problem.problem import Problem
from tests.builders import gang, member, member_claim, request
from tests.draw.crowds import UID, world
from tests.lab.soak import sized

WORLDS = sized(9, 2_000)
AT_ONCE = WORLDS // 3


def weights_in(problem: Problem, decision: Decision) -> list[tuple[int, int]]:
    """Add up the weight that is in, by priority, highest first."""
    weights = {-each.priority: 0 for each in problem.gangs}
    for each, answer in zip(problem.gangs, decision.gangs, strict=True):
        if answer.verdict == "allocated":
            weights[-each.priority] += each.weight
    return sorted(weights.items())


def watching(number: int) -> Gang:
    """Ask for admin access to a device beside one of its own."""
    watched = member_claim(request("watched", admin_access=True), name="watch")
    pod = member(member_claim(request()), watched)
    return gang(pod, name=f"watching-{number}", uid=UID.format(900 + number))


@pytest.mark.parametrize("first", range(0, WORLDS, AT_ONCE))
def test_no_batch_is_worth_less(first: int) -> None:
    """Whichever engine decides it."""
    for seed in range(first, first + AT_ONCE):
        problem = world(seed, nodes=(3, 8), gangs=(8, 16)).problem
        ours, plain = allocate(problem), allocate_upstream(problem)
        assert weights_in(problem, ours) >= weights_in(problem, plain), seed


def test_nor_one_with_too_many_states(monkeypatch: pytest.MonkeyPatch) -> None:
    """By packing, the direct model, in turn, or over a part of the states.

    No bound is below a better answer.
    """
    problems = [world(seed, nodes=(3, 8), gangs=(8, 16)).problem for seed in range(8)]
    proven = list(map(allocate, problems))
    plain = list(map(allocate_upstream, problems))
    monkeypatch.setattr(graph, "MAX_STATES", 10)
    engines = Counter[str]()
    for small in (choose.WHOLE, 0):
        monkeypatch.setattr(choose, "WHOLE", small)
        reasons = ""
        for seed, (problem, best) in enumerate(zip(problems, proven, strict=True)):
            ours = allocate(problem)
            floor = weights_in(problem, plain[seed])
            assert weights_in(problem, ours) >= floor, seed
            bound = ours.objective[0].bound
            assert bound is not None
            assert best.objective[0].value <= bound, seed
            reasons += ours.statistics.engine_reason
            engines[ours.statistics.engine] += 1
        assert "more than 10 node states" in reasons
    assert engines.keys() >= {DIRECT, TRUNCATED}, engines


@pytest.mark.parametrize("first", range(0, WORLDS, AT_ONCE))
def test_nor_one_that_is_decided_apart(
    first: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some of whose gangs are for the direct model."""
    monkeypatch.setattr(choose, "WHOLE", 0)
    for seed in range(first, first + AT_ONCE):
        drawn = world(seed, nodes=(3, 8), gangs=(8, 16))
        mixed = (*drawn.gangs, *map(watching, range(3)))
        problem = structs.replace(drawn, gangs=mixed).problem
        ours, plain = allocate(problem), allocate_upstream(problem)
        assert ours.statistics.engine == APART
        assert weights_in(problem, ours) >= weights_in(problem, plain), seed
