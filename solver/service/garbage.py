"""Garbage is collected between batches, not in them.

A batch on ten thousand nodes makes a million objects that live as long as it does, and
no cycles. Python's collector would go through all of them again and again, for half of
the time of a solve. Whatever has no cycle is given back at once in any case.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

MANY = 100_000
"""New objects since the last collection that are worth another."""


def collect_between_batches() -> None:
    """From now on collect only when `after_batch` is called."""
    gc.collect()
    gc.freeze()
    gc.disable()


def after_batch() -> None:
    """Collect if there is much that is new; what stays is not looked at again."""
    if gc.get_count()[0] >= MANY:
        gc.collect()
        gc.freeze()


@contextmanager
def collecting_between_batches() -> Iterator[None]:
    """Do so until the end of a block."""
    collect_between_batches()
    try:
        yield
    finally:
        # All that is new counts as old from now on: else the next object that is made
        # has the collector go through it.
        gc.freeze()
        gc.unfreeze()
        gc.enable()
