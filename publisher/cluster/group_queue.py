"""Which groups of pods are to be looked at, while this publisher leads.

Stands between those who hear that something changed, on the API server or on the bus,
and those who work on groups, so that neither knows the other. A group that cannot go
on now rests for a while and holds up nobody else. Decides nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from publisher.gangs.view import GroupKey
from publisher.latest_queue import LatestQueue
from runtime.waits import first_of


class GroupQueue:
    """Groups that something happened to, each with one worker at a time."""

    def __init__(self, leads: asyncio.Event) -> None:
        """`leads` is set while this publisher leads; nothing is added otherwise."""
        self._leads = leads
        self._waiting: LatestQueue[GroupKey, None] = LatestQueue()
        self._resting: dict[GroupKey, asyncio.Task[None]] = {}
        """Groups that are left alone for a while."""
        self._closed = asyncio.Event()

    async def add(self, groups: Iterable[GroupKey]) -> None:
        """Have these groups looked at, soon; those that rest, when they have rested."""
        if self._leads.is_set():
            for group in groups:
                if group not in self._resting:
                    await self._waiting.put(group, None)

    async def take(self) -> GroupKey | None:
        """Wait for a group that nobody works on; None: the queue is closed.

        The group is the caller's until it calls `done`, which it must in any case.
        """
        while (entry := await self._waiting.take()) is not None:
            group, _ = entry
            if group not in self._resting:
                return group
            await self._waiting.done(group)
        return None

    async def done(self, group: GroupKey, *, again: bool) -> None:
        """Free a group; `again` has it looked at once more."""
        await self._waiting.done(group)
        if again:
            await self.add((group,))

    def rest(self, group: GroupKey, pause_s: float) -> None:
        """Leave a group alone for a while, and nobody else; then look at it again."""

        async def rest() -> None:
            await first_of(self._closed, within_s=pause_s)
            del self._resting[group]
            await self.add((group,))

        self._resting[group] = asyncio.create_task(rest(), name=f"rest {group}")

    async def close(self) -> None:
        """Let the workers end."""
        self._closed.set()
        await self._waiting.close()
