"""The worlds of gangs with rules are what their families say, on a small scale."""

from __future__ import annotations

import pytest

from benchmarks.worlds import gang_rules
from benchmarks.worlds.gang_rules import World
from solver.allocate import allocate
from solver.snapshot.snapshot import apply
from tests.builders.problems import problem_of


@pytest.mark.parametrize(
    ("world", "devices"),
    [
        (gang_rules.groups(32), 256),
        (gang_rules.idle(16), 64),
        (gang_rules.filled(32, 1), 240),
        (gang_rules.rails(120, 1), 912),
        (gang_rules.aligned(4), 8),
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
