"""Calls of prctl(2); on other systems than Linux they do nothing."""

from __future__ import annotations

import ctypes
import signal
import sys

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
