"""The folder of a stack: by it other commands find the stack, and no two share one.

While a stack runs it holds a lock on the folder, which the kernel frees with the
process: so what a stack left behind that was killed is never taken for one that runs.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct, structs

from moorings.errors import LocalStackError

_STATE_FILE = "stack.json"
_LOCK_FILE = "stack.lock"


def find_state_home() -> Path:
    """Return the default folder for the state of stacks."""
    base = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(base) / "moorings"


class RunningStack(Struct, frozen=True):
    """Where the bus of a stack is, and what lets its owner in."""

    server: str
    users: Path
    """The folder of its users."""
    monitor: str
    """The URL where its nats-server says how it is."""


def find_stack(folder: Path) -> RunningStack:
    """Find the stack that runs with its state in a folder.

    Raises:
        LocalStackError: none runs there, or it has not come up yet.
    """
    stack = _read_state(folder)
    is_usual = folder == find_state_home()
    again = f"`moorings up{'' if is_usual else f' --state-dir {folder}'}` starts one"
    if not _is_locked(folder):
        reason = f"the one with its state in {folder} has ended"
        if stack is None:
            reason = f"none runs with its state in {folder}"
        raise LocalStackError("stack", f"{reason}; {again}")
    if stack is None:
        raise LocalStackError(
            "stack", f"the one with its state in {folder} is starting"
        )
    return stack


@contextmanager
def claim_folder(folder: Path) -> Iterator[None]:
    """Hold a folder for one stack while the block runs.

    Raises:
        LocalStackError: another stack has its state there, or it cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = (folder / _LOCK_FILE).open("w")
    except OSError as error:
        raise LocalStackError("stack", f"{folder}: {error.strerror}") from error
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            reason = f"another one runs with its state in {folder}; give this one"
            raise LocalStackError("stack", f"{reason} another --state-dir") from error
        try:
            yield
        finally:
            (folder / _STATE_FILE).unlink(missing_ok=True)


def write_state(folder: Path, stack: RunningStack) -> None:
    """Let other commands find a stack that holds the folder."""
    state = {name: str(value) for name, value in structs.asdict(stack).items()}
    (folder / _STATE_FILE).write_text(json.dumps(state))


def _read_state(folder: Path) -> RunningStack | None:
    """Return what is written down of a stack; None: nothing is."""
    try:
        state = json.loads((folder / _STATE_FILE).read_text())
        return RunningStack(
            server=str(state["server"]),
            users=Path(state["users"]),
            monitor=str(state["monitor"]),
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _is_locked(folder: Path) -> bool:
    """True if a running stack holds the folder's lock."""
    try:
        with (folder / _LOCK_FILE).open() as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False
