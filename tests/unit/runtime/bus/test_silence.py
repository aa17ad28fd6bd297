"""Who was not heard of for long, while we could hear."""

from __future__ import annotations

from runtime.bus.silence import Silence


def test_who_is_silent_for_too_long_is_named_once() -> None:
    silence = Silence(10)
    assert silence.take_ended(1, 0) == ()
    silence.note("a", 1)
    silence.note("b", 2)
    silence.note("a", 8)

    assert silence.take_ended(1, 11.5) == ()
    assert silence.take_ended(1, 12) == ("b",)
    assert silence.take_ended(1, 100) == ("a",)
    assert silence.take_ended(1, 200) == ()


def test_nobody_is_silent_while_nobody_can_be_heard() -> None:
    """Without a connection, and for the full time after each new one."""
    silence = Silence(10)
    silence.take_ended(1, 0)
    silence.note("a", 1)

    assert silence.take_ended(0, 1000) == ()
    assert silence.take_ended(2, 1001) == ()
    assert silence.take_ended(2, 1010) == ()
    assert silence.take_ended(2, 1011) == ("a",)
