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


def test_many_items_are_one_after_the_other() -> None:
    """And leave the old map as it was; none at all is the very map."""
    old = FrozenMap[str, int]().with_items(dict.fromkeys(NAMES, 1))
    new = old.with_items({**dict.fromkeys(NAMES[:9], 2), "a": 3})
    one_by_one = old.with_item("a", 3)
    for name in NAMES[:9]:
        one_by_one = one_by_one.with_item(name, 2)
    assert sorted(new.items()) == sorted(one_by_one.items())
    assert len(new) == len(one_by_one) == len(list(new))
    assert set(old.values()) == {1}
    assert new.with_items({}) is new


def test_leaving_many_keys_out_is_one_after_the_other() -> None:
    """And leaves the old map as it was; where none is there it is the very map."""
    old = FrozenMap[str, int]().with_items(dict.fromkeys(NAMES, 1))
    new = old.without_items((*NAMES[:500], "not there", NAMES[0]))
    assert sorted(new) == sorted(NAMES[500:])
    assert len(new) == len(NAMES) - 500
    assert len(old) == len(list(old)) == len(NAMES)
    assert new.without_items(NAMES[:500]) is new
