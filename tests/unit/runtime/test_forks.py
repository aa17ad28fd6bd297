"""Searches in copies of the process: what they tell, and that they end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from runtime import forks
from runtime.forks import Search, run_in_forks

HERE = os.getpid()
ENDLESS = """
import itertools, os, sys, time
from runtime import forks

def search():
    for _ in itertools.count():
        yield os.getpid()
        time.sleep(0.01)

forks.count_processors = lambda: 2
with forks.run_in_forks([search, search]) as running:
    print(next(running[1]), flush=True)
    time.sleep(60)
"""


@pytest.fixture(autouse=True)
def two_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have copies made also where there is one processor."""
    monkeypatch.setattr(forks, "count_processors", lambda: 2)


def telling(*told: object) -> Search:
    """Make a search that tells something."""
    return lambda: iter(told)


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_what_is_told_arrives_in_order_and_whole() -> None:
    large = [b"x" * 100_000, {"a": (1, 2.5)}, None]
    with run_in_forks([telling(1, 2), telling(*large), telling()]) as running:
        assert [list(told) for told in running] == [[1, 2], large, []]


def test_the_first_search_runs_here_and_the_others_in_copies() -> None:
    def search() -> Iterator[int]:
        yield os.getpid()

    with run_in_forks([search] * 3) as running:
        pids = [next(told) for told in running]
    assert pids[0] == HERE
    assert len(set(pids)) == 3


def test_on_one_processor_they_take_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forks, "count_processors", lambda: 1)
    seen: list[str] = []

    def search(name: str) -> Search:
        def tell() -> Iterator[int]:
            for number in range(2):
                seen.append(f"{name}{number}")
                yield number

        return tell

    with run_in_forks([search("a"), search("b")]) as running:
        assert list(zip(*running, strict=True)) == [(0, 0), (1, 1)]
    assert seen == ["a0", "b0", "a1", "b1"]


def test_a_lost_copy_is_made_good_here() -> None:
    """It dies after it told two things: the rest is found out in this process."""

    def search() -> Iterator[tuple[int, bool]]:
        for number in range(4):
            if number == 2 and os.getpid() != HERE:
                os.kill(os.getpid(), signal.SIGKILL)
            yield number, os.getpid() == HERE

    with run_in_forks([telling(), search]) as running:
        assert list(running[1]) == [(0, False), (1, False), (2, True), (3, True)]


def test_an_error_in_a_copy_is_raised_here() -> None:
    def search() -> Iterator[int]:
        yield 1
        raise ValueError("no second round")

    with run_in_forks([telling(), search]) as running:
        assert next(running[1]) == 1
        with pytest.raises(ValueError, match="no second round"):
            next(running[1])


def test_without_room_for_a_copy_its_search_runs_here(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse() -> int:
        raise BlockingIOError("no more processes")

    monkeypatch.setattr(os, "fork", refuse)
    with run_in_forks([telling(1), telling(2)]) as running:
        assert [list(told) for told in running] == [[1], [2]]


def test_copies_end_with_the_block() -> None:
    def search() -> Iterator[int]:
        while True:
            yield os.getpid()

    with run_in_forks([telling(), search]) as running:
        pid = next(running[1])
        assert is_alive(pid)
    assert not is_alive(pid)


@pytest.mark.skipif(sys.platform != "linux", reason="no other kernel tells a child")
def test_copies_end_with_this_process_however_it_ends() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", ENDLESS], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        pid = int(process.stdout.readline())
        assert is_alive(pid)
        process.kill()
    ends_s = time.monotonic() + 30
    while is_alive(pid) and time.monotonic() < ends_s:
        time.sleep(0.01)
    assert not is_alive(pid)
