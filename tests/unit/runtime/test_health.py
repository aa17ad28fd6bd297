"""What a service answers to those who ask whether it lives and is ready."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import pytest
from prometheus_client import Counter

from runtime.errors import ConfigError
from runtime.health import serve_health
from runtime.run import Task, serve


@pytest.fixture
def address() -> str:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{listener.getsockname()[1]}"


async def ask(address: str, request: str) -> str:
    """Send the first line of a request; gives the first line of the answer."""
    return (await ask_all(address, request)).partition("\r\n")[0]


async def ask_all(address: str, request: str) -> str:
    """Send the first line of a request; gives the whole answer."""
    host, _, port = address.rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(f"{request} HTTP/1.1\r\nHost: any\r\n\r\n".encode())
    answer = await reader.read()
    writer.close()
    return answer.decode()


async def test_service_is_alive_at_once_and_ready_while_its_tasks_run(
    address: str,
) -> None:
    """Not before everything is open, and not any more once it has to stop."""
    stop, asked = asyncio.Event(), asyncio.Event()
    seen: dict[str, str] = {}

    async def task(stop: asyncio.Event) -> None:
        seen["running"] = await ask(address, "GET /readyz?verbose")
        asked.set()
        await stop.wait()
        seen["stopping"] = await ask(address, "GET /readyz")
        seen["still alive"] = await ask(address, "GET /livez")

    @asynccontextmanager
    async def open_tasks() -> AsyncIterator[Mapping[str, Task]]:
        seen["opening"] = await ask(address, "GET /readyz")
        seen["alive"] = await ask(address, "GET /livez")
        yield {"task": task}

    serving = asyncio.create_task(
        serve("tested", open_tasks, stop, health_address=address)
    )
    await asked.wait()
    stop.set()

    assert await serving == 0
    assert seen == {
        "opening": "HTTP/1.1 503 Not Ready",
        "alive": "HTTP/1.1 200 OK",
        "running": "HTTP/1.1 200 OK",
        "stopping": "HTTP/1.1 503 Not Ready",
        "still alive": "HTTP/1.1 200 OK",
    }


@pytest.mark.parametrize(
    ("request_line", "answer"),
    [
        ("GET /", "HTTP/1.1 404 Not Found"),
        ("GET /livez/more", "HTTP/1.1 404 Not Found"),
        ("POST /livez", "HTTP/1.1 405 Method Not Allowed"),
        ("nonsense", "HTTP/1.1 405 Method Not Allowed"),
        ("GET", "HTTP/1.1 404 Not Found"),
        (f"GET /{'x' * 10_000}", ""),
    ],
)
async def test_anything_else_is_refused(
    address: str, request_line: str, answer: str
) -> None:
    async with serve_health(address, lambda: True, "V"):
        assert await ask(address, request_line) == answer
        assert await ask(address, "GET /readyz") == "HTTP/1.1 200 OK"


@pytest.mark.parametrize(
    "wrong", ["8080", ":8080", "localhost:http", "127.0.0.1:99999", "127.0.0.1:"]
)
async def test_wrong_address_is_named(wrong: str) -> None:
    with pytest.raises(ConfigError, match=f"^TESTED_HEALTH_ADDRESS: {wrong}: "):
        async with serve_health(wrong, lambda: True, "TESTED_HEALTH_ADDRESS"):
            pass


async def test_address_in_use_is_named(address: str) -> None:
    async with serve_health(address, lambda: True, "V"):
        with pytest.raises(ConfigError, match=f"^V: {address}: "):
            async with serve_health(address, lambda: True, "V"):
                pass


async def test_what_a_process_counts_is_in_its_metrics(address: str) -> None:
    """In the text format of Prometheus, whole."""
    Counter("tested_things", "Things that a test counts").inc(3)
    async with serve_health(address, lambda: True, "TESTED_HEALTH_ADDRESS"):
        answer = await ask_all(address, "GET /metrics")
    head, _, body = answer.partition("\r\n\r\n")
    assert "200 OK" in head
    assert "Content-Type: text/plain; version=" in head
    assert f"Content-Length: {len(body)}" in head
    assert "\ntested_things_total 3.0\n" in body
