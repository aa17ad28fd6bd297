"""Searches end where somebody says so, and else by themselves."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from solver.stopping import calling, is_stopped, never_stopped, stopped_by
from tests.builders.stopping import StopsAfter


class CallsAtOnce(StopsAfter):
    """Stops what runs as soon as it begins."""

    @contextmanager
    def calling(self, stop: Callable[[], None]) -> Iterator[None]:
        """Call it."""
        stop()
        yield


def test_nobody_stops_what_nobody_limits() -> None:
    """So the service's answers, and a replay's, depend on the Problem alone."""
    assert not is_stopped()
    called: list[bool] = []
    with calling(lambda: called.append(True)):
        pass
    assert not called


def test_it_is_asked_until_it_says_so() -> None:
    stopper = StopsAfter(2)
    with stopped_by(stopper):
        assert [is_stopped() for _ in range(4)] == [False, False, True, True]
    assert not is_stopped()
    assert stopper.asked == 4


def test_a_short_search_may_end_by_itself() -> None:
    with stopped_by(StopsAfter(0)):
        with never_stopped():
            assert not is_stopped()
        assert is_stopped()


def test_what_runs_can_be_called() -> None:
    called: list[bool] = []
    with stopped_by(CallsAtOnce(0)), calling(lambda: called.append(True)):
        assert called == [True]
