"""Who works on a group of pods, and when."""

from __future__ import annotations

import asyncio

import pytest

from contracts.ids import Namespace
from publisher.cluster.group_queue import GroupQueue
from publisher.gangs.view import GroupKey

ONE, TWO = (GroupKey(Namespace("ns"), name) for name in ("one", "two"))


@pytest.fixture
def leads() -> asyncio.Event:
    """We lead."""
    event = asyncio.Event()
    event.set()
    return event


async def test_only_who_leads_has_groups_to_work_on(leads: asyncio.Event) -> None:
    queue = GroupQueue(leads)
    leads.clear()
    await queue.add([ONE])
    leads.set()
    await queue.add([TWO])
    assert await queue.take() == TWO


async def test_a_group_is_worked_on_by_one_at_a_time(leads: asyncio.Event) -> None:
    """What happens to it meanwhile is looked at when that is done."""
    queue = GroupQueue(leads)
    await queue.add([ONE, TWO])
    assert await queue.take() == ONE
    await queue.add([ONE])
    assert await queue.take() == TWO
    await queue.done(ONE, again=False)
    assert await queue.take() == ONE


async def test_a_group_that_rests_holds_up_nobody_and_comes_again(
    leads: asyncio.Event,
) -> None:
    queue = GroupQueue(leads)
    await queue.add([ONE])
    assert await queue.take() == ONE
    queue.rest(ONE, 0.05)
    await queue.done(ONE, again=True)
    await queue.add([ONE, TWO])
    assert await queue.take() == TWO
    async with asyncio.timeout(5):
        assert await queue.take() == ONE


async def test_workers_end_when_the_queue_is_closed(leads: asyncio.Event) -> None:
    queue = GroupQueue(leads)
    working = asyncio.ensure_future(queue.take())
    await asyncio.sleep(0)
    queue.rest(ONE, 60.0)
    await queue.close()
    assert await working is None


async def test_a_group_is_looked_at_when_its_time_has_come(
    leads: asyncio.Event,
) -> None:
    """At the earliest of several times, once, and it may be worked on before."""
    queue = GroupQueue(leads)
    queue.add_in(ONE, 3600)
    queue.add_in(ONE, 0.01)
    queue.add_in(ONE, 1800)
    await queue.add([TWO])
    assert await queue.take() == TWO
    async with asyncio.timeout(5):
        assert await queue.take() == ONE
    await queue.close()


async def test_a_group_may_rest_until_something_happens_to_it(
    leads: asyncio.Event,
) -> None:
    """What happens while it rests is looked at then, and not forgotten."""
    queue = GroupQueue(leads)
    await queue.add([ONE, TWO])
    for group in (ONE, TWO):
        assert await queue.take() == group
        await queue.add([group] if group == TWO else [])
        queue.rest(group, 0.05, again=False)
        await queue.done(group, again=False)
    async with asyncio.timeout(5):
        assert await queue.take() == TWO
    await queue.done(TWO, again=False)
    await queue.add([ONE])
    assert await queue.take() == ONE
