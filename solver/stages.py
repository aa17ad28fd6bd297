"""The stage that a decision is at, reported to a listener; without a clock.

`with stage("judge"):` tells the listener of this thread, if there is one, when the
stage begins and ends. Stages may lie in each other. No answer depends on it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol


class StageListener(Protocol):
    """Hears when stages begin and end."""

    def begin(self, name: str) -> None:
        """Note that a stage begins, inside of the one that runs."""

    def end(self) -> None:
        """Note the end of the stage that began last."""


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
    """Report the stages of the block to a listener."""
    token = _LISTENER.set(listener)
    try:
        yield
    finally:
        _LISTENER.reset(token)
