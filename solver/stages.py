"""Which stage a decision is at, told to whoever measures it; without a clock.

`with stage("judge"):` tells the listener of this thread, if there is one, when the
stage begins and ends. Stages may lie in each other. No answer depends on it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol


class StageListener(Protocol):
    """Who is told."""

    def begin(self, name: str) -> None:
        """Take note that a stage begins, inside of the one that runs."""

    def end(self) -> None:
        """Take note that the stage ends that began last."""


_LISTENER: ContextVar[StageListener | None] = ContextVar("stages", default=None)


@contextmanager
def stage(name: str) -> Iterator[None]:
    """Run the block as a stage."""
    listener = _LISTENER.get()
    if listener is None:
        yield
        return
    listener.begin(name)
    try:
        yield
    finally:
        listener.end()


@contextmanager
def told_to(listener: StageListener) -> Iterator[None]:
    """Tell a listener of the stages of the block."""
    token = _LISTENER.set(listener)
    try:
        yield
    finally:
        _LISTENER.reset(token)
