"""A process that evaluates selectors and may die of it.

Expressions are untrusted: they may loop, eat memory or hit a bug of the engine. So
they run in a process with limits on memory and time; whoever kills it costs one
expression, and the next one gets a fresh process. It is also replaced after so many
evaluations, because the engine leaks with every call of a Python function.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import resource
import signal
from collections.abc import Sequence
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess

from contracts.device import Device
from solver.problem.selectors import Verdict

MEMORY_BYTES = 1 << 30
"""Address space of the process."""
LIMIT_S = 5.0
"""Seconds for one expression over one list of devices."""
RECYCLE = 50_000
"""Evaluations after which the process is replaced."""


class Sandbox:
    """At most one process, started when it is needed."""

    def __init__(self, *, limit_s: float = LIMIT_S, recycle: int = RECYCLE) -> None:
        self._limit_s = limit_s
        self._recycle = recycle
        self._evaluations = 0
        self._process: BaseProcess | None = None
        self._connection: Connection | None = None

    @property
    def pid(self) -> int | None:
        """The process's id; None: not running."""
        return None if self._process is None else self._process.pid

    def start(self) -> None:
        """Start the process ahead of the first expression."""
        if self._process is not None and self._process.is_alive():
            return
        self.close()
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        process = context.Process(
            target=_serve, args=(theirs, os.getpid()), daemon=True
        )
        process.start()
        theirs.close()
        self._process, self._connection, self._evaluations = process, ours, 0

    def evaluate(
        self, expression: str, devices: Sequence[tuple[str, Device]]
    ) -> list[Verdict]:
        """Judge (driver, device) pairs by one expression, whatever it does."""
        if self._evaluations > self._recycle:
            self.close()
        self.start()
        try:
            verdicts = self._exchange(expression, devices)
        except (EOFError, OSError):
            self.close()
            return _failed("ended its process (out of memory?)", len(devices))
        if verdicts is None:
            self.close()
            return _failed(f"did not end within {self._limit_s:g} s", len(devices))
        self._evaluations += len(devices)
        return verdicts

    def _exchange(
        self, expression: str, devices: Sequence[tuple[str, Device]]
    ) -> list[Verdict] | None:
        """Ask the process; None: no answer in time."""
        if self._connection is None:
            raise EOFError
        self._connection.send((expression, devices))
        if not self._connection.poll(self._limit_s):
            return None
        verdicts: list[Verdict] = self._connection.recv()
        return verdicts

    def close(self) -> None:
        """End the process at once."""
        if self._process is not None:
            self._process.kill()
            self._process.join()
        if self._connection is not None:
            self._connection.close()
        self._process = self._connection = None


def _failed(why: str, count: int) -> list[Verdict]:
    verdict = Verdict(error=f"CEL runtime error: evaluation {why}")
    return [verdict] * count


def _serve(connection: Connection, parent: int) -> None:
    """Evaluate what comes until the parent is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    from solver.cel.engine import Engine  # noqa: PLC0415  # only the sandbox needs it

    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    engine = Engine()
    with contextlib.suppress(EOFError, OSError):
        while os.getppid() == parent:
            expression, devices = connection.recv()
            connection.send(engine.evaluate(expression, devices))
