"""A child of the stack that ends is started again, and what cannot stay up is told."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from moorings.errors import BadInputError, LocalStackError
from moorings.local.process import ChildProcess
from moorings.local.stack import TendedChild, check_manifests


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


def test_a_start_again_says_what_was_logged_last(tmp_path: Path) -> None:
    """Since its last start: what was wrong before is not what is wrong now."""
    process = ChildProcess(tmp_path / "log")
    process.log.write_text('{"level": "error", "reason": "long ago"}\n')
    logged = '{"level": "error", "reason": "afile: File exists"}'
    lines = [logged, '{"level": "error", "event": "service.failed"}', "no JSON"]
    said = {"text": "\n".join(lines)}

    def start() -> None:
        process.start([sys.executable, "-c", f"print({said['text']!r}); exit(1)"])

    start()
    child = TendedChild("publisher", process, start)
    wait_ended(process)
    child.tend(100.0)
    said["text"] = ""
    line = child.tend(101.0)
    told = "publisher ended with exit code 1 (afile: File exists) and was started again"
    assert line == told
    wait_ended(process)
    child.tend(102.0)
    again = "publisher ended with exit code 1 and was started again, 2 times in five"
    assert child.tend(110.0).startswith(again)
    process.stop()


def test_a_folder_that_cannot_hold_manifests_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "afile"
    file.touch()
    with pytest.raises(BadInputError, match=r"up: --folder: .*afile: File exists"):
        check_manifests(file)
    made = tmp_path / "made" / "below"
    check_manifests(made)
    assert made.is_dir()
