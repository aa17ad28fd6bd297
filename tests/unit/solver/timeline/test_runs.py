"""Gangs that have a place, and until when at most."""

from __future__ import annotations

from solver.timeline.runs import list_runs
from tests.builders.timeline import World

NOW = 1000


def test_runs_end_in_order_and_endless_ones_last_the_oldest_first() -> None:
    world = World(nodes=5)
    world.start("endless", at_s=NOW - 1)
    world.start("older", at_s=NOW - 2)
    world.start("later", at_s=NOW, duration="2h")
    world.start("sooner", at_s=NOW, duration="1h")
    world.start("late", at_s=NOW - 100, duration="1m")
    world.submit("waits", duration="1h")

    runs = list_runs(world.snapshot, NOW)
    assert [(run.record.name, run.ends_s, run.overruns) for run in runs] == [
        ("late", NOW, True),
        ("sooner", NOW + 3600, False),
        ("later", NOW + 7200, False),
        ("older", None, False),
        ("endless", None, False),
    ]
    assert world["waits"].duration_s == 3600
    assert world["older"].duration_s is None
