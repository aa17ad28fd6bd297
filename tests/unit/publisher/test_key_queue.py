"""One worker a key, and each key once."""

from __future__ import annotations

import asyncio

from publisher.key_queue import KeyQueue


async def test_a_key_that_waits_keeps_its_turn_and_comes_once() -> None:
    queue: KeyQueue[str] = KeyQueue("tested")
    for key in ("a", "b", "a"):
        await queue.put(key)
    assert [await queue.take(), await queue.take()] == ["a", "b"]
    third = asyncio.create_task(queue.take())
    await asyncio.sleep(0)
    assert not third.done()
    await queue.close()
    assert await third is None


async def test_a_key_that_is_worked_on_waits() -> None:
    queue: KeyQueue[str] = KeyQueue("tested")
    await queue.put("a")
    assert await queue.take() == "a"
    await queue.put("a")
    second = asyncio.create_task(queue.take())
    await asyncio.sleep(0)
    assert not second.done()
    await queue.done("a")
    assert await second == "a"


async def test_a_closed_queue_wakes_all_who_wait() -> None:
    queue: KeyQueue[str] = KeyQueue("tested")
    takers = [asyncio.create_task(queue.take()) for _ in range(3)]
    await asyncio.sleep(0)
    await queue.close()
    assert await asyncio.gather(*takers) == [None, None, None]
