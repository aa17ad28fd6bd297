"""Reads of a bus what the doctor judges; sends nothing there."""

from __future__ import annotations

import asyncio
import json
import ssl
import time
from collections import Counter
from collections.abc import Awaitable
from typing import Any, TypeVar

from contracts.fence import SolverSeen
from contracts.ids import NodeName
from contracts.streams import STREAMS, Stream
from contracts.topics import HEALTH, HEARTBEATS, INVENTORIES, Topic
from moorings.bus_client import Client
from moorings.doctor.facts import BusFacts, Clock, Reading, ServerMonitor, Unread
from moorings.errors import CannotReadError
from runtime.bus.jetstream import NO_STREAM
from runtime.bus.monitor import ask_monitor
from runtime.bus.streams import StreamHealth
from runtime.errors import BusError, BusRefusedError, NotAllowedError

T = TypeVar("T")
_MONITOR_S = 5.0
_LISTEN_S = 1.0
_NOBODY_MADE_IT = "start a solver or a publisher: they create it"
_NOBODY_ANSWERS = (
    "bring back a majority of the servers, and a solver or publisher: they ask for you"
)


async def observe_bus(
    client: Client, server: str, monitor: str, ca_file: str
) -> BusFacts:
    """Read a bus that answers; `monitor` is the URL of a server's monitoring port."""
    streams: dict[str, Reading[StreamHealth]] = {}
    clock: Reading[Clock] = Unread("no stream could be read")
    for stream in STREAMS:
        asked_s = time.time()
        health = streams[stream.name] = await _read_stream(client, stream)
        if isinstance(health, StreamHealth):
            clock = Clock.compare(asked_s, health.time_s, time.time())
    return BusFacts(
        server=server,
        version=client.bus.server_version,
        streams=streams,
        clock=clock,
        monitor=await asyncio.to_thread(_read_monitor, monitor, ca_file),
        inventories=await _read_or_unread(client.fetch_inventories()),
        heard=await _read_or_unread(_fetch_heard(client)),
        said=await _count_said(client),
        leader=await _read_or_unread(client.fetch_leader()),
        cluster=client.cluster,
        solver=await _read_or_unread(_fetch_solver(client)),
        undecided=await _read_or_unread(client.fetch_longest_undecided()),
    )


async def _read_or_unread(reading: Awaitable[T]) -> Reading[T]:
    try:
        return await reading
    except CannotReadError as error:
        return Unread(str(error), "use the bus user `viewer`")


async def _fetch_heard(client: Client) -> frozenset[str]:
    return frozenset([str(seen.node) async for seen, _ in client.read(HEARTBEATS)])


async def _count_said(client: Client) -> dict[NodeName, float]:
    """Listen for a moment; returns what each node says of its devices, a second."""
    said, stop = Counter[NodeName](), asyncio.Event()

    async def listen(topic: Topic[Any]) -> None:
        async for batch in client.bus.read(
            topic, client.cluster, stop=stop, start="new", survives_restart=True
        ):
            said.update(NodeName(incoming.names[1]) for incoming in batch.messages)

    async with asyncio.TaskGroup() as listeners:
        for topic in (INVENTORIES, HEALTH):
            listeners.create_task(listen(topic))
        await asyncio.sleep(_LISTEN_S)
        stop.set()
    return {node: count / _LISTEN_S for node, count in said.items()}


async def _fetch_solver(client: Client) -> SolverSeen | None:
    return (await client.fetch_solvers()).get(client.cluster)


async def _read_stream(client: Client, stream: Stream) -> Reading[StreamHealth]:
    try:
        return await client.bus.stream_health(stream)
    except NotAllowedError as error:
        return Unread(f"not allowed for user {error.user!r} of the bus")
    except BusRefusedError as error:
        if error.code == NO_STREAM:
            return Unread("there is no such stream", _NOBODY_MADE_IT)
        return Unread(error.reason, "ask whoever runs NATS")
    except BusError as error:
        return Unread(str(error), _NOBODY_ANSWERS)


def _read_monitor(url: str, ca_file: str) -> Reading[ServerMonitor]:
    """Ask a server how it keeps what it stores."""
    if not url:
        return Unread(
            "only its monitoring port says how often it syncs to disk",
            "give that port: --monitor https://HOST:8222",
        )
    if not url.startswith(("http://", "https://")):
        return Unread(
            f"{url} is not an http:// or https:// address", "correct --monitor"
        )
    try:
        trusted = ssl.create_default_context(cafile=ca_file or None)
        said, health = (
            json.loads(
                ask_monitor(
                    f"{url.rstrip('/')}/{page}", timeout_s=_MONITOR_S, trusted=trusted
                )
            )
            for page in ("varz", "healthz")
        )
        config = said["jetstream"]["config"]
        always = config.get("sync_always", False)
        return ServerMonitor(
            failure=str(health.get("error", "")),
            sync="always" if always else _format_nanoseconds(config["sync_interval"]),
            max_payload=int(said["max_payload"]),
            room_bytes=int(config["max_storage"]),
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        words = f"{type(error).__name__}: {error}"
        return Unread(f"{url}: {words}", "check --monitor, and MOORINGS_BUS_CA_FILE")


def _format_nanoseconds(interval: object) -> str:
    return f"{int(str(interval)) / 1e9:g} s"
