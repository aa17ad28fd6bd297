"""Children are started, watched and stopped, and their last words kept."""

from __future__ import annotations

import os
import signal
import socket
import sys
import time
from pathlib import Path

from moorings.local.process import ChildProcess, find_free_port


def wait_ended(child: ChildProcess) -> None:
    until_s = time.monotonic() + 10
    while not child.has_ended and time.monotonic() < until_s:
        time.sleep(0.01)
    assert child.has_ended


def test_a_child_that_ends_leaves_its_words(tmp_path: Path) -> None:
    """In one log over all its starts, and with the variables that it is given."""
    child = ChildProcess(tmp_path / "log")
    assert child.read_last_words(3) == ""
    assert not child.has_ended
    program = "import os; print(os.environ['WORD'])"
    for word in ("one", "two"):
        child.start([sys.executable, "-c", program], {**os.environ, "WORD": word})
        wait_ended(child)
    assert child.read_last_words(3) == "one\ntwo"
    assert child.read_last_words(1) == "two"


def test_a_stopped_child_has_not_ended_by_itself(tmp_path: Path) -> None:
    child = ChildProcess(tmp_path / "log")
    child.stop()
    child.start([sys.executable, "-c", "import time; time.sleep(60)"])
    assert child.pid is not None
    assert not child.has_ended
    child.stop()
    assert child.pid is None
    assert not child.has_ended


def test_a_free_port_can_be_listened_on() -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", find_free_port()))


def test_an_end_is_described_by_what_ended_it(tmp_path: Path) -> None:
    child = ChildProcess(tmp_path / "log")
    assert child.describe_end() == "has not ended"
    child.start([sys.executable, "-c", "import time; time.sleep(60)"])
    assert child.describe_end() == "has not ended"
    assert child.pid is not None
    os.kill(child.pid, signal.SIGKILL)
    wait_ended(child)
    assert child.describe_end() == "was killed by SIGKILL"
    child.stop()
