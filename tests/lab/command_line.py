"""The executable as people call it, with a state home of its own."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import AbstractAsyncContextManager, contextmanager
from pathlib import Path
from types import MappingProxyType

from moorings.bus_client import Client, open_client
from moorings.local.bus_users import LocalUsers
from moorings.local.state import find_stack

MAIN = [sys.executable, "-c", "from moorings.cli.main import main; main()"]


def moorings(
    *arguments: str,
    home: Path,
    server: str = "",
    stdin: str = "",
    environment: Mapping[str, str] = MappingProxyType({}),
) -> subprocess.CompletedProcess[str]:
    """Run one command to its end."""
    own = {"XDG_STATE_HOME": str(home), "COLUMNS": "100"}
    if server:
        own["MOORINGS_SERVER"] = server
    return subprocess.run(
        [*MAIN, *arguments],
        env={**os.environ, **own, **environment},
        input=stdin,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


async def drain(
    kubeconfig: Path, home: Path, *arguments: str
) -> subprocess.CompletedProcess[str]:
    """Run `moorings agent drain` as the admin of a cluster."""
    where = f"--kubeconfig={kubeconfig}"
    return await asyncio.to_thread(
        moorings, "agent", "drain", where, *arguments, home=home
    )


def open_as(user: str, home: Path) -> AbstractAsyncContextManager[Client]:
    """Connect to the bus of the `moorings up` that has its state in a home."""
    stack = find_stack(home / "moorings")
    login = LocalUsers(stack.users).login_of(user)
    return open_client(stack.server, "local", login=login)


@contextmanager
def stack_up(home: Path, *options: str) -> Iterator[subprocess.Popen[str]]:
    """Run `moorings up` with the small fleet; its first line is yet to be read."""
    process = subprocess.Popen(
        [*MAIN, "up", "--fleet", "small", *options],
        env={**os.environ, "XDG_STATE_HOME": str(home)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        yield process
    finally:
        process.send_signal(signal.SIGINT)
        rest, _ = process.communicate(timeout=180)
        assert process.returncode == 0, rest


def read_server(process: subprocess.Popen[str]) -> str:
    """Read the address in the first line of `moorings up`, once it is ready."""
    assert process.stdout is not None
    first = process.stdout.readline()
    assert first.startswith("ready: nats://127.0.0.1:"), first + process.stdout.read()
    return first.split()[1].rstrip(",")
