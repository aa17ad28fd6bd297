"""The sockets of one session of aiohttp: none outlives it.

Whoever gives up a request over TLS leaves a connection that waits for the server's
farewell. aiohttp forgets it, and nobody would close it when the loop ends first.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from weakref import WeakSet

from aiohttp import AddrInfoType, SocketFactoryType

_TURNS = 1000
_TURN_S = 0.001


@asynccontextmanager
async def closing_sockets() -> AsyncIterator[SocketFactoryType]:
    """Give `aiohttp.TCPConnector` a maker of sockets, all of which are closed at exit.

    Enter it before the session, so that it is left after it.
    """
    made: WeakSet[socket.socket] = WeakSet()

    def make(address: AddrInfoType) -> socket.socket:
        family, kind, protocol, _, _ = address
        opened = socket.socket(family, kind, protocol)
        made.add(opened)
        return opened

    try:
        yield make
    finally:
        left = [opened for opened in made if opened.fileno() >= 0]
        for opened in left:
            with suppress(OSError):  # its peer was faster
                opened.shutdown(socket.SHUT_RDWR)
        for _ in range(_TURNS):
            if all(opened.fileno() < 0 for opened in left):
                break
            await asyncio.sleep(_TURN_S)  # the loop closes what has ended
