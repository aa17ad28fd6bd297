"""Each key once, the earliest first."""

from __future__ import annotations

from publisher.cluster.delay_queue import DelayQueue


def taken(agenda: DelayQueue[str]) -> list[str]:
    found = []
    while agenda.next_s() is not None:
        found.append(agenda.take())
    return found


def test_the_earliest_comes_first_and_each_key_once() -> None:
    """The last time that was set for a key counts, earlier or later."""
    agenda: DelayQueue[str] = DelayQueue()
    for key, due_s in (("a", 3.0), ("b", 2.0), ("c", 1.0), ("c", 4.0), ("a", 1.0)):
        agenda.put(key, due_s)
    assert agenda.next_s() == 1.0
    assert taken(agenda) == ["a", "b", "c"]


def test_what_is_wanted_by_then_may_come_sooner() -> None:
    """The earliest of several times for one key counts."""
    agenda: DelayQueue[str] = DelayQueue()
    agenda.put_by("a", 5.0)
    agenda.put_by("b", 4.0)
    agenda.put_by("a", 9.0)
    agenda.put_by("b", 6.0)
    agenda.put_by("a", 3.0)
    assert taken(agenda) == ["a", "b"]


def test_nothing_is_left_of_what_was_cleared() -> None:
    """An emptied queue has no next time."""
    agenda: DelayQueue[str] = DelayQueue()
    agenda.put("a", 1.0)
    agenda.clear()
    assert agenda.next_s() is None
