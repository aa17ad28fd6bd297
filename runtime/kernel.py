"""Requests of this process to the Linux kernel; elsewhere they do nothing.

Calls of prctl(2), and files of proc(5).
"""

from __future__ import annotations

import contextlib
import ctypes
import signal
import sys
from pathlib import Path

_SET_PDEATHSIG = 1


def prctl(option: int, value: int, more: bytes | int = 0) -> bool:
    """Make a call; whether it succeeded."""
    if sys.platform != "linux":
        return False
    library = ctypes.CDLL(None, use_errno=True)
    return bool(library.prctl(option, value, more, 0, 0) == 0)


def die_with_parent(by: signal.Signals = signal.SIGKILL) -> None:
    """Have this process ended when the thread that forked it ends."""
    prctl(_SET_PDEATHSIG, by)


def die_first_without_memory() -> None:
    """Have this process ended before any other where memory runs out."""
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")
