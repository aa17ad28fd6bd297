"""A child of the stack that ends is started again, and what cannot stay up is told."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from moorings.errors import LocalStackError
from moorings.local.process import ChildProcess
from moorings.local.stack import TendedChild


def wait_ended(process: ChildProcess) -> None:
    until_s = time.monotonic() + 30
    while not process.has_ended and time.monotonic() < until_s:
        time.sleep(0.01)
    assert process.has_ended


def test_an_end_is_noticed_told_and_mended(tmp_path: Path) -> None:
    """After a pause, and once; a second end is another."""
    process = ChildProcess(tmp_path / "log")

    def start() -> None:
        process.start([sys.executable, "-c", "print('why'); raise SystemExit(3)"])

    start()
    child = TendedChild("solver", process, start)
    wait_ended(process)
    assert child.tend(100.0) == ""
    assert child.tend(100.1) == ""
    line = child.tend(101.0)
    assert line == "solver ended with exit code 3 and was started again"
    wait_ended(process)
    with pytest.raises(
        LocalStackError, match="exit code 3, as it did before"
    ) as raised:
        child.tend(102.0, most_ends=1)
    assert str(raised.value).endswith("\nwhy")
    process.stop()
