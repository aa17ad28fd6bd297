"""What counts as connected, and how long is waited before the next attempt."""

from __future__ import annotations

import asyncio
import gc
import socket
import threading
import warnings
from asyncio import Event, StreamReader, StreamWriter

import pytest
from structlog.testing import capture_logs

from runtime.bus import connection
from runtime.bus.connection import Connection
from runtime.wire import BusSettings

INFO = b'INFO {"server_id":"x","version":"2.15.1","max_payload":1048576}\r\n'
ATTEMPTS = 5


async def test_who_is_never_answered_is_not_connected_and_waits_for_longer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """However long the server took to end the connection.

    So nats-server does where the auth callout has too much to do: without growing
    pauses all would come back at once, again and again.
    """
    pauses: list[float] = []
    enough = asyncio.Event()

    async def pause(*_: Event, within_s: float | None = None) -> None:
        pauses.append(within_s or 0.0)
        if len(pauses) == ATTEMPTS:
            enough.set()

    async def end(reader: StreamReader, writer: StreamWriter) -> None:
        writer.write(INFO)
        await reader.readuntil(b"PING\r\n")
        writer.close()

    monkeypatch.setattr(connection, "first_of", pause)
    monkeypatch.setattr(connection, "_STABLE_S", -1.0)  # any time is long
    async with await asyncio.start_server(end, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        settings = BusSettings(name="test", servers=(f"nats://127.0.0.1:{port}",))
        bus = Connection(settings)
        async with bus.keep_up(), asyncio.timeout(60):
            await enough.wait()

    assert bus.count == 0
    for attempt, pause_s in enumerate(pauses[:ATTEMPTS]):
        expected_s = connection._FIRST_PAUSE_S * 2**attempt
        assert 0.5 * expected_s <= pause_s <= 1.5 * expected_s


async def test_each_outage_is_logged_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not each attempt; and not only that of a process that begins."""
    monkeypatch.setattr(connection, "_LONGEST_PAUSE_S", 0.01)
    monkeypatch.setattr(connection, "_FIRST_PAUSE_S", 0.01)
    refusals = iter([True, True, True, False, True, True, True, False])
    served: asyncio.Queue[StreamWriter] = asyncio.Queue()

    async def serve(reader: StreamReader, writer: StreamWriter) -> None:
        if next(refusals):
            writer.close()
            return
        writer.write(INFO)
        while line := await reader.readline():
            if line == b"PING\r\n":
                writer.write(b"PONG\r\n")
            if line.startswith(b"SUB "):
                served.put_nowait(writer)
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        bus = Connection(
            BusSettings(name="test", servers=(f"nats://127.0.0.1:{port}",))
        )
        with capture_logs() as logged:
            async with asyncio.timeout(60), bus.keep_up():
                writer = await served.get()
                await bus.wait_up("first", 60)
                writer.close()
                await served.get()
                await bus.wait_up("second", 60)

    events = [line["event"] for line in logged if line["event"].startswith("bus.con")]
    assert events == ["bus.connect_failed", "bus.connected"] * 2


async def test_a_server_that_pings_before_it_answers_is_asked_again() -> None:
    """So nats-server does where a handshake takes 2 s.

    The client library then sends nothing of what it is given.
    """
    attempts = 0
    published = asyncio.Event()

    async def serve(reader: StreamReader, writer: StreamWriter) -> None:
        nonlocal attempts
        attempts += 1
        is_slow = attempts == 1
        writer.write(INFO)
        while line := await reader.readline():
            if line == b"PING\r\n":
                writer.write(b"PING\r\nPONG\r\n" if is_slow else b"PONG\r\n")
                is_slow = False
            if line.startswith(b"PUB "):
                published.set()
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        bus = Connection(
            BusSettings(name="test", servers=(f"nats://127.0.0.1:{port}",))
        )
        async with asyncio.timeout(20), bus.keep_up():
            await bus.wait_up("first", 10)
            await bus.publish("a.b", b"hello")
            await published.wait()
    assert attempts == 2


async def test_a_connection_whose_library_sends_no_more_is_replaced(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Although the server answers each PING."""
    monkeypatch.setattr(connection, "_PROBE_S", 1.0)

    async def serve(reader: StreamReader, writer: StreamWriter) -> None:
        writer.write(INFO)
        while line := await reader.readline():
            if line == b"PING\r\n":
                writer.write(b"PONG\r\n")
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        bus = Connection(
            BusSettings(name="test", servers=(f"nats://127.0.0.1:{port}",))
        )
        async with asyncio.timeout(20), bus.keep_up():
            await bus.wait_up("first", 10)
            assert bus._client is not None
            flusher = bus._client._flusher_task
            assert flusher is not None
            gone = asyncio.Event()
            bus.listeners.add(gone.set)
            flusher.cancel()
            await gone.wait()
            await bus.wait_up("second", 10)
    assert bus.count == 2


@pytest.mark.parametrize("lost", [False, True])
def test_who_leaves_a_server_that_reads_no_more_leaves_no_connection(
    monkeypatch: pytest.MonkeyPatch, *, lost: bool
) -> None:
    """What was to be sent to it is dropped, and the socket is closed.

    Also of a connection that is `lost` already, and just being closed.
    """
    monkeypatch.setattr(connection, "_CLOSE_S", 60 if lost else 0.1)
    monkeypatch.setattr(connection, "_PROBE_S", 2)
    left = threading.Event()

    def serve(listener: socket.socket) -> None:
        accepted, _ = listener.accept()
        with accepted, accepted.makefile("rb") as lines:
            accepted.sendall(INFO)
            for _ in range(2):  # one of the client library, one of ours
                while lines.readline() != b"PING\r\n":
                    pass
                accepted.sendall(b"PONG\r\n")
            left.wait(60)

    async def publish_and_leave(url: str) -> None:
        bus = Connection(BusSettings(name="test", servers=(url,)))
        async with asyncio.timeout(60), bus.keep_up():
            await bus.wait_up("first", 60)
            for _ in range(7):
                await bus.publish("never.read", bytes(1_000_000))
            if lost:
                gone = asyncio.Event()
                bus.listeners.add(gone.set)
                await gone.wait()

    gc.collect()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = threading.Thread(target=serve, args=(listener,))
        server.start()
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            asyncio.run(
                publish_and_leave(f"nats://127.0.0.1:{listener.getsockname()[1]}")
            )
            gc.collect()
        left.set()
        server.join()
    assert [str(item.message) for item in said] == []
