"""Follows what is decided of gangs, for those who wait for the answers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Collection, Iterable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from contracts.ids import GangUID, Namespace
from contracts.lifecycle import is_answer
from contracts.messages import DecisionMessage
from contracts.topics import DECISIONS
from runtime.waits import first_of, together

if TYPE_CHECKING:
    from moorings.bus_client import Client


class Answers:
    """The last decision on each gang, and when each was answered for the first time.

    Decisions come in, and may be waited for, inside `follow` only.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        self.decisions: dict[GangUID, DecisionMessage] = {}
        self.answered_s: dict[GangUID, float] = {}
        """By `time.perf_counter`; a notice that a gang was not tried yet is none."""
        self.last_s = 0.0
        """When any decision came last."""
        self._changed = asyncio.Event()
        self._stop = asyncio.Event()

    @asynccontextmanager
    async def follow(
        self, namespaces: Collection[Namespace] = ()
    ) -> AsyncIterator[None]:
        """Follow the decisions in some namespaces, or all, while the block runs.

        Raises:
            BusError: they cannot be read; once the block has ended.
        """
        names = [[namespace] for namespace in sorted(namespaces)] or [[]]
        reading = asyncio.create_task(together(map(self._read, names)))
        reading.add_done_callback(lambda _: self._changed.set())
        try:
            yield
        finally:
            self._stop.set()
            await reading

    async def _read(self, names: Iterable[str]) -> None:
        batches = self._client.bus.read(
            DECISIONS,
            self._client.cluster,
            *names,
            stop=self._stop,
            survives_restart=True,
        )
        try:
            async for batch in batches:
                for incoming in batch.messages:
                    if incoming.message is not None:
                        self.note(incoming.message)
        finally:
            self._stop.set()

    def note(self, message: DecisionMessage) -> None:
        """Take a decision in."""
        self.last_s = time.perf_counter()
        self.decisions[message.uid] = message
        if is_answer(message):
            self.answered_s.setdefault(message.uid, self.last_s)
        self._changed.set()

    def are_all_answered(self, uids: Iterable[GangUID]) -> bool:
        """True if the last decision on each gang is an answer."""
        return all(
            uid in self.decisions and is_answer(self.decisions[uid]) for uid in uids
        )

    async def wait_until(self, holds: Callable[[], bool], within_s: float) -> bool:
        """Wait until something holds of the decisions; False: it did not in time."""
        deadline_s = time.perf_counter() + within_s
        while not holds():
            left_s = deadline_s - time.perf_counter()
            if left_s <= 0 or self._stop.is_set():
                return False
            self._changed.clear()
            await first_of(self._changed, within_s=left_s)
        return True
