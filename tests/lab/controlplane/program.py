"""One program of the control plane as a child process on a port of its own.

It dies with us, and can be killed and started again on the same port and data.
"""

from __future__ import annotations

import contextlib
import ctypes
import http.client
import os
import signal
import ssl
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from moorings.local.process import find_free_port

READY_S = 180.0
_POLL_S = 0.05
_GARBAGE = {"GOGC": "400"}
"""Go collects a quarter as often: 100 MB more each, a fifth less work to start."""
_PR_SET_PDEATHSIG = 1


class NotReadyError(Exception):
    """A program ended or did not get ready."""

    def __init__(self, name: str, why: str, log: Path) -> None:
        lines = log.read_text(errors="replace").splitlines()[-15:]
        super().__init__("\n".join([f"{name}: {why}", *lines]))


class Program:
    """A process that answers on a port; its log is a file named after it."""

    def __init__(
        self, name: str, folder: Path, *, secure: bool = True, ready_path: str
    ) -> None:
        self.name = name
        self.port = find_free_port()
        self.log = folder / f"{name}.log"
        self._secure = secure
        self._ready_path = ready_path
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Where it answers."""
        return f"http{'s' if self._secure else ''}://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int | None:
        """The process, while it runs."""
        return self._process.pid if self._process else None

    def spawn(self, command: Sequence[str]) -> None:
        """Start without waiting; it ends with the thread that does this."""
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                list(command),
                env={**os.environ, **_GARBAGE},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=_die_with_parent,  # noqa: PLW1509 # only a system call
            )

    def kill(self) -> None:
        """End it by SIGKILL; harmless when it is gone."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()

    def pause(self) -> None:
        """Freeze it; it keeps its connections and answers nothing."""
        self._signal(signal.SIGSTOP)
        while self._process is not None and not _stands_still(self._process.pid):
            time.sleep(_POLL_S)

    def resume(self) -> None:
        """End a `pause`."""
        self._signal(signal.SIGCONT)

    def wait_ready(self) -> None:
        """Return when it says that it is ready.

        Raises:
            NotReadyError: it ends, or takes too long.
        """
        until_s = time.monotonic() + READY_S
        while time.monotonic() < until_s:
            if self._process is None or self._process.poll() is not None:
                raise NotReadyError(self.name, "it ended", self.log)
            if self._says_ready():
                return
            time.sleep(_POLL_S)
        raise NotReadyError(self.name, f"not ready after {READY_S:g} s", self.log)

    def _says_ready(self) -> bool:
        connection = (
            http.client.HTTPSConnection(
                "127.0.0.1", self.port, timeout=5, context=_unverified()
            )
            if self._secure
            else http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
        )
        try:
            connection.request("GET", self._ready_path)
            return connection.getresponse().status == 200
        except OSError:
            return False
        finally:
            connection.close()

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(number)


def _stands_still(pid: int) -> bool:
    """True if no thread of a process runs, or it has ended."""
    states = []
    for stat in Path(f"/proc/{pid}/task").glob("*/stat"):
        with contextlib.suppress(OSError):
            states.append(stat.read_text().rpartition(")")[2].split()[0])
    return all(state in "TtZX" for state in states)


def _unverified() -> ssl.SSLContext:
    """Trust whoever answers: the certificate is made by the program that starts."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def _die_with_parent() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
