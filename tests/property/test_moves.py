"""Moves that free nodes: every step can be made, and no fewer are enough."""

from __future__ import annotations

import pytest

from solver.allocate import allocate
from solver.timeline.asking import answer_all
from solver.timeline.defragment import (
    FoundMoves,
    as_waiting,
    find_freeable,
    find_moves,
    list_movable,
    move,
)
from tests.draw.moves_worlds import MovesWorld, check, draw_fragmented, read_places
from tests.lab.soak import sized
from tests.oracles.brute_moves import SizedGang, count_fewest

SLICES = 4


def find(drawn: MovesWorld, free_nodes: int = 0, waits: str = "") -> FoundMoves:
    snapshot = drawn.world.snapshot
    records = list(map(as_waiting, list_movable(snapshot)))
    wants = drawn.world[waits] if waits else None
    if wants is not None:
        records.append(wants)
    asker = drawn.world.asker(*records)
    asking = find_moves(snapshot, asker, free_nodes=free_nodes, wants=wants)
    return answer_all(asking, allocate)


@pytest.mark.parametrize("part", range(SLICES))
def test_no_fewer_moves_free_as_many_nodes(part: int) -> None:
    seen, proven, tried = {0: 0, 1: 0, 2: 0, None: 0}, 0, 0
    for seed in range(part, sized(120, 8_000), SLICES):
        drawn = draw_fragmented(seed)
        for free_nodes in (1, 2):
            found = find(drawn, free_nodes)
            best = count_fewest(drawn.fleet, drawn.gangs, free_nodes)
            tried += 1
            proven += found.proven
            seen[best] = seen.get(best, 0) + 1
            check_answer(drawn, found, best, seed)
            assert len(found.nodes) == free_nodes or not found.is_found, seed
            check_state(drawn, found)
    assert proven >= 0.95 * tried
    assert all(seen.values()), seen


@pytest.mark.parametrize("part", range(SLICES))
def test_no_fewer_moves_let_a_gang_in(part: int) -> None:
    proven = tried = 0
    for seed in range(part, sized(80, 4_000), SLICES):
        drawn = draw_fragmented(seed)
        pods, gpus = 1 + seed % 3, 1 + seed // 3 % drawn.gpus
        drawn.world.submit("waits", pods, gpus)
        found = find(drawn, waits="waits")
        wants = SizedGang((gpus,) * pods)
        best = count_fewest(drawn.fleet, drawn.gangs, 0, wants)
        tried += 1
        proven += found.proven
        check_answer(drawn, found, best, seed)
        if found.is_found:
            check_beside(drawn, found, wants)
    assert proven >= 0.95 * tried


def check_answer(
    drawn: MovesWorld, found: FoundMoves, best: int | None, seed: int
) -> None:
    assert check(drawn, found) == [], seed
    if best is None:
        assert not found.is_found, seed
        return
    assert found.least <= best, seed
    if found.is_found:
        assert len(found.steps) >= best, seed
        assert not found.proven or len(found.steps) == best, seed
    else:
        assert not found.proven, seed


def check_state(drawn: MovesWorld, found: FoundMoves) -> None:
    """Carry the moves out by the messages that would tell of them."""
    state = drawn.world.snapshot
    for step in found.steps:
        state = move(state, step)
    freeable = find_freeable(state, list_movable(state))
    assert all(not freeable[node] for node in found.nodes)


def check_beside(drawn: MovesWorld, found: FoundMoves, wants: SizedGang) -> None:
    """The gang has devices that nobody has once all have moved."""
    state = drawn.world.snapshot
    for step in found.steps:
        state = move(state, step)
    got = read_places(found.members)
    assert sorted(len(devices) for _, devices in got) == sorted(wants.sizes)
    own = [device for _, devices in got for device in devices]
    taken = {
        device
        for record in state.placed.values()
        if record.placed is not None
        for _, devices in read_places(record.placed.members)
        for device in devices
    }
    assert len(set(own) - taken) == len(own)
    assert all(f"/{node}/" in device for node, of in got for device in of)
