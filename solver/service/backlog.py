"""Commands that come faster than they are read: looked up by gang, then dropped.

Anybody who may send commands can send any number about gangs that are not there. They
fill their stream, and what another sends waits behind them to be read. So where many
wait, the leader asks for the command of each gang that lives by the gang's subject,
carries it out, and removes all that came until then at once, unread. The decision that
ends a gang keeps its command, so nothing of it is lost.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from typing import Any

from contracts import topics
from contracts.errors import ContractsError
from contracts.ids import ClusterName, GangKey
from contracts.lifecycle import GangRecord, is_by_publisher
from contracts.messages import CommandMessage
from contracts.topics import Topic
from runtime.bus.bus import Bus
from runtime.errors import BusError, MessageError
from runtime.log import get_logger
from runtime.waits import first_of, together
from solver.snapshot.snapshot import GangForgotten, Snapshot

LOOK_S = 0.5
"""The time between two looks."""
MANY = 5_000
"""So many commands that were not read yet are dropped."""
PRESSED = 0.25
"""And those that take so much of the stream, read or not."""
IN_FLIGHT = 64
"""Gangs whose command is asked for at a time."""
PATIENCE_S = 5.0
"""How long is waited for what has to come first; then the next look tries again."""
_POLL_S = 0.02

log = get_logger(__name__)


class Backlog:
    """Keeps the stream of commands short while we lead."""

    def __init__(
        self,
        bus: Bus,
        cluster: ClusterName,
        *,
        leads: Callable[[], bool],
        snapshot: Callable[[], Snapshot],
        believe: Callable[[CommandMessage | GangForgotten, int], None],
        read_up_to: Callable[[Topic[Any]], int],
        unsaid: Collection[GangKey],
    ) -> None:
        """`read_up_to` tells how far a topic was read.

        `unsaid` are the gangs whose end cannot be published.
        """
        self._bus = bus
        self._cluster = cluster
        self._leads = leads
        self._snapshot = snapshot
        self._believe = believe
        self._read_up_to = read_up_to
        self._unsaid = unsaid
        self._dropped_up_to = 0

    async def run(self, stop: asyncio.Event) -> None:
        """Look again and again, for as long as we lead."""
        while not stop.is_set():
            await first_of(stop, within_s=LOOK_S)
            if stop.is_set() or not self._leads():
                continue
            try:
                await self.shorten()
            except BusError as error:
                log.warning("commands.kept", reason=str(error))

    async def shorten(self) -> None:
        """Drop what waits, if that is much.

        Raises:
            BusError: it could not be finished; the next look tries again.
        """
        usage = await self._bus.usage(topics.COMMANDS.stream)
        end = usage.last_sequence
        if end < self._dropped_up_to:
            self._dropped_up_to = 0  # the stream was made anew
        read = max(self._read_up_to(topics.COMMANDS), usage.first_sequence - 1)
        waiting = end - max(read, self._dropped_up_to)
        is_pressed = usage.share >= PRESSED and end > self._dropped_up_to
        if waiting < MANY and not is_pressed:
            return
        # Whoever was commanded until then was submitted before.
        if not await self._eventually(self._is_submitted_by(await self._submitted())):
            log.warning("commands.kept", reason="submissions are still being read")
            return
        await self._look_up()
        await self._eventually(lambda: not self._list_ending(end))
        kept = (record.command_sequence for record in self._list_ending(end))
        end = min(kept, default=end + 1) - 1
        if end <= self._dropped_up_to or not self._leads():
            return
        await self._bus.purge(topics.COMMANDS.stream, await self._dropped(), end)
        self._dropped_up_to = end
        self._forget(end)
        log.warning("commands.dropped", unread=waiting, up_to=end)

    async def _submitted(self) -> int:
        """Return the sequence of the last submission."""
        subjects = topics.SUBMISSIONS.subjects_below(self._cluster)
        last = await self._bus.last(topics.SUBMISSIONS.stream, subjects)
        return 0 if last is None else last.sequence

    def _is_submitted_by(self, sequence: int) -> Callable[[], bool]:
        return lambda: self._read_up_to(topics.SUBMISSIONS) >= sequence

    async def _look_up(self) -> None:
        """Read the command of each gang that one would change."""
        slots = asyncio.Semaphore(IN_FLIGHT)

        async def ask(record: GangRecord) -> None:
            async with slots:
                try:
                    last = await self._bus.read_last(
                        topics.COMMANDS, self._cluster, record.namespace, record.uid
                    )
                except (ContractsError, MessageError):
                    return
            if last is not None and last.message is not None:
                self._believe(last.message, last.sequence)

        records = self._snapshot().gangs.values()
        await together(ask(r) for r in list(records) if _may_be_commanded(r))

    def _list_ending(self, end: int) -> list[GangRecord]:
        """List the gangs whose command is still to be carried out."""
        return [
            record
            for record in self._snapshot().ending.values()
            if record.command_sequence <= end and record.key not in self._unsaid
        ]

    async def _dropped(self) -> str:
        """Name the subjects that are dropped: all, unless others decide here too.

        Nobody carries out what is sent to a cluster that no solver ever led.
        """
        fences = await self._bus.subjects(topics.FENCE.stream, topics.FENCE.any_subject)
        if fences == {topics.FENCE.subject(self._cluster)}:
            return ">"
        return topics.COMMANDS.subjects_below(self._cluster)

    def _forget(self, end: int) -> None:
        """Forget whom only a command told of."""
        for record in list(self._snapshot().unknown.values()):
            only = record.decision is None and record.confirmation is None
            if only and record.command_sequence <= end:
                self._believe(GangForgotten(gang=record.key), 0)

    async def _eventually(self, holds: Callable[[], bool]) -> bool:
        """Wait until something holds, but not for long."""
        for _ in range(int(PATIENCE_S / _POLL_S)):
            if holds():
                return True
            await asyncio.sleep(_POLL_S)
        return holds()


def _may_be_commanded(record: GangRecord) -> bool:
    """True if a command that is not known would change a gang."""
    if record.submission is None or record.is_over:
        return False
    return record.command is None or is_by_publisher(record.command)
