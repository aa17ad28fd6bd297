"""Gangs of mixed priority on a fleet too small: none loses a part unnoticed.

Pods without devices that are worth more come beside them, and the real kube-scheduler
preempts pods of running gangs for them, round after round, until every gang has had its
turn. Who runs in part is judged here from what a watch shows of the pods alone.
12 gangs in `make test`, 500 in `make soak` (MOORINGS_SOAK=1).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing, asynccontextmanager

import aiohttp
import pytest
from msgspec import Struct

from contracts.gang import GangPhase
from contracts.names import GANG, GANG_SIZE, GANG_UID, RECOVERY, REPORTER
from moorings.bus_client import Client
from publisher.gangs.running.broken_gangs import GANG_BROKEN
from tests.lab import cluster
from tests.lab.cluster import Stack, create_pods, is_running, job, template
from tests.lab.controlplane import fleet, objects
from tests.lab.controlplane.client import Json, Kube, RefusedError
from tests.lab.controlplane.fleet import Fleet
from tests.lab.controlplane.server import ControlPlane
from tests.lab.services import eventually
from tests.lab.soak import sized
from tests.lab.waits import priority_class

GANGS, NODES = sized(12, 500), sized(3, 40)
DEVICES = 4
CPU = {"cpu": "15"}
"""Four such pods fill a node of 64, as they use its devices."""
SIZES = (2, 3, 4)
VALUES = (100, 200, 300, 400)
"""Of PriorityClasses: gangs have none or one of the first three."""
KINDS = ("Pod", "Report", "Recreate")
"""Pods that nobody makes anew, or Jobs with a recovery."""
DISTURBED = sized(4, 9)
"""Rounds; the last gangs are left alone."""
MOST_ROUNDS = 60
WITHIN_S = 300.0
QUIET_S = sized(1, 2)
log = logging.getLogger(__name__)


class Run(Struct):
    """A gang of the test."""

    name: str
    kind: str
    size: int
    job: Json | None = None


class Pods:
    """All pods of gangs in a namespace as one watch shows them."""

    def __init__(self, kube: Kube, namespace: str) -> None:
        self._kube = kube
        self._path = f"/api/v1/namespaces/{namespace}/pods"
        self._there: dict[str, dict[str, Json]] = {}
        """By gang and uid."""
        self._sizes: dict[str, int] = {}
        self._whole: dict[str, set[str]] = {}
        """Uids of the pods with which a gang ran whole last."""
        self.preempted: dict[str, set[str]] = {}
        """Uids of pods that kube-scheduler took, by gang."""
        self.ran: dict[str, set[str]] = {}
        """Uids of pods that ran, by the gang's uid."""
        self.broken: set[str] = set()
        """Gangs that ran in part at any time, as kube-scheduler took the rest."""
        self.changes = 0

    async def follow(self) -> None:
        """Follow pods until cancelled."""
        version = "0"
        while True:
            with contextlib.suppress(aiohttp.ClientError, TimeoutError, RefusedError):
                watch = self._kube.watch(self._path, version, labelSelector=GANG)
                async with aclosing(watch) as events:
                    async for event in events:
                        self._see(event["object"], is_gone=event["type"] == "DELETED")
                        version = event["object"]["metadata"]["resourceVersion"]

    def _see(self, pod: Json, *, is_gone: bool) -> None:
        self.changes += 1
        meta = pod["metadata"]
        gang, uid = meta["labels"][GANG], meta["uid"]
        self._sizes[gang] = int(meta["annotations"][GANG_SIZE])
        if is_running(pod):
            self.ran.setdefault(meta["annotations"].get(GANG_UID, ""), set()).add(uid)
        if _is_preempted(pod):
            self.preempted.setdefault(gang, set()).add(uid)
        there = self._there.setdefault(gang, {})
        there.pop(uid, None)
        if not is_gone:
            there[uid] = pod
        running = {each["metadata"]["uid"] for each in self.running(gang)}
        if len(running) == self._sizes[gang]:
            self._whole[gang] = running
        if self.is_broken(gang):
            self.broken.add(gang)

    def of(self, gang: str) -> list[Json]:
        """List the pods of a gang that are there."""
        return list(self._there.get(gang, {}).values())

    def running(self, gang: str) -> list[Json]:
        """List the pods of a gang that run and may go on."""
        return [pod for pod in self.of(gang) if is_running(pod) and not _leaves(pod)]

    def is_partial(self, gang: str) -> bool:
        """Whether some pods of a gang run, and others neither do nor did."""
        ended = any(pod["status"].get("phase") == "Succeeded" for pod in self.of(gang))
        return not ended and 0 < len(self.running(gang)) < self._sizes.get(gang, 0)

    def is_broken(self, gang: str) -> bool:
        """Whether kube-scheduler took a part of a gang that ran whole and runs on.

        Not once all of them are decided again, though kube-scheduler may refuse some.
        """
        whole = self._whole.get(gang, set())
        running = {pod["metadata"]["uid"] for pod in self.running(gang)}
        taken = whole & self.preempted.get(gang, set())
        decided = sum(map(_is_decided, self.of(gang)))
        is_short = self.is_partial(gang) and decided < self._sizes[gang]
        return is_short and bool(taken) and bool(whole & running)

    def describe(self, gang: str) -> list[str]:
        """Say how the pods of a gang are, for a test that fails."""
        return [
            f"{pod['metadata']['name']} {pod['status'].get('phase')}"
            f"{' leaves' * _leaves(pod)}{' waits' * ('schedulingGates' in pod['spec'])}"
            f" {pod['status'].get('nominatedNodeName', '')}"
            f" {[c.get('reason') for c in pod['status'].get('conditions', ())]}"
            for pod in self.of(gang)
        ]

    async def settle(self) -> None:
        """Wait until nothing has changed for a while."""
        last = -1
        while last != self.changes:
            last = self.changes
            await asyncio.sleep(QUIET_S)


