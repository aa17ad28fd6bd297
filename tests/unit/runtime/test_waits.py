"""Waits that go together end together, and errors keep their type."""

from __future__ import annotations

import asyncio

import pytest

from runtime.errors import BusUnavailableError
from runtime.waits import together


async def test_all_is_done_at_the_end() -> None:
    """Nothing is still running when the wait is over."""
    done: list[int] = []

    async def work(number: int) -> None:
        await asyncio.sleep(0)
        done.append(number)

    await together(work(number) for number in range(3))
    assert sorted(done) == [0, 1, 2]


async def test_the_first_error_comes_as_it_is_and_ends_the_rest() -> None:
    """No group of errors hides its type."""
    ended: list[str] = []

    async def lost() -> None:
        await asyncio.sleep(0)
        raise BusUnavailableError("put", "away")

    async def endless() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("cancelled")

    with pytest.raises(BusUnavailableError):
        await together([endless(), together([lost(), endless()])])
    assert ended == ["cancelled", "cancelled"]
