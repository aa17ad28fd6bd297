"""The bus of a process: publish, follow, read and keep bytes, all with one connection.

The one place where services meet NATS. Knows nothing of what messages mean; the
client library stops below, in `connection.py`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Literal

from contracts.process.wire import BusSettings, Outgoing, Page, Received
from contracts.subjects import STREAMS, Stream

__all__ = ["Bus", "BusSettings", "Outgoing", "Page", "Received", "Start"]

Start = Literal["last_per_subject", "all", "new"] | int
"""Where a follower begins; a number is a stream sequence."""


class Bus:
    """One supervised connection and what can be done with it."""

    @classmethod
    @asynccontextmanager
    async def open(cls, settings: BusSettings) -> AsyncIterator[Bus]:
        """Connect in the background, for ever; returns before the connection stands."""
        raise NotImplementedError
        yield cls()

    @property
    def connected(self) -> bool:
        """Whether the connection stands now."""
        raise NotImplementedError

    @property
    def connection(self) -> int:
        """How many connections there were: it grows with each reconnect."""
        raise NotImplementedError

    async def wait_connected(self, timeout_s: float | None = None) -> None:
        """Return once connected.

        Raises:
            BusUnavailableError: not within `timeout_s`.
        """
        raise NotImplementedError

    async def ensure_streams(self, streams: Sequence[Stream] = STREAMS) -> None:
        """Create what is missing; idempotent, also when several processes do it.

        Raises:
            StreamDiffersError: a stream exists with other settings.
        """
        raise NotImplementedError

    async def publish(self, message: Outgoing) -> int:
        """Store a message and give its sequence; retried until it is acknowledged.

        Raises:
            PublishRefusedError: `exists`, `stale` or `other`; nothing was stored.
            BusUnavailableError: the retry budget is spent.
        """
        raise NotImplementedError

    async def publish_many(
        self, messages: Sequence[Outgoing], window_bytes: int = 16 << 20
    ) -> None:
        """Store messages, many in flight; a retried one may come after later ones."""
        raise NotImplementedError

    async def publish_batch(self, messages: Sequence[Outgoing]) -> int:
        """Store up to 1,000 messages of one stream, all or none.

        Gives the sequence of the last one.

        Raises:
            PublishRefusedError: nothing was stored; `stale` when a fence is not ours.
        """
        raise NotImplementedError

    async def last(self, stream: str, subject: str) -> Received | None:
        """Read the last message of a subject from the leader: own writes are seen."""
        raise NotImplementedError

    async def purge(self, stream: str, subject: str) -> None:
        """Remove all messages of a subject (or wildcard)."""
        raise NotImplementedError

    def follow(
        self,
        stream: str,
        subjects: Sequence[str],
        stop: asyncio.Event,
        *,
        start: Start = "last_per_subject",
    ) -> AsyncIterator[Page]:
        """Read the stream's messages on these subjects until `stop` is set.

        `async for page in bus.follow(...)`: nothing is lost over reconnects and
        restarts; a message may come twice. A quiet stream gives an empty page at least
        every second.
        """
        raise NotImplementedError

    async def subscribe(
        self, subject: str, stop: asyncio.Event
    ) -> AsyncIterator[Received]:
        """Subscribe without a stream: `async for m in await bus.subscribe(...)`.

        The subscription stands when this returns. What is published while the
        connection is away is missed.
        """
        raise NotImplementedError

    async def put_blob(self, data: bytes) -> str:
        """Keep bytes and give their sha256; writes nothing when a young copy exists."""
        raise NotImplementedError

    async def get_blob(self, sha256: str) -> bytes:
        """Read bytes back, digest checked.

        Raises:
            BlobMissingError: they are not there, or not all.
            BlobCorruptedError: they are not what the digest says.
        """
        raise NotImplementedError