def _leaves(pod: Json) -> bool:
    return "deletionTimestamp" in pod["metadata"]


def _is_decided(pod: Json) -> bool:
    """Whether a pod's gate is open, and it may run on."""
    is_over = pod["status"].get("phase") in {"Succeeded", "Failed"}
    return not (is_over or _leaves(pod) or pod["spec"].get("schedulingGates"))


def _is_preempted(pod: Json) -> bool:
    conditions = pod["status"].get("conditions", ())
    return any(c.get("reason") == "PreemptionByScheduler" for c in conditions)


class Yard:
    """The gangs, and the pods for which kube-scheduler preempts."""

    def __init__(
        self, site: Fleet, client: Client, pods: Pods, draw: random.Random
    ) -> None:
        self._site = site
        self._client = client
        self._pods = pods
        self._draw = draw
        self._classes: dict[int, str] = {}
        self.left: dict[str, Run] = {}
        """The gangs that are not over."""
        self.seen: Counter[str] = Counter()
        """What was found at looks, and how often."""

    async def create(self, count: int) -> None:
        """Create gangs of mixed sizes, priorities and makers."""
        for value in VALUES:
            self._classes[value] = await priority_class(self._site, value)
        for number in range(count):
            kind = KINDS[number % len(KINDS)]
            run = Run(f"g{number}", kind, self._draw.choice(SIZES))
            self.left[run.name] = run
        limit = asyncio.Semaphore(16)

        async def create(run: Run) -> None:
            async with limit:
                await self._create(run)

        await asyncio.gather(*map(create, self.left.values()))

    async def _create(self, run: Run) -> None:
        value = self._draw.choice((0, *VALUES[:-1]))
        spec = {"priorityClassName": self._classes[value]} if value else {}
        if run.kind == "Pod":
            numbers, fields = range(run.size), {"requests": CPU, **spec}
            await create_pods(
                self._site, run.name, numbers, "one", size=run.size, **fields
            )
            return
        made = job(self._site, run.name, run.size, "one", backoffLimit=1000)
        pattern = made["spec"]["template"]
        pattern["metadata"]["annotations"][RECOVERY] = run.kind
        pattern["spec"] |= spec
        pattern["spec"]["containers"][0]["resources"]["requests"] = CPU
        run.job = await self._site.kube.create(made)

    async def intrude(self, turn: int) -> list[Json]:
        """Create pods without devices, until those that are worth most run."""
        values = [self._draw.choice(VALUES[1:]) for _ in range(NODES * 3 // 4)]
        pods = [
            objects.pod(
                self._site.namespace,
                f"urgent-{turn}-{number}",
                requests={"cpu": str(self._draw.choice((12, 25, 40)))},
                node_selector=self._site.labels,
                priorityClassName=self._classes[value],
            )
            for number, value in enumerate([VALUES[-1], *values])
        ]
        made = list(await asyncio.gather(*map(self._site.kube.create, pods)))
        for pod in made:
            if pod["spec"]["priority"] == VALUES[-1]:
                await self._site.kube.until(pod, is_running, WITHIN_S)
        return made

    async def look(self) -> None:
        """Compare what runs in part with what is told of it."""
        wrong: dict[str, str] = {}

        async def all_noticed() -> bool:
            wrong.clear()
            wrong.update(await self._find_wrong())
            return not wrong

        await eventually(all_noticed, lambda: f"what is told is so: {wrong}", WITHIN_S)
        for run in self.left.values():
            if self._pods.is_broken(run.name):
                self.seen[f"broken at a look, {run.kind}"] += 1

    async def _find_wrong(self) -> dict[str, str]:
        """Name the gangs of which something else is told than their pods show."""
        reasons = await self._reasons()
        wrong = {}
        for name in self.left:
            told = reasons.get(name, set())
            is_told, is_partial = GANG_BROKEN in told, self._pods.is_partial(name)
            if self._pods.is_broken(name) and not is_told:
                wrong[name] = f"broken, but {told}: {self._pods.describe(name)}"
            elif is_told and not is_partial:
                wrong[name] = f"{told}, but {self._pods.describe(name)}"
            elif is_partial and not told:
                wrong[name] = f"in part, untold: {self._pods.describe(name)}"
        return wrong

    async def _reasons(self) -> dict[str, set[str]]:
        """List what is reported on the bus, by gang."""
        return {
            group.name: {report.reason for report in group.reports}
            for group in await self._client.fetch_reports()
            if group.namespace == self._site.namespace and group.reports
        }

    async def told(self) -> set[str]:
        """Name the gangs with an event, or an end, that says that they are broken."""
        ended = {
            record.name
            for record in await self._client.fetch_gangs()
            if GANG_BROKEN in str(record.command)
        }
        listed = await self._site.kube.list(
            "events.k8s.io/v1", "Event", self._site.namespace
        )
        return ended | {
            event["regarding"]["name"].partition("-")[0]
            for event in listed
            if event.get("reportingController") == REPORTER
            and event["reason"] == GANG_BROKEN
        }

    async def end_some(self, *, is_last: bool) -> None:
        """Finish gangs that run whole, and give up half of those that do not.

        `is_last`: those of which no pod is there are given up, too.
        """
        for run in list(self.left.values()):
            running = self._pods.running(run.name)
            if len(running) == run.size:
                for pod in running:
                    self._site.kubelets.finish(pod)
                self.seen["finished whole"] += 1
            elif self._pods.is_broken(run.name) and (
                run.kind == "Pod" or self._draw.random() < 0.5
            ):
                self.seen["given up"] += 1
                await self._delete(run)
            elif not self._pods.of(run.name) and (run.kind == "Pod" or is_last):
                # A Job that lost them several times makes others after minutes.
                self.seen[f"without pods, {run.kind}"] += 1
                await self._delete(run)
            else:
                continue
            del self.left[run.name]

    async def _delete(self, run: Run) -> None:
        if run.job is not None:
            await self._site.kube.delete(run.job)
        for pod in self._pods.of(run.name):
            with contextlib.suppress(RefusedError):
                await self._site.kube.delete(pod)


@pytest.fixture(scope="module")
def stack(
    control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Stack]:
    """A stack with a lease as installed: whoever leads reads all gangs first."""
    folder = tmp_path_factory.mktemp("stack")
    with cluster.started(control_plane, folder, PUBLISHER_LEASE_S="15") as running:
        yield running


@asynccontextmanager
async def followed(kube: Kube, namespace: str) -> AsyncIterator[Pods]:
    """Follow the pods while the block runs."""
    pods = Pods(kube, namespace)
    task = asyncio.create_task(pods.follow())
    try:
        yield pods
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_no_gang_loses_a_part_and_runs_on_unnoticed(
    kube: Kube, namespace: str, client: Client
) -> None:
    nodes = [f"n{number}" for number in range(NODES)]
    devices = objects.devices(DEVICES)
    async with (
        fleet.running(kube, namespace, nodes, devices) as site,
        followed(kube, namespace) as pods,
    ):
        await template(site, "one", count=1)
        yard = Yard(site, client, pods, random.Random(35))
        await yard.create(GANGS)
        turn = 0
        while yard.left and turn < MOST_ROUNDS:
            await pods.settle()
            urgent = await yard.intrude(turn) if turn < DISTURBED else []
            await yard.look()
            for pod in urgent:
                with contextlib.suppress(RefusedError):  # it was preempted itself
                    await kube.delete(pod, grace_s=0)
            await yard.look()
            await yard.end_some(is_last=turn >= DISTURBED)
            turn += 1
            log.info("round %d: %d left, %s", turn, len(yard.left), dict(yard.seen))
        assert not yard.left

        async def all_told() -> bool:
            return pods.broken <= await yard.told()

        await eventually(all_told, f"of {sorted(pods.broken)} it was told", WITHIN_S)
        taken = set().union(*pods.preempted.values())
        ends = Counter(
            record.phase
            for record in await client.fetch_gangs()
            if (ran := pods.ran.get(str(record.uid))) and ran <= taken
        )
        log.info("%d pods of %d gangs preempted", len(taken), len(pods.preempted))
        log.info("%d gangs broken; all pods taken: %s", len(pods.broken), dict(ends))
        assert pods.broken
        assert ends[GangPhase.COMPLETED] == 0
