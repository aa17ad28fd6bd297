"""Solves on the bus: blobs before messages, and a Problem that comes back as it was."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from hashlib import sha256
from typing import Any, cast

import pytest

from contracts.errors import DecodeError
from contracts.solves import SolveOpened
from contracts.topics import SOLVES
from runtime.bus.bus import Bus
from runtime.errors import BlobMissingError
from runtime.wire import Incoming, Outgoing, Received, TopicBatch
from solver.allocate import allocate
from solver.problem.problem import Problem
from solver.service import ledger as ledger_module
from solver.service.ledger import Ledger, solve_id
from tests.builders import devices, gang, pool
from tests.builders.problems import CLUSTER, problem_of, snapshot_of


class _MemoryBus:
    """Keeps blobs and messages; counts what was stored in which order."""

    def __init__(self) -> None:
        self.blobs: dict[str, bytes] = {}
        self.stored: list[str] = []
        """Blobs by hash and messages by subject."""
        self.messages: list[Outgoing] = []
        self.damaged = ""
        """A subject whose message cannot be read."""

        self.asked = 0
        """Blobs of which it was looked up whether they are there."""

    async def put_blob(self, data: bytes) -> str:
        self.asked += 1
        return self._keep(data)

    async def put_new_blobs(self, named: Iterable[tuple[str, bytes]]) -> None:
        for sha, blob in named:
            assert self._keep(blob) == sha

    def _keep(self, data: bytes) -> str:
        sha = sha256(data).hexdigest()
        self.blobs[sha] = data
        self.stored.append(sha)
        return sha

    async def get_blob(self, sha: str) -> bytes:
        if sha not in self.blobs:
            raise BlobMissingError(sha)
        return self.blobs[sha]

    async def publish(self, message: Outgoing) -> int:
        self.messages.append(message)
        self.stored.append(message.subject)
        return len(self.messages)

    async def read_newest(self, *_: object) -> Incoming[Any] | None:
        if not self.messages:
            return None
        newest = self.messages[-1]
        if newest.subject == self.damaged:
            raise DecodeError("solve", "$", "is damaged")
        received = Received(
            subject=newest.subject,
            data=newest.data,
            sequence=len(self.messages),
            time_s=0.0,
        )
        return Incoming.of(SOLVES, received)

    async def read_existing(self, *_: object) -> AsyncIterator[TopicBatch[Any]]:
        last = {
            each.subject: Received(
                subject=each.subject, data=each.data, sequence=number, time_s=0.0
            )
            for number, each in enumerate(self.messages, start=1)
            if each.subject != self.damaged
        }
        newest_first = sorted(last.values(), key=lambda each: -each.sequence)
        for each in newest_first:
            incoming = Incoming.of(SOLVES, each)
            yield TopicBatch(messages=(incoming,), caught_up=each is newest_first[-1])


def problem_on(*nodes: str) -> Problem:
    """Make the Problem of one gang on these nodes."""
    pools = {name: [pool(*devices(2), name=name)] for name in nodes}
    return problem_of(snapshot_of(pools, [gang()]))


def begin() -> tuple[_MemoryBus, Ledger]:
    """Begin with nothing stored."""
    bus = _MemoryBus()
    return bus, Ledger(cast("Bus", bus), CLUSTER)


async def test_a_solve_is_announced_when_all_that_it_needs_is_stored() -> None:
    """Whoever reads of it can solve it again."""
    bus, ledger = begin()
    problem = problem_on("a", "b")
    opened = await ledger.open(problem, 3)
    assert (opened.solve, opened.problem) == (solve_id(problem), problem.hash)
    assert (opened.epoch, opened.is_promise) == (3, False)
    announced = bus.stored.index(bus.messages[0].subject)
    needed = {problem.hash, *(page.sha for page in problem.pages)}
    assert needed == set(bus.stored[:announced])


async def test_a_page_is_stored_once_while_it_is_remembered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of more pages than are remembered those of the last solve stay."""
    bus, ledger = begin()
    first, second = problem_on("a"), problem_on("b")
    await ledger.store_pages(first.pages)
    await ledger.store_pages(first.pages)
    assert len(bus.stored) == len(first.pages)
    monkeypatch.setattr(ledger_module, "MOST_REMEMBERED", len(first.pages))
    await ledger.store_pages(second.pages)
    stored = len(bus.stored)
    await ledger.store_pages(second.pages)
    assert len(bus.stored) == stored
    forgotten = {page.sha for page in first.pages} - {p.sha for p in second.pages}
    await ledger.store_pages(first.pages)
    assert forgotten
    assert set(bus.stored[stored:]) == forgotten


async def test_what_changed_is_stored_without_asking_whether_it_is_there() -> None:
    """Only of what stands since before this solver is it asked: it may be much."""
    bus, ledger = begin()
    first, second = problem_on("a"), problem_on("a", "b")
    await ledger.store_pages(first.pages)
    assert bus.asked == len(first.pages)
    await ledger.open(second, 1)
    assert bus.asked == len(first.pages)
    stored = len(bus.stored)
    await ledger.open(second, 1)
    again = [sha for sha in bus.stored[stored:] if sha in bus.blobs]
    assert again == [second.hash]


async def test_a_page_is_stored_again_before_the_bus_forgets_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A page that does not change for weeks is still there for the next solve."""
    bus, ledger = begin()
    problem = problem_on("a")
    await ledger.store_pages(problem.pages)
    stored = len(bus.stored)
    monkeypatch.setattr(ledger_module, "REMEMBERED_S", 0.0)
    await ledger.store_pages(problem.pages)
    assert len(bus.stored) == 2 * stored


async def test_the_last_solve_is_open_until_its_answer_is_recorded() -> None:
    """Of those before it their leader has tried what came of them."""
    _, ledger = begin()
    assert await ledger.last_open() is None
    problems = [problem_on("a"), problem_on("b")]
    opened = [await ledger.open(problem, 1) for problem in problems]
    assert await ledger.last_open() == opened[1]
    await ledger.close(opened[1], allocate(problems[1]), b"answer", 0.5)
    assert await ledger.last_open() is None


async def test_a_solve_that_cannot_be_read_is_passed_over() -> None:
    """The one before it may be open."""
    bus, ledger = begin()
    opened = await ledger.open(problem_on("a"), 1)
    await ledger.open(problem_on("b"), 1)
    bus.damaged = bus.messages[-1].subject
    assert await ledger.last_open() == opened


async def test_a_recorded_problem_is_read_back() -> None:
    """With all of its pages, or not at all."""
    bus, ledger = begin()
    problem = problem_on("a", "b")
    opened = await ledger.open(problem, 1)
    recorded = await ledger.fetch(opened)
    assert recorded.problem().hash == problem.hash
    del bus.blobs[problem.pages[0].sha]
    with pytest.raises(BlobMissingError):
        await ledger.fetch(opened)


async def test_an_answer_is_counted_by_verdicts() -> None:
    """Beside the hash of its bytes."""
    bus, ledger = begin()
    problem = problem_on("a")
    opened = await ledger.open(problem, 1)
    await ledger.close(opened, allocate(problem), b"answer", 0.1234567)
    decided = SOLVES.codec.decode(bus.messages[-1].data)
    assert decided.solve == opened.solve
    assert not isinstance(decided, SolveOpened)
    assert (decided.allocated, decided.pending, decided.rejected) == (1, 0, 0)
    assert bus.blobs[decided.decision] == b"answer"
    assert decided.solve_seconds == 0.123457
