"""Follows the bus for a console: every topic into one model, and its listeners."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

from contracts.topics import (
    CONFIRMATIONS,
    FENCE,
    GANG_TOPICS,
    HEALTH,
    HEARTBEATS,
    INVENTORIES,
    LEADERS,
    REPORTS,
    SOLVES,
    STATE,
    Topic,
)
from moorings.bus_client import Client
from moorings.console.model import ConsoleModel, Update
from runtime.bus.follower import Start
from runtime.bus.reader import CaughtUp
from runtime.errors import RestartError
from runtime.log import get_logger
from runtime.refusals import Refusals
from runtime.waits import first_of, together
from runtime.wire import Refused

TOPICS: tuple[Topic[Any], ...] = (
    INVENTORIES,
    HEALTH,
    HEARTBEATS,
    STATE,
    *GANG_TOPICS,
    REPORTS,
    LEADERS,
    FENCE,
    SOLVES,
)
_STARTS: dict[str, Start] = {CONFIRMATIONS.entity: "all", SOLVES.entity: "all"}
"""That gates opened hides which pods were written; a solve has two messages."""
GATHER_S = 0.02
"""Changes within this time are shown together."""
LOOK_S = 1.0
"""Longest time between checks of what only the clock changes."""
IDLE_SHARE = 2
"""Between two looks so many times as long as one takes, for others to work."""
MOST_BEHIND = 64
"""Updates that wait for a page; one further behind is sent everything again."""
MOST_UNREAD = 10
"""Messages that are named when they could not be read: the last ones."""

log = get_logger(__name__)


class Following:
    """One model of the bus, kept up to date; many may listen to what changes."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._listeners: set[asyncio.Queue[Update | None]] = set()
        self._changed = asyncio.Event()
        self._caught_up = CaughtUp(TOPICS)
        self._refusals = Refusals()
        self._unread = 0
        self._last_unread: deque[dict[str, str]] = deque(maxlen=MOST_UNREAD)
        self.model = ConsoleModel(client.cluster)

    @property
    def is_caught_up(self) -> bool:
        """True if everything that existed has been read."""
        return bool(self._caught_up)

    async def run(self, stop: asyncio.Event) -> None:
        """Follow until `stop`; what was read is forgotten when a stream lost some."""
        while not stop.is_set():
            readers = (self._read_topic(topic, stop) for topic in TOPICS)
            try:
                await together((*readers, self._send_updates(stop)))
            except RestartError as error:
                log.warning("console.restarted", reason=str(error))
                self._caught_up = CaughtUp(TOPICS)
                self.model = ConsoleModel(self._client.cluster)
                self._drop_all()

    @asynccontextmanager
    async def listen(self) -> AsyncIterator[AsyncIterator[Update]]:
        """Listen while the block runs: everything first, then what changes."""
        queue: asyncio.Queue[Update | None] = asyncio.Queue(MOST_BEHIND)
        await self._caught_up.event.wait()
        self._send_changes()
        queue.put_nowait(self.model.whole())
        self._listeners.add(queue)
        try:
            yield _drain_queue(queue)
        finally:
            self._listeners.discard(queue)

    async def _read_topic(self, topic: Topic[Any], stop: asyncio.Event) -> None:
        batches = self._client.bus.read(
            topic, self._client.cluster, stop=stop, start=_STARTS.get(topic.entity)
        )
        loop = asyncio.get_running_loop()
        async for batch in batches:
            for refused in batch.refused:
                self._note_unread(refused)
            for incoming in batch.messages:
                with self._refusals.guard(incoming) as guarded:
                    self.model.take(incoming, loop.time())
                if guarded.refused is not None:
                    self._note_unread(guarded.refused)
            self._caught_up.note(topic, batch)
            if batch.messages or batch.refused:
                self._changed.set()

    async def _send_updates(self, stop: asyncio.Event) -> None:
        """Send changes to all listeners, a few times a second at most."""
        loop = asyncio.get_running_loop()
        await first_of(self._caught_up.event, stop)
        while not stop.is_set():
            await first_of(self._changed, stop, within_s=LOOK_S)
            await first_of(stop, within_s=GATHER_S)
            self._changed.clear()
            began_s = loop.time()
            self._send_changes()
            await first_of(stop, within_s=IDLE_SHARE * (loop.time() - began_s))

    def _send_changes(self) -> None:
        """Send listeners what changed since the last time."""
        now_s = asyncio.get_running_loop().time()
        update = self.model.update(now_s, self._unread, list(self._last_unread))
        if not update:
            return
        for queue in list(self._listeners):
            if queue.full():
                self._drop_listener(queue)
            else:
                queue.put_nowait(update)

    def _note_unread(self, refused: Refused) -> None:
        self._unread += 1
        why = ": ".join(filter(None, (refused.field, refused.reason)))
        self._last_unread.append({"subject": refused.subject, "why": why})

    def _drop_all(self) -> None:
        for queue in list(self._listeners):
            self._drop_listener(queue)

    def _drop_listener(self, queue: asyncio.Queue[Update | None]) -> None:
        """Drop a listener: it comes again, and is sent everything."""
        self._listeners.discard(queue)
        while queue.full():
            with suppress(asyncio.QueueEmpty):
                queue.get_nowait()
        queue.put_nowait(None)


async def _drain_queue(queue: asyncio.Queue[Update | None]) -> AsyncIterator[Update]:
    while (update := await queue.get()) is not None:
        yield update
