"""Who waits for answers is told when there are some, and not before."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any, cast

import pytest
from msgspec import structs

from contracts.allocation import Reason, Rule
from contracts.ids import ClusterName, GangUID, Namespace
from contracts.messages import DecisionMessage
from contracts.topics import DECISIONS
from moorings.answers import Answers
from moorings.client import Client
from runtime.bus.bus import Bus
from runtime.errors import BusUnavailableError
from runtime.wire import Incoming, TopicBatch
from tests.builders.decisions import gang_allocated, gang_pending

QUEUED = gang_pending("a", reasons=(Reason(rule=Rule.QUEUED),))
TAKEN = gang_pending("b", reasons=(Reason(rule=Rule.TAKEN),))
A, B = GangUID("a"), GangUID("b")


class DecisionBus:
    """Has these decisions, the rest only once it is let go on; or an error."""

    def __init__(
        self, *decisions: DecisionMessage, error: Exception | None = None
    ) -> None:
        self._decisions = decisions
        self._error = error
        self.goes_on = asyncio.Event()
        self.names: list[tuple[str, ...]] = []

    async def read(
        self, _: object, *names: str, stop: asyncio.Event, **__: object
    ) -> AsyncIterator[TopicBatch[Any]]:
        """Hand over the decisions."""
        self.names.append(names)
        for decision in self._decisions:
            incoming: Incoming[Any] = Incoming(
                topic=DECISIONS, names=(), message=decision, data=b"", sequence=1
            )
            yield TopicBatch(messages=(incoming,), caught_up=True)
            await self.goes_on.wait()
        if self._error is not None:
            raise self._error
        await stop.wait()


def answers_of(bus: DecisionBus) -> Answers:
    """Make what follows this bus."""
    return Answers(Client(cast("Bus", bus), ClusterName("east")))


async def test_a_notice_of_the_queue_is_no_answer() -> None:
    """The decision that comes after it is."""
    bus = DecisionBus(QUEUED, gang_allocated(uid="a"), TAKEN)
    answers = answers_of(bus)
    async with answers.follow():
        in_time = await answers.wait_until(lambda: answers.are_all_answered([A]), 0.05)
        assert not in_time
        assert A in answers.decisions
        bus.goes_on.set()
        assert await answers.wait_until(lambda: answers.are_all_answered([A, B]), 30)
    assert answers.answered_s[A] <= answers.answered_s[B] <= answers.last_s


async def test_the_first_answer_is_the_one_that_is_timed() -> None:
    """Though the gang is decided again later."""
    answers = answers_of(DecisionBus())
    answers.note(structs.replace(TAKEN, uid=A))
    first_s = answers.answered_s[A]
    answers.note(gang_allocated(uid="a"))
    assert answers.answered_s[A] == first_s
    assert answers.last_s >= first_s


async def test_decisions_are_read_where_gangs_are() -> None:
    """A user of the bus may be let into one namespace alone."""
    bus = DecisionBus()
    async with answers_of(bus).follow({Namespace("b"), Namespace("a")}):
        await asyncio.sleep(0.01)
    assert sorted(bus.names) == [("east", "a"), ("east", "b")]


async def test_what_cannot_be_read_is_not_waited_for() -> None:
    bus = DecisionBus(error=BusUnavailableError("nats", "gone"))
    answers = answers_of(bus)
    with pytest.raises(BusUnavailableError):
        async with answers.follow():
            assert not await answers.wait_until(lambda: False, 30)
