"""Links between servers that can be cut without any of them being told.

A proxy of our own on loopback, one link for each pair and direction. A cut link takes
no bytes and closes nothing, as a network that drops packets; what waits is delivered
when it is healed, as TCP would.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterable

_CHUNK = 64 << 10


class Link:
    """What listens at one port and forwards to another, as long as it is whole."""

    def __init__(self, port: int, target_port: int) -> None:
        self.port = port
        self._target_port = target_port
        self.delay_s = 0.0
        """Added to whatever goes through, either way."""
        self._whole = asyncio.Event()
        self._whole.set()
        self._tasks: set[asyncio.Task[None]] = set()

    def cut(self) -> None:
        """Let nothing through from now on."""
        self._whole.clear()

    def heal(self) -> None:
        """Let everything through again."""
        self._whole.set()

    @contextlib.asynccontextmanager
    async def forwarding(self) -> AsyncIterator[None]:
        """Listen while the block runs."""
        server = await asyncio.start_server(self._accept, "127.0.0.1", self.port)
        try:
            yield
        finally:
            server.close()
            for task in tuple(self._tasks):
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    def _accept(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        # A task of our own: asyncio complains when the one that it makes is cancelled.
        task = asyncio.ensure_future(self._join(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _join(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        with contextlib.closing(writer), contextlib.suppress(OSError):
            await self._whole.wait()
            there = await asyncio.open_connection("127.0.0.1", self._target_port)
            with contextlib.closing(there[1]):
                ways = (
                    asyncio.ensure_future(self._pump(reader, there[1])),
                    asyncio.ensure_future(self._pump(there[0], writer)),
                )
                try:
                    await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    for way in ways:
                        way.cancel()
                    await asyncio.gather(*ways, return_exceptions=True)

    async def _pump(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        while data := await reader.read(_CHUNK):
            await asyncio.sleep(self.delay_s / 2)
            await self._whole.wait()
            writer.write(data)
            await writer.drain()


@contextlib.asynccontextmanager
async def forwarding(links: Iterable[Link]) -> AsyncIterator[None]:
    """Run links while the block runs."""
    async with contextlib.AsyncExitStack() as running:
        for link in links:
            await running.enter_async_context(link.forwarding())
        yield
