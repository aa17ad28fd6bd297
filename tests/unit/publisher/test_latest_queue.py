"""One worker a key, and only the newest value of each."""

from __future__ import annotations

import asyncio

from publisher.latest_queue import LatestQueue


async def test_newer_value_takes_the_place_of_one_that_waits() -> None:
    queue: LatestQueue[str, int] = LatestQueue()
    await queue.put("a", 1)
    await queue.put("b", 1)
    await queue.put("a", 2)
    assert await queue.take() == ("a", 2)
    assert await queue.take() == ("b", 1)


async def test_key_that_is_worked_on_waits() -> None:
    queue: LatestQueue[str, int] = LatestQueue()
    await queue.put("a", 1)
    assert await queue.take() == ("a", 1)
    await queue.put("a", 2)
    second = asyncio.create_task(queue.take())
    await asyncio.sleep(0)
    assert not second.done()
    await queue.done("a")
    assert await second == ("a", 2)


async def test_value_to_do_again_yields_to_a_newer_one() -> None:
    queue: LatestQueue[str, int] = LatestQueue()
    await queue.put("a", 1)
    await queue.take()
    await queue.done("a", again=1)
    assert await queue.take() == ("a", 1)
    await queue.put("a", 2)
    await queue.done("a", again=1)
    assert await queue.take() == ("a", 2)


async def test_closed_queue_wakes_all_who_wait() -> None:
    queue: LatestQueue[str, int] = LatestQueue()
    takers = [asyncio.create_task(queue.take()) for _ in range(3)]
    await asyncio.sleep(0)
    await queue.close()
    assert await asyncio.gather(*takers) == [None, None, None]
