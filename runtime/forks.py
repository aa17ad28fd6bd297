"""Searches in copies of this process, made by fork: all that was read is theirs, too.

The first runs here, each other one in a copy, which sends what it tells through a pipe
and ends with this process. A copy that is lost changes no answer: its search is begun
again here, and what was told already is passed over. That is logged.
"""

from __future__ import annotations

import fcntl
import logging
import os
import pickle
import signal
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from itertools import islice
from typing import IO, Any

from runtime.kernel import die_first_without_memory, die_with_parent

Search = Callable[[], Iterator[Any]]

_MORE, _END = b"+", b"."
"""What comes before each thing that is told, and after the last."""
_PIPE_BYTES = 1 << 20
"""What a copy can be ahead by; Linux gives no more without privileges."""
_log = logging.getLogger(__name__)


def count_processors() -> int:
    """Count the processors that this process may use."""
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    return 1  # fork is not safe beside the libraries of other systems


@contextmanager
def run_in_forks(searches: Sequence[Search]) -> Iterator[Sequence[Iterator[Any]]]:
    """Run searches at a time; on one processor they take turns."""
    with ExitStack() as stack:
        if count_processors() < 2:
            yield [search() for search in searches]
            return
        # Copies first, then the search that keeps this process busy.
        told = [stack.enter_context(_run_in_fork(search)) for search in searches[1:]]
        yield [*(search() for search in searches[:1]), *told]


@contextmanager
def _run_in_fork(search: Search) -> Iterator[Iterator[Any]]:
    """Run a search in a copy, and end that with the block."""
    try:
        pid, reading = _fork(search)
    except OSError:  # no memory, no processes or no files are left
        yield search()
        return
    try:
        with os.fdopen(reading, "rb") as pipe:
            yield _listen(pipe, search)
    finally:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        with suppress(ChildProcessError):  # where SIGCHLD is ignored, nobody waits
            os.waitpid(pid, 0)


def _fork(search: Search) -> tuple[int, int]:
    """Begin the copy: its process id, and the pipe that it tells through.

    Ctrl-C is for this process alone. Other threads do not go on in a copy: those of
    OpenBLAS end before, and begin again after; those that show progress hold nothing
    that a search needs.
    """
    reading, writing = os.pipe()
    parent = os.getpid()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT,))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of the threads
            pid = os.fork()
        if pid == 0:
            _tell(search, parent, reading, writing)
    except OSError:
        os.close(reading)
        raise
    finally:
        os.close(writing)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return pid, reading


def _tell(search: Search, parent: int, reading: int, writing: int) -> None:
    """Run the search in the copy, and end it without what this process would do last.

    Whatever goes wrong is told by the missing end.
    """
    try:
        die_with_parent()
        die_first_without_memory()
        os.close(reading)  # else nothing would say that the parent is gone
        if os.getppid() != parent:
            return
        _enlarge(writing)
        pipe = os.fdopen(writing, "wb")
        for report in search():
            pipe.write(_MORE)
            pickle.dump(report, pipe)
            pipe.flush()
        pipe.write(_END)
        pipe.flush()
    except BaseException:  # noqa: BLE001 # it ends here, and is found out by the parent
        # Not by sys.stderr, which a thread may have held; nor after the pipe's end,
        # at which the parent ends this process.
        os.write(2, traceback.format_exc().encode())
    finally:
        os._exit(0)


def _enlarge(pipe: int) -> None:
    """Let the copy go on while this process is busy."""
    if sys.platform == "linux":
        with suppress(OSError):
            fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)


def _listen(pipe: IO[bytes], search: Search) -> Iterator[Any]:
    """Go through what a copy tells; what a lost one did not is found out here."""
    count = 0
    with suppress(EOFError, pickle.UnpicklingError):
        while (mark := pipe.read(1)) == _MORE:
            report = pickle.load(pipe)  # noqa: S301 # from our own copy
            count += 1
            yield report
        if mark == _END:
            return
    _log.warning("a copy of this process was lost; what it searched is searched here")
    yield from islice(search(), count, None)
