from __future__ import annotations

import pytest

from solver.cache import Cache, Last, Memory, Slot, Slots, cached


def test_the_oldest_are_forgotten_first() -> None:
    cache: Cache[int, str] = Cache(3)
    for number in range(5):
        assert cache.keep(number, str(number)) == str(number)
    assert list(cache) == [2, 3, 4]


def test_what_is_kept_again_is_young_again() -> None:
    cache: Cache[int, str] = Cache(2)
    cache.keep(1, "one")
    cache.keep(2, "two")
    cache.keep(1, "uno")
    cache.keep(3, "three")
    assert cache == {1: "uno", 3: "three"}


@pytest.mark.parametrize("bound", [0, 1, 7, 64])
def test_there_are_never_more_than_the_bound(bound: int) -> None:
    cache: Cache[int, int] = Cache(bound)
    for number in range(200):
        cache.keep(number, number)
        assert len(cache) <= bound
        assert number in cache or not bound


def test_entries_may_weigh_more_than_one() -> None:
    """What is too heavy alone is returned, and not kept."""
    cache: Cache[str, str] = Cache(5, weigh=len)
    cache.keep("a", "xx")
    cache.keep("b", "xxx")
    assert list(cache) == ["a", "b"]
    cache.keep("c", "")
    assert list(cache) == ["b", "c"]
    assert cache.keep("d", "xxxxxx") == "xxxxxx"
    assert list(cache) == ["b", "c"]


def test_a_function_is_called_once_for_equal_arguments() -> None:
    calls = []

    @cached(bound=2)
    def double(number: int, *, times: int = 2) -> int:
        calls.append(number)
        return number * times

    assert [double(3), double(3), double(3, times=5), double(3, times=5)] == [6, 6] + [
        15
    ] * 2
    assert calls == [3, 3]


def test_errors_are_not_kept() -> None:
    calls = []

    @cached(bound=2)
    def fail(key: str) -> str:
        calls.append(key)
        raise KeyError(key)

    for _ in range(2):
        with pytest.raises(KeyError):
            fail("x")
    assert calls == ["x", "x"]


def test_slots_share_a_memory_and_nothing_else() -> None:
    memory, first, second = Memory(), Slot[int](), Slot[int]()
    several: Slots[str, int] = Slots(bound=1)
    assert first.get(memory) is None
    assert first.keep(memory, 1) == 1
    several.of(memory).keep("a", 2)
    several.of(memory).keep("b", 3)
    assert (first.get(memory), second.get(memory)) == (1, None)
    assert several.of(memory) == {"b": 3}
    assert (several.find(memory, "a"), several.find(memory, "b")) == (None, 3)
    assert several.find(Memory(), "b") is None
    assert not several.of(Memory())


def test_the_last_is_found_by_identity() -> None:
    last: Last[list[int], str] = Last()
    one, same = [1], [1]
    assert last.keep(one, "one") == "one"
    assert last.get(one) == "one"
    assert last.get(same) is None


def test_switched_off_nothing_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Cache, "is_on", False)
    memory, slot, last = Memory(), Slot[int](), Last[str, int]()
    assert (Cache[int, int](5).keep(1, 2), slot.keep(memory, 3)) == (2, 3)
    assert last.keep("x", 4) == 4
    assert slot.get(memory) is None
    assert last.get("x") is None
