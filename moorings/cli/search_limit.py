"""Ends a search early: after some seconds, or by Ctrl-C.

A thread watches, as CP-SAT lets no signal handler of this one run: the system writes
each signal into a socket (`signal.set_wakeup_fd`), and the thread reads it there.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from types import TracebackType
from typing import Self

from moorings.cli.exit_codes import ExitCode
from moorings.cli.output import notify
from solver.stopping import stopped_by

INTERRUPTED = "interrupted: answering with the best found so far (Ctrl-C again aborts)"
_END = b"\0"
"""No signal has this number."""
_AGAIN_S = 0.05
"""CP-SAT forgets that it was stopped where that was before it began."""


class SearchLimit:
    """Ends the searches of a block, which may be entered again and again.

    The seconds count from the first time on. Ctrl-C ends searches only where it would
    raise KeyboardInterrupt otherwise; the second one ends the process.
    """

    def __init__(
        self, seconds: float | None = None, *, interrupts: bool = True
    ) -> None:
        """`interrupts`: whether Ctrl-C ends searches, too."""
        self._seconds = seconds
        self._interrupts = interrupts
        self._until_s: float | None = None
        self._is_interrupted = False
        self._running: Callable[[], None] | None = None
        self._entered = ExitStack()

    def __enter__(self) -> Self:
        if self._until_s is None and self._seconds is not None:
            self._until_s = time.monotonic() + self._seconds
        with ExitStack() as stack:
            stack.enter_context(stopped_by(self))
            reading, writing = socket.socketpair()
            stack.enter_context(reading)
            stack.enter_context(writing)
            thread = threading.Thread(
                target=self._watch_socket,
                args=(reading,),
                name="search limit",
                daemon=True,
            )
            thread.start()
            stack.callback(thread.join)
            stack.callback(writing.sendall, _END)
            if self._interrupts:
                _hear_interrupts(stack, writing)
            self._entered = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._entered.close()

    def is_stopped(self) -> bool:
        """True if the time is up, or Ctrl-C was pressed."""
        if self._is_interrupted:
            return True
        return self._until_s is not None and time.monotonic() >= self._until_s

    @contextmanager
    def calling(self, stop: Callable[[], None]) -> Iterator[None]:
        """Call `stop` when the time is over, or by Ctrl-C, while the block runs."""
        self._running = stop
        try:
            yield
        finally:
            self._running = None

    def _watch_socket(self, reading: socket.socket) -> None:
        while True:
            if select.select([reading], [], [], self._pause_s())[0]:
                numbers = reading.recv(64)
                for number in numbers:
                    if number == signal.SIGINT:
                        self._interrupt_search()
                if _END in numbers:
                    return
            running = self._running
            if running is not None and self.is_stopped():
                running()

    def _pause_s(self) -> float | None:
        if self.is_stopped():
            return _AGAIN_S
        if self._until_s is None:
            return None
        return max(self._until_s - time.monotonic(), 0.0)

    def _interrupt_search(self) -> None:
        if self._is_interrupted:
            os._exit(ExitCode.INTERRUPTED)
        self._is_interrupted = True
        notify(INTERRUPTED)


def _hear_interrupts(stack: ExitStack, writing: socket.socket) -> None:
    """Have Ctrl-C written to a socket, unless somebody else handles it."""
    if threading.current_thread() is not threading.main_thread():
        return
    handler = signal.getsignal(signal.SIGINT)
    if handler is not signal.default_int_handler:
        return
    writing.setblocking(False)
    heard = signal.set_wakeup_fd(writing.fileno(), warn_on_full_buffer=False)
    stack.callback(signal.set_wakeup_fd, heard)
    signal.signal(signal.SIGINT, lambda *_: None)
    stack.callback(signal.signal, signal.SIGINT, handler)
