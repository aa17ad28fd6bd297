"""Searches in copies of this process, made by fork: all that was read is theirs, too.

The first runs here, each other one in a copy, which sends what it tells through a pipe
and ends with this process. A copy that is lost changes nothing: its search is begun
again here, and what was told already is passed over. Other threads of this process do
not run in a copy, so none may hold what a search needs.
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from itertools import islice
from typing import IO, Any

from runtime.prctl import die_with_parent

Search = Callable[[], Iterator[Any]]

_MORE, _END = b"+", b"."
"""What comes before each thing that is told, and after the last."""


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
    reading, writing = os.pipe()
    try:
        pid = _fork()
    except OSError:  # no memory or no processes are left
        os.close(reading)
        os.close(writing)
        yield search()
        return
    if pid == 0:
        _tell(search, writing)
    os.close(writing)
    try:
        with os.fdopen(reading, "rb") as pipe:
            yield _listen(pipe, search)
    finally:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def _fork() -> int:
    with warnings.catch_warnings():
        # The threads are OpenBLAS's, which ends them before and begins them after.
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


def _tell(search: Search, writing: int) -> None:
    """Run the search in the copy, and end it without what this process would do last.

    Whatever goes wrong is told by the missing end.
    """
    with suppress(BaseException):
        die_with_parent()
        with os.fdopen(writing, "wb") as pipe:
            for report in search():
                pipe.write(_MORE)
                pickle.dump(report, pipe)
                pipe.flush()
            pipe.write(_END)
    os._exit(0)


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
    yield from islice(search(), count, None)
