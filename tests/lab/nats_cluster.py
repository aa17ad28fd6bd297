"""What servers that stand together say of a stream, each as it sees it."""

from __future__ import annotations

import asyncio
import contextlib

import msgspec

from runtime.bus.bus import Bus
from runtime.bus.jetstream import StreamInfo
from runtime.errors import BusUnavailableError


async def ask(bus: Bus, stream: str) -> StreamInfo:
    """Ask about a stream, whoever answers.

    Raises:
        BusUnavailableError: nobody does.
        msgspec.ValidationError: the answer is no.
    """
    answer = await bus._connection.request(f"$JS.API.STREAM.INFO.{stream}")
    return msgspec.json.decode(answer.data, type=StreamInfo)


async def leader_of(bus: Bus, stream: str) -> int:
    """Ask who leads a stream, as the number of the server."""
    while True:
        with contextlib.suppress(BusUnavailableError, msgspec.ValidationError):
            if leader := (await ask(bus, stream)).cluster.leader:
                return int(leader.removeprefix("nats-"))
        await asyncio.sleep(0.1)


def connected_to(bus: Bus) -> str:
    """Say which server a bus is connected to now."""
    client = bus._connection._client
    assert client is not None
    assert client.connected_url is not None
    return f"nats://{client.connected_url.netloc}"
