"""A relay as services keep one, for tests of a bus beside which no service runs."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import msgspec

from runtime.users import OUTSIDE_ACCOUNTS
from runtime.wire import BusSettings

CONNECTIONS = 1 + len(OUTSIDE_ACCOUNTS)
STARTED_S = 300.0


def start_relay(settings: BusSettings, log: Path) -> subprocess.Popen[bytes]:
    """Start it, and return when it listens; whoever started it ends it."""
    with log.open("wb") as written:
        process = subprocess.Popen(
            [sys.executable, "-m", "runtime.bus.relaying"],
            stdin=subprocess.PIPE,
            stdout=written,
            stderr=written,
        )
    assert process.stdin is not None
    process.stdin.write(msgspec.json.encode(settings))
    process.stdin.close()
    until_s = time.monotonic() + STARTED_S
    while log.read_text().count("bus.connected") < CONNECTIONS:
        assert time.monotonic() < until_s, log.read_text()
        time.sleep(0.05)
    return process
