"""The cluster by time."""

from __future__ import annotations

from solver.timeline.futures import without_gangs
from solver.timeline.timetable import Timetable
from tests.builders.timeline import World

NOW = 1000


def test_states_are_those_without_who_has_ended_however_they_are_asked_for() -> None:
    world = World(nodes=4)
    runs = [
        world.start(f"r{hours}", at_s=NOW, duration=f"{hours}h") for hours in (1, 2, 3)
    ]
    world.start("endless", at_s=NOW)
    table = Timetable(world.snapshot, NOW)

    assert table.at(NOW) is world.snapshot
    for ended in (3, 1, 2, 3):
        expected = without_gangs(world.snapshot, runs[:ended]).inventory.pages
        state = table.at(NOW + ended * 3600)
        assert state is table.after(ended)
        assert [p.sha for p in state.inventory.pages] == [p.sha for p in expected]
    assert table.count_ended(NOW + 3 * 3600) == 3
    assert len(table.runs) == 4
