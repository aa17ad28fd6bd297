"""The demo's gangs on the bus: submitted, released, and what was decided of each."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager

from contracts.gang import Gang
from contracts.ids import DeviceID, GangUID, Namespace
from contracts.messages import (
    DecisionMessage,
    GangAllocated,
    GangPending,
    GangReleased,
    ReleaseGang,
    SubmitGang,
)
from contracts.topics import DECISIONS, SUBMISSIONS
from moorings.bus_client import Client
from moorings.demo.workload import make_gang
from moorings.errors import LocalStackError
from moorings.local.stack import LocalStack
from runtime.wire import Outgoing

STEP_S = 60.0
"""Longer than any step takes; what is waited for until then does not come."""


class DemoGangs:
    """Gangs of one device class, with the last decision on each and when it came.

    Decisions come in, and may be waited for, inside `follow` only.
    """

    def __init__(self, stack: LocalStack, client: Client, device_class: str) -> None:
        self._stack = stack
        self._client = client
        self._class = device_class
        self._count = 0
        self._sent_s: dict[GangUID, float] = {}
        self._decisions: dict[GangUID, tuple[DecisionMessage, float]] = {}
        self._changed = asyncio.Event()
        self._stop = asyncio.Event()

    @asynccontextmanager
    async def follow(self) -> AsyncIterator[None]:
        """Follow the decisions while the block runs."""
        follower = asyncio.create_task(self._read_decisions())
        try:
            yield
        finally:
            self._stop.set()
            await follower

    async def _read_decisions(self) -> None:
        batches = self._client.bus.read(
            DECISIONS, self._client.cluster, stop=self._stop, survives_restart=True
        )
        async for batch in batches:
            for incoming in batch.messages:
                message = incoming.message
                if message is not None:
                    self._decisions[message.uid] = (message, time.perf_counter())
            if batch.messages:
                self._changed.set()

    def make(self, pods: int, gpus: int, *, priority: int = 0) -> Gang:
        """Make the next gang: so many equal pods with so many GPUs each."""
        self._count += 1
        return make_gang(self._count, pods, gpus, self._class, priority)

    async def submit(self, gangs: Iterable[Gang]) -> None:
        """Submit gangs at once; `wait_decided` tells when they have their answers."""
        messages = [
            SubmitGang(cluster=self._client.cluster, uid=_uid_of(gang), gang=gang)
            for gang in gangs
        ]
        outgoing = [Outgoing.of(SUBMISSIONS, message) for message in messages]
        now = time.perf_counter()
        self._sent_s |= {message.uid: now for message in messages}
        await self._client.bus.publish_many(outgoing)

    async def release(self, gangs: Iterable[Gang]) -> None:
        """Release gangs, and wait until all of them are."""
        uids = []
        for gang in gangs:
            namespace = Namespace(gang.metadata.namespace)
            cluster, uid = self._client.cluster, _uid_of(gang)
            uids.append(uid)
            await self._client.send_command(
                ReleaseGang(cluster=cluster, namespace=namespace, uid=uid)
            )
        await self._wait_until(
            lambda: all(isinstance(self._decisions[u][0], GangReleased) for u in uids),
            "release",
        )

    async def wait_decided(self, gangs: Iterable[Gang]) -> None:
        """Wait until each gang has a decision, whatever it is."""
        uids = [_uid_of(gang) for gang in gangs]
        await self._wait_until(
            lambda: all(uid in self._decisions for uid in uids), "decision"
        )

    async def wait_allocated(self, gang: Gang, what: str) -> None:
        """Wait until a gang is in; `what` names the wait if that never comes."""
        uid = _uid_of(gang)
        await self._wait_until(
            lambda: (
                uid in self._decisions
                and isinstance(self._decisions[uid][0], GangAllocated)
            ),
            what,
        )

    async def _wait_until(self, holds: Callable[[], object], what: str) -> None:
        deadline = time.perf_counter() + STEP_S
        while not holds():
            self._changed.clear()
            try:
                async with asyncio.timeout(deadline - time.perf_counter()):
                    await self._changed.wait()
            except TimeoutError:
                reason = f"no {what} within {STEP_S:g} s"
                words = self._stack.solver.read_last_words()
                raise LocalStackError("solver", f"{reason}\n{words}") from None

    def get_decision(self, gang: Gang) -> DecisionMessage:
        """Return the last decision on a gang, which must have one."""
        return self._decisions[_uid_of(gang)][0]

    def is_allocated(self, gang: Gang) -> bool:
        """True if a decided gang is allocated."""
        return isinstance(self.get_decision(gang), GangAllocated)

    def is_waiting(self, gang: Gang) -> bool:
        """True if a decided gang waits."""
        return isinstance(self.get_decision(gang), GangPending)

    def measure_latency(self, gang: Gang) -> float:
        """Return the seconds from the submission of a gang to its last decision."""
        uid = _uid_of(gang)
        return self._decisions[uid][1] - self._sent_s[uid]

    def list_allocations(self) -> list[GangAllocated]:
        """List the decisions by which gangs are in now."""
        decisions = (decision for decision, _ in self._decisions.values())
        return [d for d in decisions if isinstance(d, GangAllocated)]


def _uid_of(gang: Gang) -> GangUID:
    return GangUID(gang.metadata.uid)


def list_devices(decision: DecisionMessage) -> set[DeviceID]:
    """List the devices that a decision gives; none unless it allocates."""
    if not isinstance(decision, GangAllocated):
        return set()
    return {
        result.device_id
        for member in decision.members
        for claim in member.claims
        for result in claim.allocation.devices.results
    }
