"""Submits gangs, releases them, and notes when each was first answered."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from benchmarks.worlds.fleets import CLUSTER
from contracts import topics
from contracts.ids import GangUID, Namespace
from contracts.messages import (
    DecisionMessage,
    GangAllocated,
    GangReleased,
    ReleaseGang,
    SubmitGang,
)
from runtime.bus.bus import Bus
from runtime.wire import Outgoing

NAMESPACE = Namespace("bench")


class Client:
    """What was submitted, and what came back."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._submitted: dict[GangUID, float] = {}
        self._heard = asyncio.Event()
        self.seconds: dict[GangUID, float] = {}
        """From submission to the first decision, whatever it was."""
        self.holding: dict[GangUID, int] = {}
        """Devices of the gangs that are allocated and not released."""
        self.released: set[GangUID] = set()

    @property
    def unanswered(self) -> int:
        """Gangs of which nothing was heard."""
        return len(self._submitted) - len(self.seconds)

    @property
    def waiting(self) -> int:
        """Gangs that hold nothing and are not over."""
        return len(self._submitted) - len(self.holding) - len(self.released)

    async def submit(self, gang: SubmitGang) -> None:
        """Submit a gang."""
        self._submitted[gang.uid] = time.perf_counter()
        await self._bus.publish(Outgoing.of(topics.SUBMISSIONS, gang))

    async def release(self, uid: GangUID) -> None:
        """Report that a gang's work is done."""
        self.holding.pop(uid, None)
        command = ReleaseGang(cluster=CLUSTER, namespace=NAMESPACE, uid=uid)
        await self._bus.publish(Outgoing.of(topics.COMMANDS, command))

    async def answered(self, uid: GangUID) -> float:
        """Wait for the first decision on a gang; seconds since its submission."""
        while uid not in self.seconds:
            self._heard.clear()
            await self._heard.wait()
        return self.seconds[uid]

    async def over(self, uid: GangUID) -> None:
        """Wait until a gang is released."""
        while uid not in self.released:
            self._heard.clear()
            await self._heard.wait()

    async def follow(self, stop: asyncio.Event) -> None:
        """Take in decisions until told to stop."""
        batches = self._bus.read(topics.DECISIONS, CLUSTER, stop=stop, start="new")
        async for batch in batches:
            now = time.perf_counter()
            for incoming in batch.messages:
                if incoming.message is not None:
                    self._take(incoming.message, now)
            if batch.messages:
                self._heard.set()

    def _take(self, message: DecisionMessage, now: float) -> None:
        uid = message.uid
        if uid in self._submitted:
            self.seconds.setdefault(uid, now - self._submitted[uid])
        if isinstance(message, GangAllocated):
            self.holding[uid] = sum(
                len(claim.allocation.devices.results)
                for member in message.members
                for claim in member.claims
            )
        elif isinstance(message, GangReleased):
            self.holding.pop(uid, None)
            self.released.add(uid)


@asynccontextmanager
async def client(bus: Bus) -> AsyncIterator[Client]:
    """Follow decisions while the block runs."""
    gangs, stop = Client(bus), asyncio.Event()
    follower = asyncio.create_task(gangs.follow(stop))
    await asyncio.sleep(0.5)
    try:
        yield gangs
    finally:
        stop.set()
        await follower
