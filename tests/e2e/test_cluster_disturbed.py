"""No gang runs in parts, however its pods are replaced while the publisher is away.

The publisher is stopped (SIGSTOP) or killed, pods of waiting and of opening gangs are
deleted and made anew by whoever made them, and it sees both at once when it goes on.
3 gangs in `make test`, 500 in `make soak` (MOORINGS_SOAK=1).
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager

import aiohttp
from msgspec import Struct

from contracts.lifecycle import GangRecord
from contracts.names import GANG, GANG_UID, GATE
from moorings.bus_client import Client
from tests.lab.cluster import (
    Stack,
    create_pods,
    gang_pod,
    is_running,
    job,
    name_of,
    stateful_set,
    template,
    uid_of,
)
from tests.lab.controlplane import fleet, objects
from tests.lab.controlplane.client import Json, Kube, RefusedError
from tests.lab.controlplane.fleet import Fleet
from tests.lab.services import eventually
from tests.lab.soak import SOAK
from tests.lab.waits import pods_of

BATCHES, GANGS, SIZE = (10, 50, 4) if SOAK else (1, 3, 8)
ROUNDS = 5 if SOAK else 1
NODES, DEVICES = ("abcdefg", 32) if SOAK else ("ab", 8)
KINDS = ("Deployment", "StatefulSet", "Pod", "Job")
WITHIN_S = 600.0


class Opening(Struct, frozen=True):
    """A gate that was opened, in the order in which the API server says so."""

    gang: str
    submission: str


class Openings:
    """All gates that are opened in a namespace, by one watch."""

    def __init__(self, kube: Kube, namespace: str) -> None:
        self._kube = kube
        self._path = f"/api/v1/namespaces/{namespace}/pods"
        self.by_pod: dict[str, Opening] = {}

    async def follow(self) -> None:
        """Follow pods until cancelled."""
        version = "0"
        while True:
            with contextlib.suppress(aiohttp.ClientError, TimeoutError, RefusedError):
                watch = self._kube.watch(self._path, version)
                async with aclosing(watch) as events:
                    async for event in events:
                        self._see(event["object"])
                        version = event["object"]["metadata"]["resourceVersion"]

    def _see(self, pod: Json) -> None:
        meta = pod["metadata"]
        submission = meta.get("annotations", {}).get(GANG_UID)
        gang = meta.get("labels", {}).get(GANG)
        if gang and submission and not is_gated(pod):
            opening = Opening(gang, submission)
            self.by_pod.setdefault(meta["uid"], opening)

    def list_parts(self, records: Sequence[GangRecord]) -> list[str]:
        """Name the gangs of which fewer pods were let through than make them whole.

        A submission of fewer counts with the pods of its gang that ran before it.
        """
        sizes = {
            str(record.uid): _count_pods(record)
            for record in records
            if record.submission is not None
        }
        before: dict[str, int] = {}
        seen: set[str] = set()
        parts = []
        for opening in self.by_pod.values():
            ran = before.get(opening.gang, 0)
            if (
                opening.submission not in seen
                and sizes[opening.submission] + ran < SIZE
            ):
                parts.append(
                    f"{opening.gang}: {sizes[opening.submission]} beside {ran}"
                )
            seen.add(opening.submission)
            before[opening.gang] = ran + 1
        return parts


def _count_pods(record: GangRecord) -> int:
    places = {} if record.submission is None else record.submission.places
    return sum(len(place.pods) for member in places.values() for place in member)


def is_gated(pod: Json) -> bool:
    return {"name": GATE} in pod["spec"].get("schedulingGates", ())


def is_leaving(pod: Json) -> bool:
    return "deletionTimestamp" in pod["metadata"]


class Yard:
    """Gangs of one batch, and who disturbs them."""

    def __init__(self, site: Fleet, stack: Stack, draw: random.Random) -> None:
        self._site = site
        self._stack = stack
        self._draw = draw
        self.owners: dict[str, Json] = {}
        """Who makes the pods, by gang; a pod: nobody does."""
        self.disturbed = 0

    async def create(self, names: Sequence[str]) -> None:
        """Create gangs by all kinds of owners in turn."""
        for number, name in enumerate(names):
            kind = KINDS[number % len(KINDS)]
            self.owners[name] = {"kind": kind}
            if kind == "Pod":
                await create_pods(self._site, name, range(SIZE), "one", size=SIZE)
            else:
                owner = _owner(self._site, kind, name)
                self.owners[name] = await self._site.kube.create(owner)

    async def disturb(self, names: Sequence[str], *, kill: bool) -> None:
        """Replace pods of gangs while the publisher does not look."""
        publisher = self._stack["publisher"]
        if kill:
            publisher.kill()
        else:
            os.kill(publisher.pid, signal.SIGSTOP)
        try:
            await asyncio.gather(*map(self._replace, names))
        finally:
            if kill:
                publisher.start()
            else:
                os.kill(publisher.pid, signal.SIGCONT)

    async def _replace(self, name: str) -> None:
        """Delete up to three pods of a gang and wait until all are there again."""
        pods = [pod for pod in await self._pods(name) if not is_leaving(pod)]
        most = 1 if self.owners[name]["kind"] == "Job" else 3
        chosen = self._draw.sample(pods, min(len(pods), self._draw.randint(1, most)))
        self.disturbed += bool(chosen)
        for pod in chosen:
            await self._site.kube.delete(pod, grace_s=0)
        if self.owners[name]["kind"] == "Pod":
            numbers = [int(name_of(pod).rpartition("-")[2]) for pod in chosen]
            await create_pods(self._site, name, numbers, "one", size=SIZE)
        gone = set(map(uid_of, chosen))

        async def replaced() -> bool:
            there = [p for p in await self._pods(name) if not is_leaving(p)]
            return len(there) >= SIZE and gone.isdisjoint(map(uid_of, there))

        await eventually(replaced, f"the pods of {name} are replaced", WITHIN_S)

    async def finish(self, name: str) -> None:
        """Wait until a gang runs as a whole, then delete all of it."""
        await pods_of(self._site, name, SIZE, is_running, WITHIN_S)
        owner = self.owners[name]
        if owner["kind"] != "Pod":
            await self._site.kube.delete(owner)
        for pod in await self._pods(name):
            with contextlib.suppress(RefusedError):
                await self._site.kube.delete(pod)
        del self.owners[name]

    async def _pods(self, name: str) -> list[Json]:
        selected = {"labelSelector": f"{GANG}={name}"}
        return await self._site.kube.list("v1", "Pod", self._site.namespace, **selected)


def _owner(site: Fleet, kind: str, name: str) -> Json:
    if kind == "Job":
        return job(site, name, SIZE, "one", backoffLimit=1000)
    made = stateful_set(site, name, SIZE, "one")
    if kind == "Deployment":
        del made["spec"]["podManagementPolicy"], made["spec"]["serviceName"]
    return made | {"kind": kind}


@asynccontextmanager
async def opened(kube: Kube, namespace: str) -> AsyncIterator[Openings]:
    """Follow which gates are opened while the block runs."""
    openings = Openings(kube, namespace)
    task = asyncio.create_task(openings.follow())
    try:
        yield openings
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def play_batch(yard: Yard, site: Fleet, client: Client, names: list[str]) -> None:
    """Let gangs wait, be disturbed while they wait and while they begin, and end."""
    draw = random.Random(names[0])
    fillers = [
        gang_pod(site.namespace, f"{names[0]}-filler-{node}", templates={"d": "all"})
        for node in NODES
    ]
    held = await asyncio.gather(*map(site.kube.create, fillers))
    for pod in held:
        await site.kube.until(pod, is_running, WITHIN_S)
    await yard.create(names)

    async def submitted() -> bool:
        gangs = await client.fetch_gangs()
        return {record.name for record in gangs}.issuperset(names)

    await eventually(submitted, "all gangs are submitted", WITHIN_S)
    # A Job makes a pod anew after ten seconds, and after twice as many each time.
    await yard.disturb(names, kill=False)
    patient = [name for name in names if yard.owners[name]["kind"] != "Job"]
    await asyncio.sleep(draw.random())
    await yard.disturb(patient, kill=True)
    for pod in held:
        site.kubelets.finish(pod)
    async with asyncio.TaskGroup() as tasks:
        for name in names:
            tasks.create_task(yard.finish(name))
        for _ in range(ROUNDS):
            await asyncio.sleep(2 * draw.random())
            left = [name for name in patient if name in yard.owners]
            chosen = draw.sample(left, (1 + len(left)) // 2)
            await yard.disturb(chosen, kill=draw.random() < 0.3)


async def test_no_gang_runs_in_parts_whatever_is_replaced(
    kube: Kube, namespace: str, stack: Stack, client: Client
) -> None:
    devices = objects.devices(DEVICES)
    async with (
        fleet.running(kube, namespace, NODES, devices) as site,
        opened(kube, namespace) as openings,
    ):
        await template(site, "one", count=1)
        await template(site, "all", count=DEVICES)
        disturbed = 0
        for batch in range(BATCHES):
            yard = Yard(site, stack, random.Random(batch))
            names = [f"g{batch}-{number}" for number in range(GANGS)]
            await play_batch(yard, site, client, names)
            disturbed += yard.disturbed
            records = await client.fetch_gangs()
            assert openings.list_parts(records) == []
    assert disturbed >= BATCHES * GANGS
