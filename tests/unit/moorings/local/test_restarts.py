"""What ended is started again for ever, ever later while it does not stay up."""

from __future__ import annotations

from moorings.local.restarts import WINDOW_S, Restarts


def test_pauses_grow_while_a_child_does_not_stay_up() -> None:
    restarts, now_s = Restarts(), 0.0
    pauses = []
    for _ in range(200):
        pauses.append(restarts.note_end(now_s))
        now_s += pauses[-1] + 0.1
    assert pauses[:4] == [0.5, 1.0, 2.0, 4.0]
    assert max(pauses) == pauses[-1] == 30.0


def test_a_child_that_ends_now_and_then_is_started_soon() -> None:
    """The count is of the window, not of its life; so are the pauses."""
    restarts = Restarts()
    pauses = [restarts.note_end(end * (WINDOW_S + 1)) for end in range(100)]
    assert set(pauses) == {pauses[0]}
    assert restarts.ends == 1
