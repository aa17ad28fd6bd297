"""Searches in copies of the process: what they tell, and that they end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

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
if "silent" in sys.argv: # as where this process ends just before it is asked
    forks.die_with_parent = lambda: None
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
    """Whether it still runs; where nobody waits for orphans it ends as a zombie."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="ascii")
    except FileNotFoundError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


def wait_until(is_so: Callable[[], bool]) -> None:
    """Wait for it, at most 30 s."""
    ends_s = time.monotonic() + 30
    while not is_so() and time.monotonic() < ends_s:
        time.sleep(0.01)


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


def test_a_lost_copy_is_made_good_here(caplog: pytest.LogCaptureFixture) -> None:
    """It dies after it told two things: the rest is found out in this process."""

    def search() -> Iterator[tuple[int, bool]]:
        for number in range(4):
            if number == 2 and os.getpid() != HERE:
                os.kill(os.getpid(), signal.SIGKILL)
            yield number, os.getpid() == HERE

    with run_in_forks([telling(), search]) as running:
        assert list(running[1]) == [(0, False), (1, False), (2, True), (3, True)]
    assert ["was lost" in line for line in caplog.messages] == [True]


def test_a_copy_whose_parent_ended_before_it_was_bound_to_it_does_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(os, "getppid", lambda: 1)
    with run_in_forks([telling(), lambda: iter([os.getpid()])]) as running:
        assert list(running[1]) == [HERE]


def test_an_error_in_a_copy_is_raised_here(capfd: pytest.CaptureFixture[str]) -> None:
    def search() -> Iterator[int]:
        yield 1
        raise ValueError("no second round")

    with run_in_forks([telling(), search]) as running:
        assert next(running[1]) == 1
        with pytest.raises(ValueError, match="no second round"):
            next(running[1])
    assert "no second round" in capfd.readouterr().err, "what the copy said"


@pytest.mark.parametrize("call", ["fork", "pipe"])
def test_without_room_for_a_copy_its_search_runs_here(
    call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse() -> int:
        raise BlockingIOError("no more processes, or files")

    monkeypatch.setattr(os, call, refuse)
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


def test_where_children_are_not_waited_for_nothing_fails() -> None:
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        with run_in_forks([telling(1), telling(2)]) as running:
            assert [list(told) for told in running] == [[1], [2]]
    finally:
        signal.signal(signal.SIGCHLD, before)


@pytest.mark.skipif(sys.platform != "linux", reason="pipes of others stay small")
def test_a_copy_goes_on_while_nobody_reads(tmp_path: Path) -> None:
    """Else each round would take as long as in the slower of the searches."""
    done = tmp_path / "done"

    def search() -> Iterator[bytes]:
        for _ in range(8):
            yield b"x" * 100_000
        done.touch()

    with run_in_forks([telling(), search]):
        wait_until(done.exists)
    assert done.exists()


@pytest.mark.skipif(sys.platform != "linux", reason="no other kernel tells a child")
@pytest.mark.parametrize("how", ["told", "silent"])
def test_copies_end_with_this_process_however_it_ends(how: str) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", ENDLESS, how],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdout is not None
        pid = int(process.stdout.readline())
        assert is_alive(pid)
        process.kill()
    wait_until(lambda: not is_alive(pid))
    assert not is_alive(pid)
