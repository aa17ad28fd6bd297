"""A search ends when its time is over or by Ctrl-C, and nothing else is changed."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from moorings.cli.search_limit import INTERRUPTED, SearchLimit
from solver.stopping import calling, is_stopped


def test_without_a_limit_nothing_ends() -> None:
    with SearchLimit():
        assert not is_stopped()
    assert not is_stopped()


def test_the_time_counts_from_the_first_search_on() -> None:
    """A search that follows has what is left of it: nothing."""
    limit = SearchLimit(1e-9)
    for _ in range(2):
        with limit:
            assert is_stopped()
    with SearchLimit(1e9):
        assert not is_stopped()


def test_what_runs_is_called_when_the_time_is_over() -> None:
    was_called = threading.Event()
    with SearchLimit(0.01), calling(was_called.set):
        was_called.wait()
    assert was_called.is_set()


def test_ctrl_c_ends_the_search_and_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    """It is told while a model is being solved, when no handler runs."""
    was_called = threading.Event()
    with SearchLimit(), calling(was_called.set):
        os.kill(os.getpid(), signal.SIGINT)
        was_called.wait()
        assert is_stopped()
    assert INTERRUPTED in " ".join(capsys.readouterr().err.split())
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_ctrl_c_is_what_it_was_where_it_ends_no_search() -> None:
    with pytest.raises(KeyboardInterrupt), SearchLimit(1e9, interrupts=False):
        signal.raise_signal(signal.SIGINT)
    assert not is_stopped()


def test_who_hears_of_ctrl_c_already_goes_on_to() -> None:
    heard: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: heard.append(number))
    try:
        with SearchLimit():
            signal.raise_signal(signal.SIGINT)
            assert not is_stopped()
    finally:
        signal.signal(signal.SIGINT, before)
    assert heard == [signal.SIGINT]


def test_in_other_threads_there_is_no_ctrl_c() -> None:
    """Only the first thread of a process may listen; the time is over anywhere."""
    found: list[bool] = []

    def search() -> None:
        with SearchLimit(1e-9):
            found.append(is_stopped())

    thread = threading.Thread(target=search)
    thread.start()
    thread.join()
    assert found == [True]
