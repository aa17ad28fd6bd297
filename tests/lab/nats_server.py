"""A nats-server of a test's own, which can crash and freeze."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from moorings.local.nats_server import LocalServer


class LabServer(LocalServer):
    """The local stack's server, and what may happen to it."""

    def kill(self) -> None:
        """End it at once, as a crash would; `start` brings it back."""
        self._signal(signal.SIGKILL)
        self.stop()

    def pause(self) -> None:
        """Freeze it; it keeps its connections and answers nothing.

        A busy machine may let it run on for a while after the signal.
        """
        self._signal(signal.SIGSTOP)
        stat = Path(f"/proc/{self.pid}/stat")
        while stat.exists() and stat.read_text().rpartition(")")[2].split()[0] != "T":
            time.sleep(0.001)

    def resume(self) -> None:
        """End a `pause`."""
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        if self.pid is not None:
            os.kill(self.pid, number)
