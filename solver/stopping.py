"""How a caller ends searches early, with what they found; without a clock.

Searches ask `is_stopped` where they ask what work is left, and end as if none were:
what they have is the answer, what they know of bounds stays true. Unless they are
stopped (`stopped_by`), an answer depends on the Problem alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import Protocol


class Stopper(Protocol):
    """Stops searches."""

    def is_stopped(self) -> bool:
        """True if searches are to end now; once true, it stays so."""
        ...

    def calling(self, stop: Callable[[], None]) -> AbstractContextManager[None]:
        """Call `stop` when searches are to end while the block runs.

        From any thread, and as often as it likes.
        """
        ...


_STOPPER: ContextVar[Stopper | None] = ContextVar("stopping", default=None)


def is_stopped() -> bool:
    """True if searches are to end now, with what they have."""
    stopper = _STOPPER.get()
    return stopper is not None and stopper.is_stopped()


@contextmanager
def stopped_by(stopper: Stopper) -> Iterator[None]:
    """Let the stopper end the searches of the block."""
    token = _STOPPER.set(stopper)
    try:
        yield
    finally:
        _STOPPER.reset(token)


@contextmanager
def never_stopped() -> Iterator[None]:
    """Let the block end by itself: a short search, without which there is no answer."""
    token = _STOPPER.set(None)
    try:
        yield
    finally:
        _STOPPER.reset(token)


@contextmanager
def calling(stop: Callable[[], None]) -> Iterator[None]:
    """Have `stop` called if searches are to end while the block runs."""
    stopper = _STOPPER.get()
    if stopper is None:
        yield
        return
    with stopper.calling(stop):
        yield
