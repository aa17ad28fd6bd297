"""Searches side by side: who runs them changes no answer.

Searches that differ in their order alone take very different times for one problem, so
several are likelier to have a quick one among them (an algorithm portfolio: Huberman,
Lukose and Hogg 1997). Each tells after each of its rounds how far it is. What is told
is read round by round, in the order of the searches, up to the first that is enough:
the same on one processor, where they take turns, as on several. The shell says how they
are run (`run_by`); else they take turns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import Any, Protocol, TypeVar

T = TypeVar("T")

Search = Callable[[], Iterator[T]]
"""Begins a search, which tells something after each round. It may change nothing that
another one reads, and begun again it tells the same again."""


class Runner(Protocol):
    """Runs searches at a time."""

    def __call__(
        self, searches: Sequence[Search[Any]]
    ) -> AbstractContextManager[Sequence[Iterator[Any]]]:
        """Run searches until the block ends, and give what each tells."""
        ...


@contextmanager
def take_turns(searches: Sequence[Search[Any]]) -> Iterator[Sequence[Iterator[Any]]]:
    """Run each search when it is asked for its next round."""
    yield [search() for search in searches]


_RUNNER: ContextVar[Runner] = ContextVar("portfolio", default=take_turns)


@contextmanager
def run_by(runner: Runner) -> Iterator[None]:
    """Have the searches of the block run by somebody."""
    token = _RUNNER.set(runner)
    try:
        yield
    finally:
        _RUNNER.reset(token)


def race(
    searches: Sequence[Search[T]], is_enough: Callable[[T], bool]
) -> list[list[T]]:
    """Run searches until one tells what is enough, or all have ended.

    Returns what each told, up to that.
    """
    told: list[list[T]] = [[] for _ in searches]
    with _RUNNER.get()(searches) as running:
        open_searches = list(enumerate(running))
        while open_searches:
            for number, search in tuple(open_searches):
                try:
                    report: T = next(search)
                except StopIteration:
                    open_searches.remove((number, search))
                    continue
                told[number].append(report)
                if is_enough(report):
                    return told
    return told
