"""A process that evaluates selectors and may die of it.

Expressions are untrusted: they may loop, eat memory or hit a bug of the engine. So
they run in a process with limits on memory and time. Whoever kills it costs one
verdict, and the next device gets a fresh process; who kills several is given up.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from multiprocessing.connection import Connection

from contracts.device import Device
from contracts.errors import DecodeError
from solver.cel.refusals import runtime_error
from solver.cel.wire import REPLY, EvaluationBatch, Limits
from solver.errors import SandboxUnavailableError
from solver.selectors.table import Verdict

BATCH = 256
"""Devices that are sent at once."""
MAX_REPLY_BYTES = 1 << 16
KILLED = runtime_error("the evaluation was killed from outside")
"""Says nothing of the expression: worth asking again later."""


class Sandbox:
    """At most one process, started when it is needed; for one thread at a time.

    `close` it in the end. `start` only saves the first `evaluate` the waiting.
    """

    def __init__(self, limits: Limits | None = None) -> None:
        self._limits = limits or Limits()
        self._served = 0
        self._is_ready = False
        self._process: subprocess.Popen[bytes] | None = None
        self._connection: Connection | None = None
        self.evaluations = 0
        """Verdicts asked of any process so far."""

    @property
    def pid(self) -> int | None:
        """The process's id; None: not running."""
        return None if self._process is None else self._process.pid

    def start(self) -> None:
        """Start the process ahead of the first expression; does not wait for it."""
        if self._process is not None and self._process.poll() is None:
            return
        self.close()
        ours, theirs = socket.socketpair()
        path = os.pathsep.join(entry for entry in sys.path if entry)
        with theirs:
            self._process = subprocess.Popen(  # noqa: S603  # our own module
                [sys.executable, "-P", "-m", "solver.cel.worker", str(theirs.fileno())],
                pass_fds=(theirs.fileno(),),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={"PYTHONPATH": path},
            )
        self._connection = Connection(ours.detach())
        # A process that died already is noticed when it does not answer.
        with contextlib.suppress(OSError):
            self._connection.send(self._limits)
        self._served = 0
        self._is_ready = False

    def evaluate(
        self, expression: str, devices: Sequence[tuple[str, Device]]
    ) -> list[Verdict]:
        """Judge (driver, device) pairs by one expression, whatever it does.

        Raises:
            SandboxUnavailableError: no process can be started here.
        """
        verdicts: list[Verdict] = []
        losses = 0
        was_killed = False
        while len(verdicts) < len(devices):
            # An expression that cost several processes has the last verdict for good.
            if losses >= self._limits.losses:
                return verdicts + verdicts[-1:] * (len(devices) - len(verdicts))
            first = len(verdicts)
            batch = tuple(devices[first : first + BATCH])
            verdicts += self._read_replies(EvaluationBatch(expression, batch))
            # Fewer replies than devices: the process died of the next device, unless it
            # was replaced in time.
            if len(verdicts) < min(first + BATCH, len(devices)) and self.pid:
                loss = self._bury()
                # A kill from outside is no fault of the device: once it is asked again.
                if loss == KILLED and not was_killed:
                    was_killed = True
                    continue
                losses += 1
                verdicts.append(loss)
        return verdicts

    def _read_replies(self, batch: EvaluationBatch) -> list[Verdict]:
        """Ask the process; fewer replies than devices and a process left: it died."""
        verdicts: list[Verdict] = []
        self.start()
        try:
            if not self._is_ready:
                self._receive()
                self._is_ready = True
            self._send(batch)
            for _ in batch.devices:
                reply = REPLY.decode(self._receive())
                verdicts.append(reply.verdict)
                self._served += 1
                self.evaluations += 1
                if reply.is_tired or self._served >= self._limits.evaluations:
                    self.close()
                    break
        except (EOFError, OSError, DecodeError):
            return verdicts
        return verdicts

    def _send(self, batch: EvaluationBatch) -> None:
        if self._connection is None:
            raise EOFError
        self._connection.send(batch)

    def _receive(self) -> bytes:
        if self._connection is None or not self._connection.poll(self._limits.wall_s):
            raise EOFError
        return self._connection.recv_bytes(MAX_REPLY_BYTES)

    def _bury(self) -> Verdict:
        """End a process that did not answer, and say what became of it."""
        # First wait for its end: its exit code says which limit it passed.
        process = self._process
        code = 0
        if process is not None:
            try:
                code = process.wait(timeout=1.0)
            except subprocess.TimeoutExpired:
                code = -signal.SIGALRM
        is_ready = self._is_ready
        self.close()
        # One that never was ready did not die of an expression.
        if code > 0 and not is_ready:
            raise SandboxUnavailableError(code)
        limits = self._limits
        match -code:
            case signal.SIGPROF:
                return runtime_error(f"takes more than {limits.cpu_s:g} s of CPU time")
            case signal.SIGALRM:
                return runtime_error(f"gave no answer within {limits.wall_s:g} s")
            case signal.SIGKILL:
                return KILLED
            case _:
                return runtime_error(
                    f"crashes the evaluation (it may use {limits.memory_bytes >> 20} "
                    "MiB of memory)"
                )

    def close(self) -> None:
        """End the process at once."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        if self._connection is not None:
            self._connection.close()
        self._process = self._connection = None
