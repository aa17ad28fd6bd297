"""The disk of a nats-server that is full, and what is done once it has room again.

A stream that could not be written stays closed until its server is started again
(nats-server 2.15: "critical write error"), so the server is.
"""

from __future__ import annotations

import asyncio
import contextlib
import shutil

from moorings.local.nats_server import LocalServer
from runtime.bus.monitor import FULL_DISK

_LOOK_S = 5.0
_ENOUGH_BYTES = 32 << 20
"""The streams of a quiet stack take less in an hour."""
_FAILURES = (*FULL_DISK, "JetStream not enabled")
"""In nats-server's words, when it stores nothing any more."""


class DiskWatch:
    """Watches the disk of a nats-server, by what the server says of itself."""

    def __init__(self, nats: LocalServer) -> None:
        self._nats = nats
        self._due_s = 0.0
        self.is_full = False
        """True if nothing can be stored now, so nobody needs to be started again."""

    async def look(self) -> str:
        """Look every few seconds; returns what there is to say, or nothing."""
        now_s = asyncio.get_running_loop().time()
        if now_s < self._due_s:
            return ""
        self._due_s = now_s + _LOOK_S
        with contextlib.suppress(OSError):
            failure = await asyncio.to_thread(self._nats.read_failure)
            if any(words in failure for words in _FAILURES):
                return await self._judge_room()
            self.is_full = False
        return ""

    async def _judge_room(self) -> str:
        folder = self._nats.store_dir
        if shutil.disk_usage(folder).free < _ENOUGH_BYTES:
            was_full, self.is_full = self.is_full, True
            full = f"the disk of {folder} is full: nothing is stored until it has room"
            return "" if was_full else full
        await asyncio.to_thread(self._nats.stop)
        self._nats.spawn()
        self.is_full = False
        return f"nats-server was started again: the disk of {folder} has room"
