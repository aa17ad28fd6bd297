"""Recorded solves on the bus: blobs stored before a solve, fetched to solve again."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Collection
from datetime import UTC, datetime

from contracts.ids import ClusterName, SolveID
from contracts.solves import SolveDecided, SolveOpened
from contracts.topics import DAY_S, SOLVES
from runtime.bus.bus import Bus
from runtime.refusals import Refusals
from runtime.waits import together
from runtime.wire import Outgoing
from solver.decision import Decision
from solver.problem.problem import ROOT, Problem
from solver.record import Recorded, sha_of
from solver.snapshot.pages import PAGES, Page
from solver.versions import VERSION, dependency_versions, platform_tag

IN_FLIGHT = 16
"""Blobs stored or read at a time."""
MOST_REMEMBERED = 16 * PAGES
"""Stored pages that are remembered; others are stored again when met."""
REMEMBERED_S = float(DAY_S)
"""For so long; then the bus is asked again, which forgets old blobs."""


class Ledger:
    """Where solves are recorded."""

    def __init__(self, bus: Bus, cluster: ClusterName) -> None:
        self._bus = bus
        self._cluster = cluster
        self._stored: dict[str, float] = {}
        """When pages were stored or found there, in the event loop's time."""

    async def store_pages(self, pages: Collection[Page]) -> None:
        """Store the pages that were not stored yet, nor by another solver."""
        now_s = asyncio.get_running_loop().time()
        old_s = now_s - REMEMBERED_S
        stored = self._stored
        new = {page.sha: page for page in pages if stored.get(page.sha, old_s) <= old_s}
        slots = asyncio.Semaphore(IN_FLIGHT)

        async def store(page: Page) -> None:
            async with slots:
                await self._bus.put_blob(page.data)

        await together(store(page) for page in new.values())
        stored |= dict.fromkeys(new, now_s)
        if len(stored) > MOST_REMEMBERED:
            self._stored = {page.sha: stored[page.sha] for page in pages}

    async def _store_all(self, problem: Problem) -> None:
        # A page that was never met has changed just now, so hardly anybody stored it.
        new = [page for page in problem.pages if page.sha not in self._stored]
        pages = ((page.sha, page.data) for page in new)
        await self._bus.put_new_blobs(
            itertools.chain([(problem.hash, problem.data)], pages)
        )
        now_s = asyncio.get_running_loop().time()
        self._stored |= dict.fromkeys((page.sha for page in new), now_s)
        await self.store_pages(problem.pages)

    async def open(
        self, problem: Problem, epoch: int, *, is_promise: bool = False
    ) -> SolveOpened:
        """Record a Problem before it is solved, or one of a time to come."""
        await self._store_all(problem)
        opened = SolveOpened(
            cluster=self._cluster,
            solve=solve_id(problem),
            problem=problem.hash,
            version=VERSION,
            platform=platform_tag(),
            dependencies=dependency_versions(),
            epoch=epoch,
            gangs=tuple(gang.key for gang in problem.gangs),
            is_promise=is_promise,
            opened_at=datetime.now(UTC).isoformat(timespec="milliseconds"),
        )
        await self._publish(opened)
        return opened

    async def close(
        self, opened: SolveOpened, decision: Decision, data: bytes, seconds: float
    ) -> None:
        """Record the answer beside its Problem."""
        verdicts, sha = [gang.verdict for gang in decision.gangs], sha_of(data)
        await self._bus.put_new_blobs([(sha, data)])
        await self._publish(
            SolveDecided(
                cluster=self._cluster,
                solve=opened.solve,
                problem=opened.problem,
                decision=sha,
                status=decision.status,
                allocated=verdicts.count("allocated"),
                pending=sum(bool(g.reasons and not g.rejected) for g in decision.gangs),
                rejected=sum(gang.rejected for gang in decision.gangs),
                solve_seconds=round(seconds, 6),
            )
        )

    async def last_open(self) -> SolveOpened | None:
        """Return the solve that was recorded last, if it was not answered.

        Only it may be the one that a former leader was at: of those before it, it has
        tried what came of them. What cannot be read is passed over: then all are read,
        of which there may be many.
        """
        newest = None
        with Refusals().guard(SOLVES.subjects_below(self._cluster)) as guarded:
            newest = await self._bus.read_newest(SOLVES, self._cluster)
        if guarded.refused is None:
            message = None if newest is None else newest.message
            return message if isinstance(message, SolveOpened) else None
        last: tuple[int, SolveOpened | SolveDecided] | None = None
        async for batch in self._bus.read_existing(SOLVES, self._cluster):
            for incoming in batch.messages:
                message, sequence = incoming.message, incoming.sequence
                if message is not None and (last is None or sequence > last[0]):
                    last = (sequence, message)
        opened = None if last is None else last[1]
        return opened if isinstance(opened, SolveOpened) else None

    async def fetch(self, opened: SolveOpened) -> Recorded:
        """Read a recorded Problem back.

        Raises:
            BlobMissingError: a part of it is gone.
            BlobCorruptedError: a part of it is damaged.
            DecodeError: its root cannot be read.
        """
        root = await self._bus.get_blob(opened.problem)
        slots = asyncio.Semaphore(IN_FLIGHT)
        pages: dict[str, bytes] = {}

        async def fetch(sha: str) -> None:
            async with slots:
                pages[sha] = await self._bus.get_blob(sha)

        await together(fetch(sha) for sha in ROOT.decode(root).pages)
        return Recorded(opened=opened, root=root, pages=pages)

    async def _publish(self, message: SolveOpened | SolveDecided) -> None:
        await self._bus.publish(Outgoing.of(SOLVES, message))


def solve_id(problem: Problem) -> SolveID:
    """Name a solve after its Problem: the same question is the same solve."""
    return SolveID(problem.hash[:32])
