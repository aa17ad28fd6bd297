"""A bus for who reads what is stored there."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from contracts.topics import STATE, Topic
from runtime.errors import PublishRefusedError
from runtime.wire import Incoming, Outgoing, TopicBatch


class StoredMessages:
    """A bus with these messages, each of its topic; takes what is published once."""

    def __init__(self, *messages: tuple[Topic[Any], Any]) -> None:
        self._messages = messages
        self._subjects: set[str] = set()

    async def read_existing(
        self, topic: Topic[Any], *names: str, **_: str
    ) -> AsyncIterator[TopicBatch[Any]]:
        """Hand over the messages of a topic; of objects those of a kind."""
        kinds = names[1:2] if topic is STATE else ()
        incoming = tuple(
            Incoming(topic=topic, names=(), message=said, data=b"", sequence=number)
            for number, (of, said) in enumerate(self._messages, start=1)
            if of is topic and (not kinds or said.kind in kinds)
        )
        yield TopicBatch(messages=incoming, caught_up=True)

    async def publish(self, message: Outgoing) -> int:
        """Take a message, once a subject."""
        if message.subject in self._subjects:
            raise PublishRefusedError(message.subject, "exists", "no")
        self._subjects.add(message.subject)
        return 1
