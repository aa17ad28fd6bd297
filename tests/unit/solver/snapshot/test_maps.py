"""A frozen map is like a dict that was copied, only cheaper."""

from __future__ import annotations

import zlib

from solver.snapshot.maps import BUCKETS, FrozenMap

NAMES = tuple(f"node-{index}" for index in range(3 * BUCKETS))


def test_a_changed_map_leaves_the_old_one_as_it_was() -> None:
    """Whoever holds the old map sees nothing of the change."""
    old = FrozenMap[str, int]().with_item("a", 1)
    new = old.with_item("a", 2).with_item("b", 3)
    assert (old.get("a"), old.get("b"), len(old)) == (1, None, 1)
    assert (new.get("a"), new.get("b"), len(new)) == (2, 3, 2)
    assert new.without("a").get("a") is None
    assert "a" in new


def test_a_map_of_many_keys_holds_each_once() -> None:
    """Two keys in one bucket do not disturb each other."""
    made: FrozenMap[str, str] = FrozenMap()
    for name in (*NAMES, *NAMES):
        made = made.with_item(name, name)
    assert len(made) == len(NAMES)
    assert sorted(made) == sorted(NAMES)
    assert all(key == value for key, value in made.items())
    assert list(made.values()) == list(made)


def test_the_order_of_buckets_follows_from_the_keys_alone() -> None:
    """In whatever order they came, and whatever seed Python hashes by."""
    of_buckets = {zlib.crc32(name.encode()) % BUCKETS: name for name in NAMES}
    forwards: FrozenMap[str, int] = FrozenMap()
    backwards: FrozenMap[str, int] = FrozenMap()
    for name in of_buckets.values():
        forwards = forwards.with_item(name, 0)
    for name in reversed(of_buckets.values()):
        backwards = backwards.with_item(name, 0)
    expected = [of_buckets[number] for number in sorted(of_buckets)]
    assert list(forwards) == list(backwards) == expected


def test_leaving_out_what_is_not_there_changes_nothing() -> None:
    """The very map comes back, so that nothing is copied for nothing."""
    made = FrozenMap[str, int]().with_item("a", 1)
    assert made.without("b") is made
