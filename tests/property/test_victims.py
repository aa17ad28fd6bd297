"""Victims: never a set that costs more than it must, nor one that is not enough."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations

import pytest

from solver.allocate import allocate
from solver.timeline.asking import answer_all
from solver.timeline.candidates import Candidate, cost_of, may_end
from solver.timeline.futures import without_gangs
from solver.timeline.victims import Victims, find_victims
from tests.draw.victim_worlds import (
    NOW_S,
    VictimWorld,
    draw_counted,
    draw_ruled,
    draw_shared,
)
from tests.lab.soak import sized
from tests.oracles.brute_victims import find_cheapest

SLICES = 4


def find(drawn: VictimWorld, candidates: Sequence[Candidate] | None = None) -> Victims:
    asker = drawn.world.asker(drawn.waits)
    if candidates is None:
        candidates = drawn.candidates
    return answer_all(
        find_victims(drawn.world.snapshot, drawn.waits, asker, candidates, NOW_S),
        allocate,
    )


def is_enough(drawn: VictimWorld, ended: tuple[Candidate, ...]) -> bool:
    """True if by the engines the gang has a place once some have ended."""
    later = without_gangs(drawn.world.snapshot, [each.record for each in ended])
    asker = drawn.world.asker(drawn.waits)
    return bool(answer_all(asker.find(later, drawn.waits), allocate))


@pytest.mark.parametrize("part", range(SLICES))
def test_no_subset_of_all_gangs_is_cheaper(part: int) -> None:
    seen = {"none": 0, "some": 0, "several": 0}
    for seed in range(part, sized(160, 8_000), SLICES):
        drawn = draw_counted(seed)
        found = find(drawn)
        best = find_cheapest(drawn.fleet, drawn.runs, drawn.wants, NOW_S)
        assert found.proven, seed
        assert bool(found) == (best is not None), seed
        victims = {each.record.name for each in found.victims}
        assert victims == (best or set()), seed
        assert found.cost == found.bound == cost_of(found.victims, NOW_S) or not found
        seen["none" if best is None else "several" if len(best) > 1 else "some"] += 1
    assert all(seen.values()), seen


def test_the_order_of_candidates_does_not_matter() -> None:
    for seed in range(sized(20, 500)):
        drawn = draw_counted(seed)
        assert find(drawn, drawn.candidates[::-1]) == find(drawn)


@pytest.mark.parametrize("part", range(SLICES))
@pytest.mark.parametrize("draw", [draw_ruled, draw_shared])
def test_what_no_counting_sees_is_learned(
    draw: Callable[[int], VictimWorld], part: int
) -> None:
    proven = tried = 0
    for seed in range(part, sized(40, 1_000), SLICES):
        drawn = draw(seed)
        found = find(drawn)
        legal = [c for c in drawn.candidates if may_end(c.record, drawn.waits)]
        enough = (
            (cost_of(chosen, NOW_S), chosen)
            for size in range(len(legal) + 1)
            for chosen in combinations(legal, size)
            if is_enough(drawn, chosen)
        )
        best = min(enough, default=None, key=lambda pair: pair[0])
        proven += found.proven
        tried += 1
        if found.proven:
            assert bool(found) == (best is not None), seed
        if best is not None:
            assert found.bound <= best[0] <= found.cost or not found, seed
            assert found.cost == best[0] or not found.proven, seed
            assert is_enough(drawn, found.victims) or not found, seed
    assert proven >= 0.99 * tried
