"""Fixtures for everybody: a real nats-server, and a bus with all streams."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from contracts.process.bus import Bus, BusSettings
from moorings.nats import LocalServer
from tests.upstream_oracle import NO_GO, REQUIRED, built


def pytest_configure() -> None:
    """Say that there is no event loop yet.

    Otherwise pytest-asyncio asks for the current one, which makes a loop that nobody
    closes and a warning in whatever test comes next (Python < 3.14).
    """
    asyncio.set_event_loop(None)


@pytest.fixture(scope="session")
def nats_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server that all tests of the session share."""
    server = LocalServer(tmp_path_factory.mktemp("nats"))
    server.start()
    yield server.url
    server.stop()


@pytest.fixture
def nats_server(tmp_path: Path) -> Iterator[LocalServer]:
    """A server of the test's own, to be killed and started again."""
    server = LocalServer(tmp_path / "nats")
    server.start()
    yield server
    server.stop()


@pytest.fixture
async def bus(nats_server: LocalServer) -> AsyncIterator[Bus]:
    """A bus with all streams on a fresh server."""
    async with Bus.open(BusSettings(name="test", servers=(nats_server.url,))) as bus:
        await bus.wait_connected(10)
        await bus.ensure_streams()
        yield bus


@pytest.fixture(scope="session")
def upstream_oracle() -> Path:
    """Upstream's allocator as a program; CI requires it, elsewhere it may lack."""
    program = built("oracle")
    if program is None and os.environ.get(REQUIRED) == "1":
        pytest.fail(NO_GO)
    if program is None:
        pytest.skip(NO_GO)
    return program
