"""Requests wait for their turn, and none for a limit that is lifted."""

from __future__ import annotations

import asyncio

import pytest

from runtime.kube import request_limit
from runtime.kube.request_limit import RequestLimit


@pytest.fixture
def slept(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Waits that are over at once, by a clock that they alone move."""
    waits: list[float] = []

    async def wait(_lifted: asyncio.Event, *, within_s: float) -> None:
        waits.append(within_s)

    monkeypatch.setattr(request_limit, "monotonic", lambda: 1000.0 + sum(waits))
    monkeypatch.setattr(request_limit, "first_of", wait)
    return waits


async def test_without_a_limit_nothing_waits(slept: list[float]) -> None:
    limit = RequestLimit()
    assert [await limit.wait_turn() for _ in range(100)] == [0.0] * 100
    assert slept == []


async def test_beyond_the_burst_each_waits_for_its_turn(slept: list[float]) -> None:
    limit = RequestLimit(qps=4, burst=2)
    waited = [await limit.wait_turn() for _ in range(5)]
    assert waited == pytest.approx([0, 0, 0.25, 0.25, 0.25])
    assert slept == waited[2:]


async def test_who_waits_goes_when_the_limit_is_lifted() -> None:
    """And is limited again once it is restored."""
    limit = RequestLimit(qps=0.001, burst=1)
    assert await limit.wait_turn() == 0
    waiting = [asyncio.create_task(limit.wait_turn()) for _ in range(3)]
    await asyncio.sleep(0)
    limit.lift()
    async with asyncio.timeout(10):
        await asyncio.gather(*waiting)
        assert await limit.wait_turn() == 0
    limit.restore()
    late = asyncio.create_task(limit.wait_turn())
    await asyncio.sleep(0.01)
    assert not late.done()
    late.cancel()
