"""The slices of a folder are what was written there, and nothing that failed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from publisher.errors import FolderError
from publisher.folder.files import Folder
from publisher.folder.slice_sink import FolderSliceSink
from publisher.slices.layout import pool_of
from publisher.steps import Create, Delete, Published, Step, Update
from tests import builders

ONE = builders.resource_slice(name="s1", pool="one")
TWO = builders.resource_slice(name="s2", pool="two")
POOL, OTHER = pool_of(ONE.spec), pool_of(TWO.spec)


class FullFolder(Folder):
    """Takes nothing any more."""

    def carry_out(self, _steps: Sequence[Step[Published]]) -> None:
        """Fail."""
        raise FolderError("x", "no space left")


def test_what_the_folder_holds_is_known_by_pool() -> None:
    """Claims lie there too, and belong to no pool."""
    contents = (ONE, builders.claim(), TWO)
    sink = FolderSliceSink(Folder(Path("unused")), contents)
    assert set(sink.pools()) == {POOL, OTHER}
    assert sink.slices(POOL) == (ONE,)
    assert sink.slices(OTHER) == (TWO,)


async def test_plans_of_all_pools_are_carried_out(tmp_path: Path) -> None:
    """What was deleted leaves no pool behind."""
    sink = FolderSliceSink(Folder(tmp_path), ())
    assert await sink.carry_out({POOL: [Create(ONE)], OTHER: [Create(TWO)]}) == {}
    changed = builders.resource_slice(name="s1", pool="one", generation=2)
    assert await sink.carry_out({POOL: [Update(changed)], OTHER: [Delete(TWO)]}) == {}
    assert sink.slices(POOL) == (changed,)
    assert list(sink.pools()) == [POOL]


async def test_a_folder_that_takes_nothing_fails_every_pool() -> None:
    """And what is known stays, so that it is tried again."""
    sink = FolderSliceSink(FullFolder(Path("unused")), (ONE,))
    errors = await sink.carry_out({POOL: [Delete(ONE)], OTHER: [Create(TWO)]})
    assert set(errors) == {POOL, OTHER}
    assert sink.slices(POOL) == (ONE,)
    assert sink.slices(OTHER) == ()
