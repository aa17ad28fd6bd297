"""What dies now and then is started again for ever, what does not stay up is not."""

from __future__ import annotations

from itertools import pairwise

from moorings.local.restarts import MOST_ENDS, WINDOW_S, Restarts


def test_a_child_that_does_not_stay_up_is_given_up_after_growing_pauses() -> None:
    restarts, now_s = Restarts(), 0.0
    pauses = []
    while (pause_s := restarts.note_end(now_s)) is not None:
        pauses.append(pause_s)
        now_s += pause_s + 0.1
    assert len(pauses) == MOST_ENDS
    assert all(later == 2 * earlier for earlier, later in pairwise(pauses))
    assert now_s < 60


def test_a_child_that_ends_now_and_then_is_started_for_ever() -> None:
    """The count is of the window, not of its life; so are the pauses."""
    restarts = Restarts()
    pauses = [restarts.note_end(end * (WINDOW_S + 1)) for end in range(100)]
    assert set(pauses) == {pauses[0]}
    assert pauses[0] is not None
