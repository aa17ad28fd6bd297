"""How services start, stop and fail, and what they say of a wrong variable."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import pytest
import structlog

from runtime.main import service_main
from runtime.run import OpenTasks, Task, serve
from runtime.settings import ServiceConfig

EVENTS: list[str] = []


@pytest.fixture(autouse=True)
def _forget() -> None:
    EVENTS.clear()


async def patient(stop: asyncio.Event) -> None:
    await stop.wait()
    EVENTS.append("drained")


async def early(stop: asyncio.Event) -> None:
    del stop


async def broken(stop: asyncio.Event) -> None:
    del stop
    raise ValueError("no")


async def stubborn(stop: asyncio.Event) -> None:
    await stop.wait()
    try:
        await asyncio.Event().wait()
    finally:
        EVENTS.append("cancelled")


def opening(**tasks: Task) -> OpenTasks:
    @asynccontextmanager
    async def open_tasks() -> AsyncIterator[Mapping[str, Task]]:
        EVENTS.append("opened")
        yield tasks
        EVENTS.append("closed")

    return open_tasks


async def test_stop_drains_every_task_and_closes() -> None:
    """In this order, and with success."""
    stop = asyncio.Event()
    asyncio.get_running_loop().call_soon(stop.set)

    assert await serve("s", opening(one=patient, two=patient), stop) == 0

    assert EVENTS == ["opened", "drained", "drained", "closed"]


@pytest.mark.parametrize("task", [early, broken])
async def test_a_task_that_ends_ends_the_service(task: Task) -> None:
    """The others are stopped first; the exit code says that something is wrong."""
    assert await serve("s", opening(one=patient, two=task), asyncio.Event()) == 1

    assert EVENTS == ["opened", "drained", "closed"]


async def test_a_straggler_is_cancelled_after_its_grace() -> None:
    """It cannot keep the process alive."""
    stop = asyncio.Event()
    asyncio.get_running_loop().call_soon(stop.set)

    assert await serve("s", opening(one=stubborn), stop, grace_s=0.01) == 0

    assert EVENTS == ["opened", "cancelled", "closed"]


async def test_a_service_that_cannot_open_fails() -> None:
    """With an exit code, not a traceback."""

    @asynccontextmanager
    async def open_tasks() -> AsyncIterator[Mapping[str, Task]]:
        raise OSError("no such place")
        yield {}

    assert await serve("s", open_tasks, asyncio.Event()) == 1


async def test_stop_ends_a_service_that_is_still_opening() -> None:
    """Such as one that waits for a bus which is away."""

    @asynccontextmanager
    async def open_tasks() -> AsyncIterator[Mapping[str, Task]]:
        await asyncio.Event().wait()
        yield {}

    stop = asyncio.Event()
    asyncio.get_running_loop().call_later(0.01, stop.set)

    async with asyncio.timeout(2):
        assert await serve("s", open_tasks, stop) == 0


PROGRAM = """
import asyncio, contextlib, sys
from runtime.run import run_service

@contextlib.asynccontextmanager
async def open_tasks():
    async def task(stop):
        print("ready", flush=True)
        await stop.wait()
    yield {"task": task}

sys.exit(run_service("s", open_tasks))
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_the_process(number: signal.Signals) -> None:
    """SIGTERM of Kubernetes and Ctrl-C: exit code 0, JSON lines on stdout."""
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": "."},
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line == "ready\n":
                break
            assert '"event": "service.started"' in line
        process.send_signal(number)
        rest = process.stdout.read()

    assert process.returncode == 0
    assert '"event": "service.stopped"' in rest
    assert '"service": "s"' in rest


def open_never(
    _config: ServiceConfig,
) -> AbstractAsyncContextManager[Mapping[str, Task]]:
    """Fail: nothing may be opened."""
    raise AssertionError


@pytest.fixture(autouse=True)
def _as_a_process(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Take no argument of pytest; give up the test's standard output with its end."""
    monkeypatch.setattr(sys, "argv", ["x"])
    yield
    structlog.reset_defaults()
    structlog.contextvars.clear_contextvars()


@pytest.mark.parametrize(
    ("variable", "value"), [("X_REPLICAS", "many"), ("X_SERVER", "nats://a")]
)
def test_a_wrong_variable_ends_the_service_before_it_begins(
    variable: str,
    value: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Wrong type and unknown name alike: 2, and one line of the log."""
    monkeypatch.setenv(variable, value)
    assert service_main("x", ServiceConfig, open_never) == 2
    (line,) = capsys.readouterr().out.splitlines()
    logged = json.loads(line)
    assert (logged["event"], logged["service"]) == ("service.failed", "x")
    assert logged["reason"].startswith(f"{variable}: ")


def test_an_argument_ends_the_service_before_it_begins(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whoever asks for help does not start what claims the lead."""
    monkeypatch.setattr(sys, "argv", ["x", "--help"])
    assert service_main("x", ServiceConfig, open_never) == 2
    (line,) = capsys.readouterr().out.splitlines()
    reason = "--help: takes no arguments; variables X_* configure it"
    assert json.loads(line)["reason"] == reason
