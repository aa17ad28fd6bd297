"""Pauses are free at first, then grow, and are forgotten in the end."""

from __future__ import annotations

from publisher.pauses import Pause, Pauses

PAUSE = Pause(free=2, first_s=1.0, most_s=5.0, forgotten_s=60.0)


def test_pauses_double_up_to_the_longest_for_each_key_alone() -> None:
    pauses: Pauses[str] = Pauses(PAUSE)
    assert [pauses.next_s("a", 0.0) for _ in range(7)] == [0, 0, 1, 2, 4, 5, 5]
    assert pauses.next_s("b", 0.0) == 0


def test_counting_begins_again_after_quiet_or_on_request() -> None:
    pauses: Pauses[str] = Pauses(PAUSE)
    waits = [pauses.next_s("a", at_s) for at_s in (0.0, 50.0, 100.0, 150.0, 211.0)]
    assert waits == [0, 0, 1, 2, 0]
    for _ in range(3):
        pauses.next_s("b", 0.0)
    pauses.forget("b")
    assert pauses.next_s("b", 0.0) == 0
