"""Child processes on loopback: a free port, a log, and an end no later than ours."""

from __future__ import annotations

import contextlib
import json
import secrets
import signal
import socket
import subprocess
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import count
from pathlib import Path

from moorings.errors import LocalServerError
from runtime.kernel import die_with_parent

_STOP_S = 5.0
_PORTS = range(20_000, 32_000)
"""Below those that the kernel gives to outgoing connections: ours stay free until
they are listened on, and between two starts."""
_TURNS = count(secrets.randbelow(len(_PORTS)))
"""Ports are chosen in turn from anywhere on: by chance, one would now and then be given
to two programs that are about to listen."""
_ATTEMPTS = 100


class ChildProcess:
    """A program that is started here, and can be started again after its end.

    Whoever starts it must `stop` it; if we die before, the kernel ends it.
    """

    def __init__(self, log: Path) -> None:
        self.log = log
        """The file with its output, over all starts."""
        self._process: subprocess.Popen[bytes] | None = None
        self._began_at = 0
        """How long its log was when it was started last."""

    @property
    def pid(self) -> int | None:
        """Its process id, once it was started and until it is stopped."""
        return self._process.pid if self._process is not None else None

    @property
    def has_ended(self) -> bool:
        """True if it was started and ended without being stopped."""
        return self._process is not None and self._process.poll() is not None

    def describe_end(self) -> str:
        """Describe how it ended: `was killed by SIGKILL`, `ended with exit code 3`."""
        code = self._process.poll() if self._process is not None else None
        if code is None:
            return "has not ended"
        if code < 0:
            return f"was killed by {signal.Signals(-code).name}"
        return f"ended with exit code {code}"

    def start(
        self, command: Sequence[str], environment: Mapping[str, str] | None = None
    ) -> None:
        """Start without waiting; it ends with the thread that does this."""
        with self.log.open("ab") as log:
            self._began_at = log.tell()
            self._process = subprocess.Popen(  # noqa: S603  # our own programs
                list(command),
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=partial(die_with_parent, signal.SIGTERM),  # noqa: PLW1509  # only a system call
            )

    def stop(self) -> None:
        """Ask it to end, and insist after some seconds; harmless when it is gone."""
        process, self._process = self._process, None
        if process is None:
            return
        process.terminate()
        try:
            process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def read_last_words(self, lines: int) -> str:
        """Read the end of its log."""
        with contextlib.suppress(OSError):
            text = self.log.read_text(encoding="utf-8", errors="replace")
            return "\n".join(text.splitlines()[-lines:])
        return ""

    def read_last_reason(self) -> str:
        """Read which error it logged last since its start; empty: none, in JSON."""
        with contextlib.suppress(OSError), self.log.open("rb") as log:
            log.seek(self._began_at)
            return find_last_reason(log.read().decode(errors="replace").splitlines())
        return ""


def find_last_reason(lines: Sequence[str]) -> str:
    """Find the reason of the last error in a log of JSON lines; empty: there is none.

    Where a task failed, its own reason comes before that the service did.
    """
    for line in reversed(lines):
        with contextlib.suppress(ValueError):
            entry = json.loads(line)
            is_error = isinstance(entry, dict) and entry.get("level") == "error"
            if is_error and (reason := entry.get("reason")):
                return str(reason)
    return ""


def find_free_port() -> int:
    """Find a free port on loopback, outside of the kernel's ephemeral range.

    Raises:
        LocalServerError: there is none.
    """
    for _ in range(_ATTEMPTS):
        port = _PORTS[next(_TURNS) % len(_PORTS)]
        with socket.socket() as listener:
            try:
                listener.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise LocalServerError(f"no free port in {_ATTEMPTS} attempts")
