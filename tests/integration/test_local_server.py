"""The local nats-server: it starts, comes back, and dies with its owner."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from contracts.streams import STREAMS
from moorings.errors import LocalServerError
from moorings.local.nats_server import LocalServer, open_local_nats
from runtime.bus.bus import Bus
from runtime.wire import BusSettings, Outgoing


async def test_data_outlives_a_server(tmp_path: Path) -> None:
    """The same folder gives the same streams."""
    subject = "state.v1.c.k.x"
    async with (
        open_local_nats(tmp_path) as url,
        Bus.open(BusSettings(name="t", servers=(url,))) as bus,
    ):
        await bus.wait_connected(5)
        await bus.ensure_streams(STREAMS)
        await bus.publish(Outgoing(subject=subject, data=b"kept"))

    async with (
        open_local_nats(tmp_path) as url,
        Bus.open(BusSettings(name="t", servers=(url,))) as bus,
    ):
        stored = await bus.last("STATE", subject)
        assert stored is not None
        assert stored.data == b"kept"


async def test_a_bus_may_come_before_its_server(tmp_path: Path) -> None:
    """It connects once the server is there."""
    server = LocalServer(tmp_path)
    async with Bus.open(BusSettings(name="t", servers=(server.url,))) as bus:
        assert not bus.connected
        server.start()
        try:
            await bus.wait_connected(10)
            assert bus.connection == 1
        finally:
            server.stop()


def test_a_server_that_cannot_start_says_why(tmp_path: Path) -> None:
    """Here: its port is taken."""
    first = LocalServer(tmp_path / "a")
    first.start()
    try:
        second = LocalServer(tmp_path / "b", first.port)
        with pytest.raises(LocalServerError, match="address already in use"):
            second.start()
    finally:
        first.stop()


OWNER = """
import sys, time
from pathlib import Path
from moorings.local.nats_server import LocalServer
server = LocalServer(Path(sys.argv[1]))
server.start()
print(server.pid, flush=True)
time.sleep(60)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="Linux sends the signal")
def test_a_server_dies_with_its_owner(tmp_path: Path) -> None:
    """Even when the owner is killed."""
    with subprocess.Popen(
        [sys.executable, "-c", OWNER, str(tmp_path)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": "."},
    ) as owner:
        assert owner.stdout is not None
        pid = int(owner.stdout.readline())
        assert _runs(pid)
        owner.kill()

    until_s = time.monotonic() + 5
    while _runs(pid) and time.monotonic() < until_s:
        time.sleep(0.02)
    assert not _runs(pid)


def _runs(pid: int) -> bool:
    status = Path(f"/proc/{pid}/status")
    return status.exists() and "State:\tZ" not in status.read_text(encoding="utf-8")
