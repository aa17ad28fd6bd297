"""Reads the last message of nodes that say something new too often, and logs them."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from time import monotonic
from typing import Any

from contracts import topics
from contracts.topics import Topic
from runtime.bus.bus import Bus
from runtime.errors import BusError
from runtime.log import get_logger
from runtime.refusals import Refusals
from runtime.waits import first_of
from runtime.wire import Incoming, TopicBatch
from solver.service import metrics
from solver.service.pace import EVERY_S, Pace

PACED_TOPICS = (topics.INVENTORIES, topics.HEALTH, topics.HEARTBEATS)
"""What node agents say: each message is the whole of its subject."""
_TOLD_S = 60.0
"""How often it is told of a subject that messages of it are passed over."""
_TOPICS: dict[str, Topic[Any]] = {topic.entity: topic for topic in PACED_TOPICS}

Take = Callable[[Topic[Any], TopicBatch[Any]], None]
log = get_logger(__name__)


class PacedReader:
    """Keeps the readers of node agents' topics to a pace."""

    def __init__(self, bus: Bus, refusals: Refusals, take: Take) -> None:
        """`take` is handed the messages that are read."""
        self._bus = bus
        self._refusals = refusals
        self._take = take
        self._pace = Pace()
        self._untold: Counter[str] = Counter()
        self._told_s: dict[str, float] = {}

    def skips(self, subject: str) -> bool:
        """True if a message on this subject is passed over for now."""
        return self._pace.passes_over(subject, monotonic())

    async def run(self, stop: asyncio.Event) -> None:
        """Read what was passed over, when its turn has come."""
        while not stop.is_set():
            for subject in self._pace.take_due(monotonic()):
                await self._read_last(subject)
            self._tell(monotonic())
            await first_of(stop, within_s=EVERY_S)

    async def _read_last(self, subject: str) -> None:
        topic = _TOPICS[subject.partition(".")[0]]
        last: Incoming[Any] | None = None
        try:
            with self._refusals.guard(subject):
                last = await self._bus.read_last(topic, *topic.names_of(subject))
        except BusError as error:
            log.warning("message.delayed", subject=subject, reason=str(error))
            self._pace.put_back(subject)
        if last is not None:
            self._take(topic, TopicBatch(messages=(last,), caught_up=False))

    def _tell(self, now_s: float) -> None:
        """Count what was passed over, and log it, of each subject now and then."""
        passed = self._pace.take_passed()
        for subject, count in passed.items():
            metrics.PASSED_OVER.labels(subject.partition(".")[0]).inc(count)
        self._untold.update(passed)
        told_s = self._told_s
        self._told_s = {s: at for s, at in told_s.items() if at > now_s - _TOLD_S}
        for subject in self._untold.keys() - self._told_s.keys():
            count = self._untold.pop(subject)
            log.warning("messages.passed_over", subject=subject, count=count)
            self._told_s[subject] = now_s
