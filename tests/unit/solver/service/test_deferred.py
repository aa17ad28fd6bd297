"""What says that gates opened waits for the state that it speaks of."""

from __future__ import annotations

from contracts.ids import ClusterName, GangUID, Namespace
from contracts.messages import AllocationLost, GatesOpened, ReleaseGang
from solver.service.deferred import DeferredConfirmations

WHO = {"cluster": ClusterName("c"), "namespace": Namespace("n"), "uid": GangUID("u")}


def opened(state: int, attempt: int = 1) -> GatesOpened:
    return GatesOpened(**WHO, attempt=attempt, state=state)  # type: ignore[arg-type]  # ids of one gang


def test_gates_wait_until_the_state_was_read() -> None:
    """A confirmation is applied when STATE says what it speaks of."""
    openings = DeferredConfirmations()
    assert openings.defer(opened(7), 3)
    assert openings.release(6) == []
    assert openings.release(8) == [(opened(7), 3)]
    assert openings.release(9) == []
    assert not openings.defer(opened(9), 4)


def test_the_last_word_on_a_gang_counts() -> None:
    """What came after it, even the same again, replaces what was kept back."""
    openings = DeferredConfirmations()
    assert openings.defer(opened(7), 1)
    assert openings.defer(opened(9, attempt=2), 2)
    assert openings.release(8) == []
    assert not openings.defer(ReleaseGang(**WHO), 1)  # type: ignore[arg-type]  # ids of one gang
    lost = AllocationLost(**WHO, attempt=2, reason="cleared")  # type: ignore[arg-type]  # ids of one gang
    assert not openings.defer(lost, 3)
    assert openings.release(10) == []


def test_a_stream_made_anew_says_nothing_of_the_old_one() -> None:
    """Its numbers begin again, so they are not compared."""
    openings = DeferredConfirmations()
    assert openings.release(100) == []
    assert openings.release(1) == []
    assert openings.defer(opened(100), 1)
    assert openings.release(99) == []
