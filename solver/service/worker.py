"""The solve in a process of its own, with its own memory limit.

Most of a solve is Python and would keep the service from its lease and its pings.
The worker keeps the pages that it was sent, so a request carries the root and what
changed. A worker that dies, or outlives the guard, is replaced by an empty one; the
guard never changes an answer, it only ends an attempt.
"""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
import resource
import signal
import traceback
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess

from solver.errors import SolverError, WorkerFailedError, WorkerLostError
from solver.problem.problem import Problem
from solver.service import metrics
from solver.service.garbage import after_batch, collect_between_batches
from solver.service.metrics import StageClock
from solver.stages import told_to


class SolveWorker:
    """One worker process, started when first needed."""

    def __init__(self, *, memory_bytes: int, guard_s: float) -> None:
        self._memory_bytes = memory_bytes
        self._guard_s = guard_s
        self._process: BaseProcess | None = None
        self._connection: Connection | None = None
        self._sent: set[str] = set()
        self._lock = asyncio.Lock()
        self._starts = 0

    @property
    def pid(self) -> int | None:
        """The worker's process id; None: not running."""
        return None if self._process is None else self._process.pid

    def start(self) -> None:
        """Start the process ahead of the first solve."""
        if self._process is not None and self._process.is_alive():
            return
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        process = context.Process(
            target=_work, args=(theirs, self._memory_bytes), daemon=True
        )
        process.start()
        theirs.close()
        if self._starts:
            metrics.WORKER_RESTARTS.inc()
        self._starts += 1
        self._process, self._connection, self._sent = process, ours, set()

    async def solve(self, problem: Problem, guard_s: float | None = None) -> bytes:
        """Solve a Problem and give the bytes of its Decision.

        `guard_s` is how long it may take; None: as long as any.

        Raises:
            WorkerLostError: try again, or with less.
            WorkerFailedError: trying again would fail again.
        """
        async with self._lock:
            return await self._solve(problem, guard_s or self._guard_s)

    async def _solve(self, problem: Problem, guard_s: float) -> bytes:
        self.start()
        pages = {page.sha: page for page in problem.pages}
        new = {sha: page.data for sha, page in pages.items() if sha not in self._sent}
        try:
            async with asyncio.timeout(guard_s):
                kind, answer, stages = await asyncio.to_thread(
                    self._exchange, problem.data, new
                )
        except TimeoutError:
            self.stop()
            raise WorkerLostError(f"no answer within {guard_s:g} s") from None
        except asyncio.CancelledError:
            self.stop()
            raise
        except (EOFError, OSError) as error:
            self.stop()
            raise WorkerLostError("the worker process ended") from error
        self._sent = set(pages)
        if kind != "decision":
            self._sent = set()
            raise WorkerFailedError(answer.decode())
        if problem.gangs:
            metrics.observe_stages(stages)
        return answer

    def _exchange(
        self, root: bytes, pages: dict[str, bytes]
    ) -> tuple[str, bytes, dict[str, float]]:
        if self._connection is None:
            raise EOFError
        self._connection.send((root, pages))
        kind, answer, stages = self._connection.recv()
        return kind, answer, stages

    def stop(self) -> None:
        """End the process at once."""
        if self._process is not None:
            self._process.kill()
            self._process.join()
        if self._connection is not None:
            self._connection.close()
        self._process = self._connection = None
        self._sent = set()


def _work(connection: Connection, memory_bytes: int) -> None:
    """Answer requests until the service is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_DATA, (memory_bytes, memory_bytes))
    from solver.allocate import allocate  # noqa: PLC0415  OR-Tools stays in the worker
    from solver.decision import DECISION  # noqa: PLC0415
    from solver.record import PartCache  # noqa: PLC0415

    cache = PartCache()
    collect_between_batches()
    while True:
        try:
            root, pages = connection.recv()
        except (EOFError, OSError):
            return
        clock = StageClock()
        try:
            with told_to(clock):
                decision = allocate(cache.problem(root, pages))
            reply = ("decision", DECISION.encode(decision))
        except MemoryError:
            return  # an empty worker comes in its place
        except SolverError as error:
            cache = PartCache()
            reply = ("error", str(error).encode())
        except Exception as error:  # noqa: BLE001 # the service says which gang it was
            cache = PartCache()
            traceback.print_exc()
            reply = ("error", f"{type(error).__name__}: {error}".encode())
        connection.send((*reply, clock.seconds))
        after_batch()
