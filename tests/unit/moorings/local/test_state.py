"""A stack is found by its folder while it runs, and no longer."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from moorings.errors import LocalStackError
from moorings.local.state import (
    RunningStack,
    claim_folder,
    find_stack,
    find_state_home,
    write_state,
)

SERVER = "nats://127.0.0.1:9"
STACK = RunningStack(SERVER, Path("/users"), "http://127.0.0.1:8")
HOLDER = """
import os, sys
from pathlib import Path
from moorings.local.state import RunningStack, claim_folder, write_state
with claim_folder(Path(sys.argv[1])):
    write_state(Path(sys.argv[1]), RunningStack(sys.argv[2], Path("/users"), "http://127.0.0.1:8"))
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_stack_is_found_while_it_holds_its_folder(tmp_path: Path) -> None:
    folder = tmp_path / "a"
    with pytest.raises(LocalStackError, match="none runs with its state in"):
        find_stack(folder)
    with claim_folder(folder):
        with pytest.raises(LocalStackError, match="is starting"):
            find_stack(folder)
        write_state(folder, STACK)
        assert find_stack(folder) == STACK
    with pytest.raises(LocalStackError, match=f"moorings up --state-dir {folder}"):
        find_stack(folder)


def test_two_stacks_do_not_share_a_folder(tmp_path: Path) -> None:
    with claim_folder(tmp_path):
        with (
            pytest.raises(LocalStackError, match="another one runs with its state in"),
            claim_folder(tmp_path),
        ):
            pass
        with claim_folder(tmp_path / "other"):
            pass


def test_what_a_killed_stack_left_behind_is_no_stack(tmp_path: Path) -> None:
    """Whoever has its process id by now."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path), SERVER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": "."},
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        assert find_stack(tmp_path) == STACK
        holder.kill()
    with pytest.raises(LocalStackError, match=f"its state in {tmp_path} has ended"):
        find_stack(tmp_path)
    with claim_folder(tmp_path):
        pass


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    with pytest.raises(LocalStackError, match="file"), claim_folder(file):
        pass


def test_the_usual_folder_is_that_of_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "/home/me/state")
    assert find_state_home() == Path("/home/me/state/moorings")
