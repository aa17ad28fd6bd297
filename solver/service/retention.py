"""Gangs that ended leave the streams after a time, and commands about nobody.

What a gang leaves behind (its submission, commands, confirmations and decisions) is
removed by whoever leads, the decision last: it says that the gang is over, so whatever
is left of one that was removed in part can neither hold nor want anything. How old a
decision is says the server's clock alone. Nothing else is ever removed. Also tells when
a stream is filling.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from contracts import topics
from contracts.errors import ContractsError
from contracts.ids import ClusterName
from contracts.messages import (
    ClaimsReleased,
    DecisionMessage,
    GangRejected,
    GangReleased,
    ReleaseOutcome,
)
from contracts.streams import STREAMS
from runtime.bus.bus import Bus
from runtime.errors import BusError
from runtime.log import get_logger
from runtime.waits import first_of, together
from runtime.wire import Incoming, Refused

SWEEP_S = 600.0
"""The longest time between two looks."""
LONGER = 7
"""So many times as long stays a gang whose claims nobody confirmed to be released, and
one that was cancelled: its pods may still wait, and are not to be asked for again."""
FILLING = 0.7
"""A stream that is so full is told of."""
PRESSED = 0.5
PRESSED_S = 600.0
"""With so much of a stream in use, ended gangs stay no longer."""
ORPHAN_S = 600.0
"""So long a command stays about a gang that was never submitted, or is gone. Many are
dropped at once (backlog.py)."""
IN_FLIGHT = 16
"""Gangs removed side by side."""

_ORDER = (topics.COMMANDS, topics.CONFIRMATIONS, topics.SUBMISSIONS)
"""Before the decisions. Commands go before the submission: those that come later are
about whoever is submitted later."""

log = get_logger(__name__)


class Retention:
    """What is removed, and when.

    `leads` says whether that is up to us, `lives` whether the gang of an old decision
    is known not to be over.
    """

    def __init__(
        self,
        bus: Bus,
        cluster: ClusterName,
        retention_s: float,
        *,
        leads: Callable[[], bool],
        lives: Callable[[DecisionMessage], bool],
    ) -> None:
        self._bus = bus
        self._cluster = cluster
        self._retention_s = retention_s
        self._leads = leads
        self._lives = lives
        self._removed = 0
        self._looked_up_to = 0
        """The last command that was old enough: of none before it the gang is unknown,
        and whoever removes the gang removes them."""
        self._swept_up_to = 0
        """How far commands went at the last sweep."""

    async def run(self, stop: asyncio.Event) -> None:
        """Look again and again, for as long as we lead."""
        while not stop.is_set():
            await first_of(stop, within_s=min(self._retention_s, SWEEP_S))
            if stop.is_set() or not self._leads():
                continue
            try:
                removed = await self.sweep(stop)
            except BusError as error:
                log.warning("retention.delayed", reason=str(error))
            else:
                if removed:
                    log.info("gangs.removed", gangs=removed)

    async def sweep(self, stop: asyncio.Event) -> int:
        """Remove the gangs that have been over for long; returns how many.

        Raises:
            BusError: it could not be finished; what is left goes with the next one.
        """
        retention_s = min(self._retention_s, await self._longest_s())
        await self.sweep_orphans(stop)
        now_s = (await self._bus.usage(topics.DECISIONS.stream)).time_s
        before = self._removed
        # The last decision of each gang, in the order in which they were stored.
        done = asyncio.Event()
        cluster = self._cluster
        async for batch in self._bus.read_existing(
            topics.DECISIONS, cluster, stop=done
        ):
            old = [m for m in batch.messages if m.time_s <= now_s - retention_s]
            ended = [m for m in old if self._is_over(m)]
            slots = asyncio.Semaphore(IN_FLIGHT)
            oldest_s = now_s - LONGER * self._retention_s
            await together(self._remove(m, slots, oldest_s) for m in ended)
            if len(old) < len(batch.messages) or stop.is_set() or not self._leads():
                done.set()
        return self._removed - before

    async def sweep_orphans(self, stop: asyncio.Event) -> None:
        """Remove old commands that nobody can read, or whose gang is not there.

        Raises:
            BusError: it could not be finished; what is left goes with the next one.
        """
        usage = await self._bus.usage(topics.COMMANDS.stream)
        oldest_s = usage.time_s - ORPHAN_S
        if usage.last_sequence < self._looked_up_to:
            self._looked_up_to = 0  # the stream was made anew
        done, slots = asyncio.Event(), asyncio.Semaphore(IN_FLIGHT)
        async for batch in self._bus.read_existing(
            topics.COMMANDS, self._cluster, stop=done, start=self._looked_up_to + 1
        ):
            old = [m for m in batch.messages if m.time_s <= oldest_s]
            await together(self._remove_orphan(m, slots) for m in old)
            if old:
                self._looked_up_to = old[-1].sequence
            # Of these nobody says how old they are but those around them.
            oldest = max(self._looked_up_to, self._swept_up_to)
            unread = [r for r in batch.refused if r.sequence <= oldest]
            await together(self._remove_unread(r, slots) for r in unread)
            if len(old) < len(batch.messages) or stop.is_set() or not self._leads():
                done.set()
        self._swept_up_to = usage.last_sequence

    async def _remove_orphan(
        self, command: Incoming[Any], slots: asyncio.Semaphore
    ) -> None:
        async with slots:
            for topic in (topics.SUBMISSIONS, topics.DECISIONS):
                subject = topic.subject(*command.names)
                if await self._bus.last(topic.stream, subject) is not None:
                    return
            subject = topics.COMMANDS.subject(*command.names)
            await self._bus.purge(topics.COMMANDS.stream, subject, command.sequence)

    async def _remove_unread(self, unread: Refused, slots: asyncio.Semaphore) -> None:
        if {"*", ">"} & set(unread.subject.split(".")):
            return  # a purge would take it for a wildcard
        async with slots:
            stream = topics.COMMANDS.stream
            await self._bus.purge(stream, unread.subject, unread.sequence)

    async def _longest_s(self) -> float:
        """Tell of streams that are filling; returns how long ended gangs may stay."""
        longest_s = float("inf")
        gangs = {topic.stream for topic in topics.GANG_TOPICS}
        for stream in STREAMS:
            if stream.disposable:
                continue
            share = (await self._bus.usage(stream.name)).share
            if share >= FILLING:
                log.warning(
                    "stream.filling",
                    stream=stream.name,
                    share=round(share, 2),
                    max_bytes=stream.max_bytes,
                )
            if share >= PRESSED and stream.name in gangs:
                longest_s = PRESSED_S
        return longest_s

    def _is_over(self, incoming: Incoming[DecisionMessage]) -> bool:
        message = incoming.message
        if not isinstance(message, GangReleased | GangRejected):
            return False
        return not self._lives(message)

    async def _remove(
        self,
        ended: Incoming[DecisionMessage],
        slots: asyncio.Semaphore,
        oldest_s: float,
    ) -> None:
        """Remove all of a gang, unless somebody may still have to act upon its end."""
        async with slots:
            if ended.time_s > oldest_s and not await self._is_done(ended):
                return
            for topic in _ORDER:
                await self._bus.purge(topic.stream, topic.subject(*ended.names))
            # Decisions up to this one: what came since is not about this gang.
            subject = topics.DECISIONS.subject(*ended.names)
            await self._bus.purge(topics.DECISIONS.stream, subject, ended.sequence)
            self._removed += 1

    async def _is_done(self, ended: Incoming[DecisionMessage]) -> bool:
        """True if nobody has to know of it any more."""
        match ended.message:
            case GangReleased(outcome=ReleaseOutcome.CANCELLED):
                return False
            case GangReleased():
                return await self._is_confirmed(ended)
            case _:
                return True

    async def _is_confirmed(self, ended: Incoming[DecisionMessage]) -> bool:
        """True if its claims are confirmed to be released."""
        try:
            last = await self._bus.read_last(topics.CONFIRMATIONS, *ended.names)
        except ContractsError:
            return False
        return last is not None and isinstance(last.message, ClaimsReleased)
