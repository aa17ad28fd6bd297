"""The worlds of gangs with rules are what their families say, on a small scale."""

from __future__ import annotations

import pytest

from benchmarks.worlds import topology
from benchmarks.worlds.topology import World
from solver.allocate import allocate
from solver.snapshot.snapshot import apply
from tests.builders.problems import problem_of


@pytest.mark.parametrize(
    ("world", "devices"),
    [
        (topology.groups(32), 256),
        (topology.idle(16), 64),
        (topology.filled(32, 1), 240),
        (topology.rails(120, 1), 912),
        (topology.aligned(4), 8),
    ],
    ids=["groups", "idle", "filled", "rails", "aligned"],
)
def test_what_fits_by_construction_is_found(world: World, devices: int) -> None:
    """All of it, by an answer that the judge agrees with."""
    snapshot = world.snapshot
    for age, message in enumerate(world.gangs, start=1):
        snapshot = apply(snapshot, message, sequence=age)
    decision = allocate(problem_of(snapshot))
    assert all(gang.members for gang in decision.gangs)
    assert decision.objective[0].value == devices
    assert world.first_fit <= devices
