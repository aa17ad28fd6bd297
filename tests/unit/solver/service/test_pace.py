"""Who says something new all the time is listened to once a second."""

from __future__ import annotations

from collections import Counter

from solver.service.pace import BURST, EVERY_S, Pace

A, B = "inv.v1.local.a", "inv.v1.local.b"


def hears(pace: Pace, subject: str, now_s: float, count: int = 1) -> int:
    """Count the messages of several at once that are read."""
    return sum(not pace.passes_over(subject, now_s) for _ in range(count))


def test_a_burst_is_read_whole_and_then_one_each_second() -> None:
    pace = Pace()
    assert hears(pace, A, 100.0, 3 * BURST) == BURST
    assert [hears(pace, A, 100.0 + second, 9) for second in (0.5, 1, 2, 2.5)] == [
        0,
        1,
        1,
        0,
    ]
    assert hears(pace, A, 100.0 + 10 * BURST, 3 * BURST) == BURST


def test_each_subject_has_its_own_pace() -> None:
    pace = Pace()
    hears(pace, A, 100.0, 2 * BURST)
    assert hears(pace, B, 100.0) == 1


def test_the_last_message_is_read_once_its_turn_has_come() -> None:
    """Unless a later one was read meanwhile: then nothing is missing."""
    pace = Pace()
    hears(pace, A, 100.0, BURST + 3)
    assert pace.take_due(100.0) == []
    assert pace.take_due(100.0 + EVERY_S) == [A]
    assert pace.take_due(100.0 + 9 * EVERY_S) == []
    hears(pace, B, 100.0, BURST + 3)
    assert hears(pace, B, 100.0 + EVERY_S) == 1
    assert pace.take_due(100.0 + 9 * EVERY_S) == []


def test_what_could_not_be_read_is_due_again() -> None:
    pace = Pace()
    hears(pace, A, 100.0, BURST + 1)
    assert pace.take_due(101.0) == [A]
    pace.put_back(A)
    assert pace.take_due(102.0) == [A]


def test_what_was_passed_over_is_counted_once() -> None:
    pace = Pace()
    hears(pace, A, 100.0, BURST + 3)
    assert pace.take_passed() == {A: 3}
    assert pace.take_passed() == Counter()


def test_a_subject_that_is_quiet_is_forgotten() -> None:
    """A start hears of every node: that costs no memory for ever."""
    pace = Pace()
    for number in range(1000):
        hears(pace, f"inv.v1.local.{number}", 100.0)
    pace.take_due(100.0 + EVERY_S)
    assert not pace._full_s  # no other way to see memory
