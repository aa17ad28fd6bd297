"""Processes that evaluate selectors and may die of it, or be taken over by it.

Expressions are untrusted: they may loop, eat memory or hit a bug of the engine. So a
process with limits on memory and time, and without files and network, forks one for
each expression, which nobody shares. Whoever kills it costs one verdict, and the next
device gets a fresh one; who kills several is given up.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from multiprocessing.reduction import send_handle

from contracts.device import Device
from contracts.errors import DecodeError
from solver.cel.refusals import runtime_error
from solver.cel.wire import (
    CONFINEMENT,
    REPLY,
    UNLIMITED,
    Allowance,
    Confinement,
    EvaluationBatch,
    Limits,
)
from solver.errors import SandboxUnavailableError
from solver.selectors.table import Verdict

BATCH = 256
"""Devices that are sent at once."""
MAX_REPLY_BYTES = 1 << 16
_SAID_BYTES = 1 << 16
"""As much as a pipe holds: what is said at a start, while nobody reads."""
_WORDS = 500
"""Characters of it that are told."""
_END_S = 1.0
"""So long a process may take to end when its connection has."""
KILLED = runtime_error("the evaluation was killed from outside")
"""Says nothing of the expression: worth asking again later."""


class Sandbox:
    """At most one expression at a time, whose process stays until the next one.

    For one thread at a time; `close` it in the end. `start` only saves the first
    `evaluate` the waiting.
    """

    def __init__(
        self,
        limits: Limits | None = None,
        *,
        on_loss: Callable[[], None] | None = None,
    ) -> None:
        """`on_loss` is called for each process that did not answer."""
        self.limits = limits or Limits()
        self._on_loss = on_loss
        self._served = 0
        self._confinement: Confinement | None = None
        self._process: subprocess.Popen[bytes] | None = None
        """It forks those that evaluate."""
        self._control: Connection | None = None
        self._expression = ""
        """What the process at the other end of `_connection` evaluates."""
        self._connection: Connection | None = None
        self._pid = 0
        self._is_spent = False
        self._said = ""
        """What the last process that ended said last, before it was ready."""
        self.evaluations = 0
        """Verdicts asked of any process so far."""
        self.spent_s = 0.0
        """CPU time that the last call took; each lost process counts as a look."""
        self.losses = 0
        """Processes that the last call cost."""

    @property
    def pid(self) -> int | None:
        """The id of the process that evaluates, or will; None: not running."""
        own = None if self._process is None else self._process.pid
        return own if self._connection is None else self._pid

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
                stderr=subprocess.PIPE,
                env={"PYTHONPATH": path},
            )
        self._control = Connection(ours.detach())
        # A process that died already is noticed when it does not answer.
        with contextlib.suppress(OSError):
            self._control.send(self.limits)

    def wait_ready(self) -> Confinement:
        """Wait for the process, and tell what the kernel takes from it.

        One that is killed, such as by the kernel for its memory, is started once more.

        Raises:
            SandboxUnavailableError: no process can be started here.
        """
        code = self._try_ready()
        if code < 0:
            code = self._try_ready()
        if self._confinement is None:
            raise SandboxUnavailableError(code, self._said)
        return self._confinement

    def _try_ready(self) -> int:
        """Start and wait until it is ready; gives its exit code if it ended before."""
        self.start()
        try:
            self._await_ready()
        except (EOFError, OSError, DecodeError):
            return self._end()
        return 0

    def evaluate(
        self,
        expression: str,
        devices: Sequence[tuple[str, Device]],
        allowance: Allowance = UNLIMITED,
    ) -> list[Verdict]:
        """Judge (driver, device) pairs by one expression, whatever it does.

        Fewer verdicts than devices: the allowance is used up, or `losses` is reached.

        Raises:
            SandboxUnavailableError: no process can be started here.
        """
        verdicts: list[Verdict] = []
        self.spent_s, self.losses, self._is_spent = 0.0, 0, False
        was_killed = False
        while len(verdicts) < len(devices) and not self._is_spent:
            if self.losses >= self.limits.losses:
                break
            first = len(verdicts)
            batch = tuple(devices[first : first + BATCH])
            left = allowance.less(self.spent_s, first)
            replies, has_died = self._read_replies(
                EvaluationBatch(expression, batch, left)
            )
            verdicts += replies
            if has_died:
                loss = self._bury()
                # A kill from outside is no fault of the device: once it is asked again.
                if loss == KILLED and not was_killed:
                    was_killed = True
                    continue
                self.losses += 1
                self.spent_s += self.limits.cpu_s
                verdicts.append(loss)
                self._is_spent = not allowance.covers(self.spent_s, len(verdicts))
        return verdicts

    def _read_replies(self, batch: EvaluationBatch) -> tuple[list[Verdict], bool]:
        """Ask the process; fewer replies than devices: it died (True), or is replaced.

        It died of the first device that has no reply.
        """
        verdicts: list[Verdict] = []
        self.start()
        try:
            self._await_ready()
            connection = self._open(batch.expression)
            connection.send(batch)
            for _ in batch.devices:
                reply = REPLY.decode(self._receive(connection))
                verdicts.append(reply.verdict)
                self._served += 1
                self.evaluations += 1
                self.spent_s += reply.cpu_s
                self._is_spent = reply.is_spent
                if reply.is_tired or self._served >= self.limits.evaluations:
                    self._end_expression()
                    break
                if reply.is_spent:
                    break
        except (EOFError, OSError, DecodeError):
            return verdicts, True
        return verdicts, False

    def _await_ready(self) -> Confinement:
        if self._confinement is None:
            self._confinement = CONFINEMENT.decode(self._receive(self._control))
        return self._confinement

    def _open(self, expression: str) -> Connection:
        """Give the connection to the process of an expression, a new one if need be."""
        if self._connection is not None and self._expression == expression:
            return self._connection
        self._end_expression()
        self.start()
        self._await_ready()
        if self._control is None or self._process is None:
            raise EOFError
        ours, theirs = socket.socketpair()
        with theirs:
            send_handle(self._control, theirs.fileno(), self._process.pid)
        self._connection = Connection(ours.detach())
        self._expression, self._served = expression, 0
        self._pid = int(self._receive(self._control))
        return self._connection

    def _end_expression(self) -> int:
        """End the process of the last expression; gives its exit code."""
        if self._connection is None:
            return 0
        self._connection.close()
        self._connection = None
        # Without its connection it ends by itself, unless it is busy.
        try:
            if self._control is not None and self._control.poll(_END_S):
                return int(self._control.recv_bytes(MAX_REPLY_BYTES))
        except (EOFError, OSError):
            pass
        return self._end()

    def _end(self) -> int:
        """End all; gives the exit code of what forks, or SIGALRM if it is busy."""
        code = -signal.SIGALRM
        if self._process is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                code = self._process.wait(timeout=_END_S)
        self.close()
        return code

    def _receive(self, connection: Connection | None) -> bytes:
        if connection is None or not connection.poll(self.limits.wall_s):
            raise EOFError
        return connection.recv_bytes(MAX_REPLY_BYTES)

    def _bury(self) -> Verdict:
        """End a process that did not answer, and say what became of it."""
        if self._on_loss is not None:
            self._on_loss()
        # Its exit code says which limit it passed.
        is_ready = self._confinement is not None
        code = self._end() if self._connection is None else self._end_expression()
        # One that never was ready did not die of an expression.
        if code > 0 and not is_ready:
            raise SandboxUnavailableError(code, self._said)
        limits = self.limits
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
        """End the processes at once."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._said = _last_words(self._process)
        for connection in (self._control, self._connection):
            if connection is not None:
                connection.close()
        self._process = self._control = self._connection = self._confinement = None


def _last_words(process: subprocess.Popen[bytes]) -> str:
    """Give the last line of a process that has ended, such as its exception."""
    if process.stderr is None:
        return ""
    with process.stderr as errors:
        lines = errors.read(_SAID_BYTES).decode("utf-8", "replace").split("\n")
    return next((line[:_WORDS] for line in reversed(lines) if line.strip()), "")
