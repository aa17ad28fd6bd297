"""Garbage waits for the end of a batch, and is gone then."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest

from solver.service.garbage import (
    MANY,
    after_batch,
    collect_between_batches,
    collecting_between_batches,
)


class Cycle:
    """Refers to itself, so that only a collection frees it."""

    def __init__(self) -> None:
        self.me = self


@pytest.fixture(autouse=True)
def _collection_as_before() -> Iterator[None]:
    yield
    gc.enable()
    gc.unfreeze()


def test_a_cycle_stays_until_a_large_batch_ends() -> None:
    """No collection falls into a solve."""
    collect_between_batches()
    known = weakref.ref(Cycle())
    made: list[list[int]] = [[] for _ in range(2 * MANY)]
    assert known() is not None
    after_batch()
    assert known() is None
    assert len(made) == 2 * MANY


def test_after_a_block_it_is_collected_as_ever() -> None:
    """A command ends, and who called it goes on."""
    with collecting_between_batches():
        assert not gc.isenabled()
    assert gc.isenabled()
    assert gc.get_freeze_count() == 0


def test_what_a_block_made_is_not_gone_through_at_its_end() -> None:
    """A plan of a large cluster made millions of objects, and is printed next."""
    with collecting_between_batches():
        made: list[list[int]] = [[] for _ in range(MANY)]
    young = {id(each) for each in gc.get_objects(generation=0)}
    assert young.isdisjoint(map(id, made))


def test_a_small_batch_is_not_worth_a_collection() -> None:
    """It costs more than it frees."""
    collect_between_batches()
    known = weakref.ref(Cycle())
    after_batch()
    assert known() is not None
