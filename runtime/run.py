"""How a service starts and stops: the one way for all of them.

Opens resources, runs named tasks, sets `stop` on SIGTERM or SIGINT and closes in
reverse. Any task that ends before `stop` ends the process: whoever supervises it
starts it again. The only place that catches every exception. Knows no service.
"""

from __future__ import annotations

import asyncio
import gc
import signal
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager

from runtime.errors import ConfigError, EarlyReturnError, ServiceError
from runtime.health import IsReady, serve_health
from runtime.log import bind_facts, configure_logging, get_logger

Task = Callable[[asyncio.Event], Awaitable[None]]
"""A task of a service: `async def task(stop)`; returns only once `stop` is set."""
OpenTasks = Callable[[], AbstractAsyncContextManager[Mapping[str, Task]]]
"""Opens what the service needs, yields its tasks by name, closes in reverse."""

WRONG_VARIABLE = 2
"""The exit code of a service that cannot start with a variable."""
log = get_logger(__name__)


class ServiceTasks(dict[str, Task]):
    """Tasks by name, of a service that has to read before it can work."""

    def __init__(self, tasks: Mapping[str, Task], is_ready: IsReady) -> None:
        super().__init__(tasks)
        self.is_ready = is_ready
        """True once it is ready, and the one that it replaces may end."""


def new_fast_loop() -> asyncio.AbstractEventLoop:
    """Return an event loop for much traffic, which costs 2 MiB."""
    import uvloop  # noqa: PLC0415

    return uvloop.new_event_loop()


def run_service(
    name: str,
    open_tasks: OpenTasks,
    *,
    grace_s: float = 10.0,
    health_address: str = "",
    new_loop: Callable[[], asyncio.AbstractEventLoop] = new_fast_loop,
) -> int:
    """Run a service until a signal and return the exit code.

    0: stopped as asked. 1: a task failed or ended early, or nothing could be opened.
    2: because of a variable.
    """
    configure_logging(name)
    # What was imported lives as long as we do: the collector need not look at it again.
    gc.collect()
    gc.freeze()

    async def main() -> int:
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop.set)
        return await serve(name, open_tasks, stop, grace_s, health_address)

    with asyncio.Runner(loop_factory=new_loop) as runner:
        return runner.run(main())


async def serve(
    name: str,
    open_tasks: OpenTasks,
    stop: asyncio.Event,
    grace_s: float = 10.0,
    health_address: str = "",
) -> int:
    """Run a service inside this event loop until `stop` and return its exit code."""
    bind_facts(service=name)
    opened = asyncio.Event()
    readiness: list[IsReady] = []

    async def run() -> int:
        def is_ready() -> bool:
            has_read = all(has_read() for has_read in readiness)
            return opened.is_set() and not stop.is_set() and has_read

        variable = f"{name.upper()}_HEALTH_ADDRESS"
        async with serve_health(health_address, is_ready, variable):
            return await _run_tasks(open_tasks, stop, opened, grace_s, readiness)

    # First whichever comes first: the service ends by itself, or somebody says stop.
    running = asyncio.create_task(run(), name=name)
    stopping = asyncio.create_task(stop.wait())
    try:
        await asyncio.wait((running, stopping), return_when=asyncio.FIRST_COMPLETED)
        if opened.is_set():
            # Tasks have their grace inside; closing gets a little more.
            await asyncio.wait((running,), timeout=grace_s + 1.0)
        # What was still opening, or does not close, is cut short.
        if not running.done():
            running.cancel()
        return await running
    except asyncio.CancelledError:
        if not running.done():
            running.cancel()
            await asyncio.wait((running,))
        if stop.is_set():
            log.info("service.stopped", drained=False)
            return 0
        raise
    except Exception as error:  # noqa: BLE001 # the last stop: log and end
        _log_failure(error)
        return WRONG_VARIABLE if isinstance(error, ConfigError) else 1
    finally:
        stopping.cancel()


async def _run_tasks(
    open_tasks: OpenTasks,
    stop: asyncio.Event,
    opened: asyncio.Event,
    grace_s: float,
    readiness: list[IsReady],
) -> int:
    """Open, run all tasks until the first ends or `stop`, drain them, and close."""
    async with open_tasks() as tasks:
        if isinstance(tasks, ServiceTasks):
            readiness.append(tasks.is_ready)
        opened.set()
        log.info("service.started", tasks=sorted(tasks))
        running = {
            asyncio.ensure_future(_run_until_stop(task, stop)): name
            for name, task in tasks.items()
        }
        stopping = asyncio.create_task(stop.wait())
        try:
            await asyncio.wait(
                (*running, stopping), return_when=asyncio.FIRST_COMPLETED
            )
            # A task that ended although nobody had said stop ends all the others.
            failed = not stop.is_set()
            stop.set()
            _, late = await asyncio.wait(running, timeout=grace_s)
        finally:
            stopping.cancel()
            for future in running:
                future.cancel()
            await asyncio.wait(running)
        # Now that all have ended: what was wrong with which.
        for future, task_name in running.items():
            if future in late:
                log.warning("task.cancelled", task=task_name, grace_s=grace_s)
            elif not future.cancelled() and (error := future.exception()):
                failed = True
                _log_failure(error, task=task_name)
        if failed:
            log.error("service.failed")
            return 1
    log.info("service.stopped")
    return 0


async def _run_until_stop(task: Task, stop: asyncio.Event) -> None:
    await task(stop)
    if not stop.is_set():
        raise EarlyReturnError


def _log_failure(error: BaseException, **facts: str) -> None:
    log.error(
        "task.failed" if facts else "service.failed",
        reason=str(error) or type(error).__name__,
        exc_info=None if isinstance(error, ServiceError) else error,
        **facts,
    )
