"""Turns: spread evenly, each once an interval."""

from __future__ import annotations

from nodeagent.schedule import is_due, list_due, phase_of


def test_a_whole_interval_brings_everybody_once() -> None:
    """Nobody is left out and nobody comes twice."""
    assert sorted(list_due(7, 5.0, 0.3, 100.0, 105.0)) == list(range(7))


def test_turns_are_spread_over_the_interval() -> None:
    """Equal parts of the interval bring equally many, but for one."""
    sizes = [len(list_due(1523, 5.0, 0.0, t / 4, (t + 1) / 4)) for t in range(20)]
    assert sum(sizes) == 1523
    assert max(sizes) - min(sizes) <= 1


def test_nobody_comes_twice_after_a_long_pause() -> None:
    """What was missed is done once."""
    assert sorted(list_due(3, 1.0, 0.0, 0.0, 1000.0)) == [0, 1, 2]


def test_no_time_and_no_nodes_are_nobodys_turn() -> None:
    """Nor is a clock that stands still or goes back."""
    assert list_due(5, 1.0, 0.0, 3.0, 3.0) == ()
    assert list_due(5, 1.0, 0.0, 3.0, 2.0) == ()
    assert list_due(0, 1.0, 0.0, 0.0, 9.0) == ()


def test_phases_differ_by_name_and_repeat() -> None:
    """An agent keeps its phase over restarts."""
    assert phase_of("a") == phase_of("a") != phase_of("b")
    assert 0.0 <= phase_of("a") < 1.0


def test_what_was_never_done_is_due_and_else_after_its_interval() -> None:
    """To the moment."""
    assert is_due(None, 5.0, 0.0)
    assert not is_due(1.0, 5.0, 5.9)
    assert is_due(1.0, 5.0, 6.0)
