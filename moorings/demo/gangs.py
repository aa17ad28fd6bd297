"""The demo's gangs on the bus: submitted, released, and what was decided of each."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable

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
from contracts.topics import SUBMISSIONS
from moorings.answers import Answers
from moorings.bus_client import Client
from moorings.demo.workload import make_gang
from moorings.errors import LocalStackError
from moorings.local.stack import LocalStack
from runtime.wire import Outgoing

STEP_S = 60.0
"""Longer than any step takes; what is waited for until then does not come."""
QUIET_S = 0.5
"""When nothing was decided for so long, the solver is idle."""


class DemoGangs:
    """Gangs of one device class, when each was sent, and what was decided of it.

    Decisions come in, and may be waited for, inside `follow` only.
    """

    def __init__(self, stack: LocalStack, client: Client, device_class: str) -> None:
        self._stack = stack
        self._client = client
        self._class = device_class
        self._count = 0
        self._sent_s: dict[GangUID, float] = {}
        self._answers = Answers(client)
        self.follow = self._answers.follow

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
        decisions = self._answers.decisions
        await self._wait_until(
            lambda: all(isinstance(decisions.get(uid), GangReleased) for uid in uids),
            "release",
        )

    async def wait_decided(self, gangs: Iterable[Gang]) -> None:
        """Wait until each gang is in, or was tried in vain."""
        uids = [_uid_of(gang) for gang in gangs]
        await self._wait_until(
            lambda: self._answers.are_all_answered(uids), "decision of every gang"
        )

    async def wait_allocated(self, gang: Gang, what: str) -> None:
        """Wait until a gang is in; `what` names the wait if that never comes."""
        uid, decisions = _uid_of(gang), self._answers.decisions
        await self._wait_until(
            lambda: isinstance(decisions.get(uid), GangAllocated), what
        )

    async def wait_quiet(self) -> None:
        """Wait until nothing was decided for a moment, so that the solver is idle."""
        deadline_s = time.perf_counter() + STEP_S
        while (now_s := time.perf_counter()) < self._answers.last_s + QUIET_S:
            if now_s > deadline_s:
                raise self._late("rest")
            await asyncio.sleep(self._answers.last_s + QUIET_S - now_s)

    async def _wait_until(self, holds: Callable[[], bool], what: str) -> None:
        if not await self._answers.wait_until(holds, STEP_S):
            raise self._late(what)

    def _late(self, what: str) -> LocalStackError:
        reason = f"no {what} within {STEP_S:g} s"
        words = self._stack.solver.read_last_words()
        return LocalStackError("solver", f"{reason}\n{words}")

    def get_decision(self, gang: Gang) -> DecisionMessage:
        """Return the last decision on a gang, which must have one."""
        return self._answers.decisions[_uid_of(gang)]

    def is_allocated(self, gang: Gang) -> bool:
        """True if a decided gang is allocated."""
        return isinstance(self.get_decision(gang), GangAllocated)

    def is_waiting(self, gang: Gang) -> bool:
        """True if a decided gang waits."""
        return isinstance(self.get_decision(gang), GangPending)

    def measure_latency(self, gang: Gang) -> float:
        """Return the seconds from the submission of a gang to its first answer."""
        uid = _uid_of(gang)
        return self._answers.answered_s[uid] - self._sent_s[uid]

    def list_allocations(self) -> list[GangAllocated]:
        """List the decisions by which gangs are in now."""
        decisions = self._answers.decisions.values()
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
