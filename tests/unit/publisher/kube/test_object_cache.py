"""What we wrote is believed until the watch has caught up."""

from __future__ import annotations

from msgspec.structs import replace

from contracts.device import ResourceSlice
from publisher.kube.object_cache import ObjectCache
from tests import builders


def version(number: int, uid: str = "uid-1") -> ResourceSlice:
    """Make a version of one slice."""
    made = builders.resource_slice(name="s", generation=number)
    metadata = replace(made.metadata, uid=uid, resource_version=str(number))
    return replace(made, metadata=metadata)


def test_watch_that_lags_behind_our_writes_is_not_believed() -> None:
    """An older version does not replace the answer to our write."""
    known: ObjectCache[ResourceSlice] = ObjectCache()
    assert known.put(version(9))
    assert known.put(version(10))
    assert not known.put(version(9))
    assert not known.put(version(10))
    assert known.get("s") == version(10)
    assert known.put(version(11))


def test_what_we_deleted_does_not_come_back_from_the_watch() -> None:
    """Only a new object of the name does."""
    known: ObjectCache[ResourceSlice] = ObjectCache()
    known.put(version(1))
    known.note_deleted(version(1))
    assert not known.put(version(1))
    assert not known.put(version(2))
    assert list(known) == []
    assert known.put(version(4, "uid-2"))
    assert known.remove("s") is None
    assert known.get("s") == version(4, "uid-2")


def test_what_others_delete_is_news_once() -> None:
    """The second time there is nothing to forget."""
    known: ObjectCache[ResourceSlice] = ObjectCache()
    known.put(version(1))
    assert known.remove("s") == version(1)
    assert known.remove("s") is None
    assert known.put(version(3, "uid-2"))
