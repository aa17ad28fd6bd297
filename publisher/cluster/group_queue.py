"""Which groups of pods are to be looked at, while this publisher leads.

Stands between those who hear that something changed, on the API server or on the bus,
and those who work on groups, so that neither knows the other. A group that cannot go
on now rests for a while and holds up nobody else. Decides nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from publisher.gangs.view import GroupKey
from publisher.key_queue import KeyQueue
from runtime.waits import first_of


class GroupQueue:
    """Groups to look at, each with one worker at a time."""

    def __init__(self, leads: asyncio.Event) -> None:
        """`leads` is set while this publisher leads; nothing is added otherwise."""
        self._leads = leads
        self._waiting: KeyQueue[GroupKey] = KeyQueue("groups")
        self._resting: dict[GroupKey, asyncio.Task[None]] = {}
        """Groups that are left alone for a while."""
        self._missed: set[GroupKey] = set()
        """Resting groups that something happened to."""
        self._later: dict[GroupKey, tuple[float, asyncio.TimerHandle]] = {}
        """When groups are looked at even if nothing happens."""
        self._looking: set[asyncio.Task[None]] = set()
        """Groups whose time has come, on their way into the queue."""
        self._closed = asyncio.Event()

    async def add(self, groups: Iterable[GroupKey]) -> None:
        """Have these groups looked at, soon; those that rest, when they have rested."""
        if self._leads.is_set():
            for group in groups:
                if group in self._resting:
                    self._missed.add(group)
                else:
                    await self._waiting.put(group)

    async def take(self) -> GroupKey | None:
        """Wait for a group that nobody works on; None: the queue is closed.

        The group is the caller's until it calls `done`, which it must in any case.
        """
        while (group := await self._waiting.take()) is not None:
            if group not in self._resting:
                return group
            self._missed.add(group)
            await self._waiting.done(group)
        return None

    async def done(self, group: GroupKey, *, again: bool) -> None:
        """Free a group; `again` has it looked at once more."""
        await self._waiting.done(group)
        if again:
            await self.add((group,))

    def rest(self, group: GroupKey, pause_s: float, *, again: bool = True) -> None:
        """Leave a group alone for a while; then look at it again.

        Not `again`: only if something happens to it meanwhile.
        """
        if again:
            self._waiting.note_retry()

        async def rest() -> None:
            await first_of(self._closed, within_s=pause_s)
            del self._resting[group]
            if again or group in self._missed:
                await self.add((group,))
            self._missed.discard(group)

        self._resting[group] = asyncio.create_task(rest(), name=f"rest {group}")

    def add_in(self, group: GroupKey, pause_s: float) -> None:
        """Have a group looked at in so many seconds, whatever happens until then."""
        loop = asyncio.get_running_loop()
        due_s = loop.time() + pause_s
        known = self._later.get(group)
        if known is not None and known[0] <= due_s:
            return
        if known is not None:
            known[1].cancel()
        timer = loop.call_at(due_s, self._end_pause, group)
        self._later[group] = (due_s, timer)

    def _end_pause(self, group: GroupKey) -> None:
        del self._later[group]
        task = asyncio.create_task(self.add((group,)), name=f"look {group}")
        self._looking.add(task)
        task.add_done_callback(self._looking.discard)

    async def close(self) -> None:
        """Let the workers end."""
        for _, timer in self._later.values():
            timer.cancel()
        self._later.clear()
        self._closed.set()
        await self._waiting.close()
