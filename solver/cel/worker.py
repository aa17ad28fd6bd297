"""The inside of the sandbox: a process that evaluates what it is sent.

It limits itself before it reads the first expression: address space, CPU time of one
evaluation, no core dumps, and first in line when memory runs out. It ends with its
owner, because then the connection ends. Nothing it prints is kept.
"""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import sys
from multiprocessing.connection import Connection
from pathlib import Path

from contracts.codec import encode
from solver.cel.engine import Engine
from solver.cel.wire import READY, EvaluationBatch, Limits, Reply


def main() -> None:
    """Serve the connection that the owner left open for us, until it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with Connection(int(sys.argv[1])) as connection:
        limits: Limits = connection.recv()
        _confine(limits)
        engine = Engine()
        connection.send_bytes(READY)
        with contextlib.suppress(EOFError, OSError):
            while True:
                batch: EvaluationBatch = connection.recv()
                _serve(connection, engine, batch, limits)


def _serve(
    connection: Connection, engine: Engine, batch: EvaluationBatch, limits: Limits
) -> None:
    """Answer device by device, so that the owner knows which one we died of."""
    for driver, device in batch.devices:
        signal.setitimer(signal.ITIMER_PROF, limits.cpu_s)
        verdict = engine.evaluate(batch.expression, driver, device)
        signal.setitimer(signal.ITIMER_PROF, 0)
        is_tired = _resident_bytes() > limits.resident_bytes
        connection.send_bytes(encode(Reply(verdict=verdict, is_tired=is_tired)))
        if is_tired:
            return


def _confine(limits: Limits) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (limits.memory_bytes,) * 2)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")


def _resident_bytes() -> int:
    with open("/proc/self/statm", "rb") as file:  # noqa: PTH123  # asked per verdict
        return int(file.read().split()[1]) * _PAGE


_PAGE = os.sysconf("SC_PAGE_SIZE")

if __name__ == "__main__":
    main()
