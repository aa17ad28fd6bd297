"""Searches side by side: what is read of them, and in which order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from solver.portfolio import Search, race, run_by


def counting(name: str, rounds: int, seen: list[str]) -> Search[str]:
    """Make a search that tells its rounds, and notes when it has one."""

    def search() -> Iterator[str]:
        for number in range(rounds):
            seen.append(f"{name}{number}")
            yield f"{name}{number}"

    return search


def test_searches_take_turns_until_one_tells_what_is_enough() -> None:
    """Who comes after it has no further round."""
    seen: list[str] = []
    searches = [counting(name, 5, seen) for name in "abc"]
    told = race(searches, lambda report: report in {"b1", "c1"})
    assert told == [["a0", "a1"], ["b0", "b1"], ["c0"]]
    assert seen == ["a0", "b0", "c0", "a1", "b1"]


def test_the_first_of_two_that_are_enough_in_one_round_is_the_end() -> None:
    searches = [counting(name, 5, []) for name in "ab"]
    assert race(searches, lambda report: report.endswith("2")) == [
        ["a0", "a1", "a2"],
        ["b0", "b1"],
    ]


def test_a_search_that_ends_leaves_the_others_going() -> None:
    searches = [counting("a", 1, []), counting("b", 3, []), counting("c", 0, [])]
    told = race(searches, lambda _: False)
    assert told == [["a0"], ["b0", "b1", "b2"], []]
    assert race(list[Search[str]](), lambda _: False) == []


def test_a_runner_changes_nothing_that_is_told() -> None:
    """One that has run everything before anything is read."""
    seen: list[str] = []

    @contextmanager
    def run_all(searches: Sequence[Search[Any]]) -> Iterator[Sequence[Iterator[Any]]]:
        yield [iter(list(search())) for search in searches]

    searches = [counting(name, 4, seen) for name in "ab"]
    alone = race(searches, lambda report: report == "b2")
    with run_by(run_all):
        seen.clear()
        assert race(searches, lambda report: report == "b2") == alone
        assert seen[:4] == ["a0", "a1", "a2", "a3"]
    seen.clear()
    assert race(searches, lambda _: True) == [["a0"], []]
    assert seen == ["a0"]
