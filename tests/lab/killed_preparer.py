"""Prepares or unprepares one claim, and is killed at the n-th system call on files.

Right before the call, or not at all if there are fewer; half of a `write` is written
first. For a process of its own.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.builders.prepared import Bench, allocated, asked, make_preparer, result

CLAIM = asked("a")
_CALLS = ("open", "write", "fsync", "replace", "unlink")


def main(folder: Path, action: str, calls: int) -> None:
    """Do one action, `prepare` or `unprepare`, as far as it goes."""
    claims = {"a": allocated(CLAIM, result("gpu-0"), result("gpu-1"))}
    preparer = make_preparer(
        folder, Bench("gpu-0", "gpu-1"), claims, tells_metadata=True
    )
    left = calls

    def count(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*arguments: Any, **more: Any) -> Any:
            nonlocal left
            left -= 1
            if left <= 0:
                if name == "write":
                    descriptor, data = arguments
                    call(descriptor, bytes(data)[: len(data) // 2])
                os.kill(os.getpid(), signal.SIGKILL)
            return call(*arguments, **more)

        return counted

    for name in _CALLS:
        setattr(os, name, count(name, getattr(os, name)))
    run = preparer.prepare if action == "prepare" else preparer.unprepare
    asyncio.run(run(CLAIM))
