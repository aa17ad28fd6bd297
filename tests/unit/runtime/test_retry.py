"""Pauses of what is tried for ever grow, and end with the first success."""

from __future__ import annotations

from runtime.retry import Outage


class BusyError(Exception):
    """Says itself when to come back."""

    retry_after_s = 42.0


def test_pauses_double_up_to_a_limit() -> None:
    """Each is spread by half, so that not everybody comes at once."""
    outage = Outage("test")
    pauses = [outage.note_failure(OSError()) for _ in range(30)]
    assert 0.1 <= pauses[0] <= 0.15
    assert 0.2 <= pauses[1] <= 0.3
    assert all(5.0 <= pause <= 7.5 for pause in pauses[-5:])


def test_who_says_when_to_come_back_is_obeyed() -> None:
    """Whatever pause would be next."""
    assert 42.0 <= Outage("test").note_failure(BusyError()) <= 63.0


def test_the_next_outage_begins_with_a_short_pause() -> None:
    """A success forgets all failures before it."""
    outage = Outage("test")
    for _ in range(10):
        outage.note_failure(OSError())
    outage.note_success()
    assert outage.note_failure(OSError()) <= 0.15
