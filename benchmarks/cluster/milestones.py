"""When each pod and claim of a namespace came to each point of its way.

Seen by watches of the benchmark's own, in seconds since the epoch, so that they compare
with the times of the bus. Knows nothing of gangs.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing, asynccontextmanager

from contracts.names import FINALIZER, GATE
from tests.lab.controlplane.client import Json, Kube, named, path_of
from tests.lab.controlplane.objects import RESOURCE

CREATED, CLAIMED, PREPARED, ALLOCATED = "created", "claimed", "prepared", "allocated"
HAS_CLAIM = "has its claim"
"""A pod says which claim was made for it."""
OPEN, BOUND, RUNNING, ENDED = "open", "bound", "running", "ended"


class Milestones:
    """The first time of each milestone, by object."""

    def __init__(self) -> None:
        self.times: dict[str, dict[str, float]] = {}
        """By milestone, then by name."""
        self._changed = asyncio.Event()

    def count(self, milestone: str) -> int:
        """Return how many objects came there."""
        return len(self.times.get(milestone, ()))

    def last(self, milestone: str) -> float:
        """Return when the last of them came there."""
        return max(self.times[milestone].values())

    def note(self, milestone: str, name: str, at_s: float) -> None:
        """Note that an object came there, unless it did before."""
        self.times.setdefault(milestone, {}).setdefault(name, at_s)
        self._changed.set()

    async def until(self, milestone: str, count: int, within_s: float) -> None:
        """Wait until so many objects came there.

        Raises:
            TimeoutError: they did not in time; says how many did.
        """
        try:
            async with asyncio.timeout(within_s):
                while self.count(milestone) < count:
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            told = f"{self.count(milestone)} of {count} {milestone}"
            raise TimeoutError(f"{told} after {within_s:g} s") from None


@asynccontextmanager
async def watched(kube: Kube, namespace: str) -> AsyncIterator[Milestones]:
    """Watch pods and claims of a namespace while the block runs."""
    milestones = Milestones()
    kinds = {"Pod": "v1", "ResourceClaim": RESOURCE}
    async with asyncio.TaskGroup() as tasks:
        watches = []
        for kind, version in kinds.items():
            path = path_of(named(version, kind, "", namespace))
            listed = await kube.request("GET", path, limit="1")
            place = listed["metadata"]["resourceVersion"]
            watches.append(tasks.create_task(_watch(kube, path, place, milestones)))
        yield milestones
        for watch in watches:
            watch.cancel()


async def _watch(kube: Kube, path: str, place: str, milestones: Milestones) -> None:
    """Note what is seen; the API server ends the watch of a client that is slow."""
    while True:
        async with aclosing(kube.watch(path, place)) as events:
            async for event in events:
                resource, now = event["object"], time.time()
                place = resource["metadata"]["resourceVersion"]
                if event["type"] != "DELETED":
                    for milestone in _reached(resource):
                        milestones.note(milestone, resource["metadata"]["name"], now)


def _reached(resource: Json) -> Iterator[str]:
    meta, spec, status = (
        resource["metadata"],
        resource["spec"],
        resource.get("status", {}),
    )
    if resource["kind"] == "ResourceClaim":
        yield CLAIMED
        if FINALIZER in meta.get("finalizers", ()):
            yield PREPARED
        if "allocation" in status:
            yield ALLOCATED
        return
    yield CREATED
    if not any(gate["name"] == GATE for gate in spec.get("schedulingGates", ())):
        yield OPEN
    if spec.get("nodeName"):
        yield BOUND
    if "resourceClaimStatuses" in status:
        yield HAS_CLAIM
    phase = status.get("phase")
    if phase in {"Running", "Succeeded"}:
        yield RUNNING
    if phase == "Succeeded":
        yield ENDED
