"""A bus that says again what was said, read as by a service; nothing can be sent."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from typing import Any

from contracts.codec import encode
from contracts.topics import Topic
from runtime.bus.reader import _read_fetched
from runtime.refusals import Refusals
from runtime.wire import Fetched, Received, TopicBatch

Said = tuple[Topic[Any], tuple[str, ...], Any]
"""A topic, the names of a subject, and a body, or its bytes."""


class HeardBus:
    """Hands over what was said, read as by a service; nothing can be sent."""

    def __init__(self, said: Iterable[Said]) -> None:
        self._received: dict[str, list[Received]] = {}
        for number, (topic, names, body) in enumerate(said, start=1):
            received = Received(
                subject=topic.subject(*names),
                data=body if isinstance(body, bytes) else encode(body),
                sequence=number,
                time_s=0.0,
            )
            self._received.setdefault(topic.entity, []).append(received)

    async def read(
        self, topic: Topic[Any], *_: str, **__: object
    ) -> AsyncIterator[TopicBatch[Any]]:
        """Read all of a topic."""
        received = tuple(self._received.get(topic.entity, ()))
        fetched = Fetched(messages=received, synced=True)
        yield _read_fetched(fetched, {topic.entity: topic}, Refusals())
