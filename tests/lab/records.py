"""Solves as they are recorded on a bus."""

from __future__ import annotations

import asyncio

from contracts import topics
from contracts.solves import SolveDecided, SolveMessage, SolveOpened
from runtime.bus.bus import Bus
from solver.record import Recorded
from solver.service.ledger import Ledger
from tests.lab.services import CLUSTER


async def recorded_solve(bus: Bus, subject: str) -> Recorded:
    """Read both messages of a solve and its blobs."""
    stop = asyncio.Event()
    found: list[SolveMessage] = []
    async for page in bus.follow("SOLVE", [subject], stop, start="all"):
        found.extend(topics.SOLVES.codec.decode(item.data) for item in page.messages)
        if page.synced:
            break
    opened, decided = found[0], found[1]
    assert isinstance(opened, SolveOpened)
    assert isinstance(decided, SolveDecided)
    recorded = await Ledger(bus, CLUSTER).fetch(opened)
    return Recorded(
        opened=opened,
        decided=decided,
        root=recorded.root,
        pages=recorded.pages,
        decision=await bus.get_blob(decided.decision),
    )
