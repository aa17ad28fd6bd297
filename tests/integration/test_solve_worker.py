"""The worker process that solves dies in the middle of a solve, for real."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from contracts import topics
from contracts.gang import Gang
from contracts.messages import GangAllocated, GangPending
from contracts.solves import SolveOpened
from runtime.bus.bus import Bus
from solver.errors import WorkerLostError
from solver.service.suspects import FIRST_REST_S
from solver.service.worker import SolveWorker
from tests.draw.crowds import world
from tests.lab.nats_server import LabServer
from tests.lab.services import (
    CLUSTER,
    Process,
    decision_on,
    eventually,
    running,
    solver,
    submit,
)
from tests.lab.two_nodes import is_decided, two_nodes, wanted

GUARD_S = 120.0
ENOUGH_BYTES = 4 << 30


@contextmanager
def solving(memory_bytes: int = ENOUGH_BYTES) -> Iterator[SolveWorker]:
    """Give a worker that ends with the block."""
    worker = SolveWorker(memory_bytes=memory_bytes, guard_s=GUARD_S)
    try:
        yield worker
    finally:
        worker.stop()


def worker_of(service: Process) -> int:
    """Find the process that solves for a solver: it holds OR-Tools."""
    children = Path(f"/proc/{service.pid}/task/{service.pid}/children").read_text()
    (found,) = [
        int(child)
        for child in children.split()
        if "ortools" in Path(f"/proc/{child}/maps").read_text()
    ]
    return found


async def is_recorded(bus: Bus, gang: Gang) -> bool:
    """Whether a solve with a gang has begun and not ended."""
    found = await bus.read_newest(topics.SOLVES, CLUSTER)
    if found is None or not isinstance(found.message, SolveOpened):
        return False
    return gang.metadata.uid in {key.uid for key in found.message.gangs}


async def test_a_solve_that_lost_its_worker_can_be_tried_again() -> None:
    """The next worker knows nothing of the first, and gives the same bytes."""
    problem = world(5, nodes=(3, 5), gangs=(3, 6)).problem
    with solving() as worker:
        first = await worker.solve(problem)
        pid = worker.pid
        assert pid
        os.kill(pid, signal.SIGSTOP)  # so it has not answered when it dies
        attempt = asyncio.create_task(worker.solve(problem))
        await asyncio.sleep(0)
        os.kill(pid, signal.SIGKILL)
        with pytest.raises(WorkerLostError, match="ended"):
            await attempt
        assert await worker.solve(problem) == first
        assert worker.pid != pid


async def test_a_worker_without_memory_is_lost_and_nobody_else() -> None:
    """Its limit is its own."""
    problem = world(5, nodes=(3, 5), gangs=(3, 6)).problem
    ended = pytest.raises(WorkerLostError, match="ended")
    with solving(memory_bytes=1 << 20) as worker, ended:
        await worker.solve(problem)


async def test_a_gang_whose_worker_was_killed_is_decided_by_the_next_one(
    bus: Bus, nats_server: LabServer, tmp_path: Path
) -> None:
    """It is told why it waits meanwhile, and others are decided before it."""
    await two_nodes(bus)
    first, unlucky, other = wanted(1), wanted(2), wanted(3, count=2)
    service = solver(nats_server.url, tmp_path)
    async with running(service):
        await submit(bus, first)
        await eventually(lambda: is_decided(bus, first, GangAllocated), "first is in")
        pid = worker_of(service)
        os.kill(pid, signal.SIGSTOP)
        await submit(bus, unlucky)
        recorded = partial(is_recorded, bus, unlucky)
        await eventually(recorded, "the question is recorded")
        os.kill(pid, signal.SIGKILL)
        await eventually(
            lambda: is_decided(bus, unlucky, GangPending), "it is told", 60
        )
        waiting = await decision_on(bus, unlucky)
        assert isinstance(waiting, GangPending)
        assert "ended" in waiting.reasons[0].message
        await submit(bus, other)
        await eventually(lambda: is_decided(bus, other, GangAllocated), "other is in")
        allocated = partial(is_decided, bus, unlucky, GangAllocated)
        await eventually(allocated, "it is in", FIRST_REST_S + 30.0)
        assert worker_of(service) != pid
