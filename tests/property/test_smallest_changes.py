"""A change that is offered lets the gang in, and no part of it can be left out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations

import pytest
from msgspec import structs

from contracts.ids import GangKey
from solver.allocate import allocate
from solver.problem.problem import Problem
from solver.timeline.altered import with_ended, with_gang, with_nodes, with_pods
from solver.timeline.asking import answer_all
from solver.timeline.candidates import may_end
from solver.timeline.changes import ChangeSearch, SmallestChange
from solver.timeline.holdings import Holding, read_holding
from solver.timeline.terms import without_term
from tests.draw.victim_worlds import (
    NOW_S,
    VictimWorld,
    draw_counted,
    draw_ruled,
    draw_shared,
)
from tests.lab.soak import sized

SLICES = 2


def find(drawn: VictimWorld, problem: Problem) -> list[SmallestChange]:
    held = hold(drawn)
    legal = [c for c in drawn.candidates if may_end(c.record, drawn.waits)]
    search = ChangeSearch(problem, drawn.waits.key, legal, held, NOW_S)
    found = (answer_all(asking, allocate) for asking in search.searches())
    return [change for changes in found for change in changes]


def hold(drawn: VictimWorld) -> dict[GangKey, Holding]:
    snapshot = drawn.world.snapshot
    return {c.record.key: read_holding(snapshot, c.record) for c in drawn.candidates}


def apply(drawn: VictimWorld, problem: Problem, change: SmallestChange) -> Problem:
    """Change a Problem so, by what the change says alone."""
    (gang,) = problem.gangs
    held, used = hold(drawn), dict[str, int]()
    for holding in held.values():
        for name, amount in holding.amounts.get(change.like, {}).items():
            used[name] = used.get(name, 0) + amount
    problem = with_ended(problem, [held[key] for key in change.end])
    if change.nodes:
        problem = with_nodes(problem, change.like, change.nodes, used)
    if change.without:
        gang = without_term(gang, change.without) or gang
    return with_gang(problem, with_pods(gang, change.pods))


def less_of(change: SmallestChange, asked: dict[str, int]) -> Iterator[SmallestChange]:
    """Leave a part of a change out, each in turn."""
    for ended in combinations(change.end, max(len(change.end) - 1, 0)):
        if change.end:
            yield structs.replace(change, end=ended)
    if change.nodes:
        yield structs.replace(change, nodes=change.nodes - 1)
    for name, count in change.pods.items():
        if count < asked[name]:
            yield structs.replace(change, pods={name: count + 1})


@pytest.mark.parametrize("part", range(SLICES))
@pytest.mark.parametrize("draw", [draw_counted, draw_ruled, draw_shared])
def test_no_part_can_be_left_out(draw: Callable[[int], VictimWorld], part: int) -> None:
    helped = 0
    for seed in range(part, sized(40, 500), SLICES):
        drawn = draw(seed)
        asker = drawn.world.asker(drawn.waits)
        problem = asker.question(drawn.world.snapshot, drawn.waits)
        if not allocate(problem).gangs[0].reasons:
            continue
        asked = {member.name: member.count for member in problem.gangs[0].members}
        for change in find(drawn, problem):
            answer = allocate(apply(drawn, problem, change)).gangs[0]
            assert change.helps == (not answer.reasons), (seed, change)
            for less in less_of(change, asked) if change.helps else ():
                without = allocate(apply(drawn, problem, less)).gangs[0]
                assert without.reasons, (seed, change, less)
            helped += change.helps
    assert helped
