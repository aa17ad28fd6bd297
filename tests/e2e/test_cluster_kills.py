"""Whatever fails beside a real control plane: no half-open gang, nothing twice or lost.

Three NATS servers with TLS and tokens, two solvers, two publishers, two callouts. 6
faults (tests/lab/faults.py) of drawn kinds in `make test`; in `make soak` 1,000, or as
many as MOORINGS_KILLS says, by MOORINGS_SEED. `faults.txt` counts them.
"""

from __future__ import annotations

import asyncio
import os
import random
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import aiohttp

from contracts.names import GANG, GATE
from moorings.local.process import find_free_port
from runtime.bus.bus import Bus
from tests.conftest import OwnControlPlane
from tests.lab import small_disk
from tests.lab.cluster import gang_pod
from tests.lab.controlplane import kubelet, objects
from tests.lab.controlplane.client import Json, Kube, RefusedError
from tests.lab.controlplane.kubelet import RUNS_S
from tests.lab.controlplane.options import API_SERVER, Options
from tests.lab.faults import FULL_SERVER, RESTORED, Faults, in_turn
from tests.lab.partition import Link, forwarding
from tests.lab.publisher_rights import publisher_kubeconfig
from tests.lab.secured_cluster import TokenPlatform, secured_stack
from tests.lab.services import eventually
from tests.lab.soak import sized

KILLS = int(os.environ.get("MOORINGS_KILLS", sized(6, 1_000)))
SEED = os.environ.get("MOORINGS_SEED", str(KILLS))
ONLY = os.environ.get("MOORINGS_FAULTS", "")
"""Kinds of faults between commas; empty: all."""
DRIVER = "gpu.example.com"
NODES, DEVICES = 4, 4
SETTLED_S = 120.0
MOST_MEBIBYTES = 600
"""That a service may hold; each of them 100 to 200, however many faults there were."""
RENEWED_EVERY = 20
"""Faults between two tokens of the platform; each is valid for ten minutes."""


class World:
    """What runs, what was asked of it, and what must hold at any moment."""

    def __init__(self, kube: Kube, namespace: str, seed: str) -> None:
        self.kube = kube
        self.looking = asyncio.Lock()
        """Held while two answers of the cluster are compared."""
        self._pods: list[Json] = []
        self.torn: set[str] = set()
        """Gangs whose gates were about to open when a backup was taken: who is behind
        them may wait for pods that had ended already, until somebody deletes it."""
        self.namespace = namespace
        self.draw = random.Random(seed)
        self.gangs: dict[str, int] = {}
        """Pods of each gang that was created whole."""
        self.looks = 0

    async def create_gangs(self) -> None:
        """Create up to two gangs; the API server may be away in the middle."""
        for _ in range(self.draw.randint(1, 2)):
            name, size = f"g{len(self.gangs)}", self.draw.randint(1, 4)
            template = self.draw.choice(["one", "two"])
            runs_s = f"{self.draw.random() * 3:.1f}"
            self.gangs[name] = size
            for index in range(size):
                pod = gang_pod(
                    self.namespace,
                    f"{name}-{index}",
                    gang=name,
                    size=size,
                    templates={"gpus": template},
                )
                pod["metadata"]["annotations"][RUNS_S] = runs_s
                self._pods.append(pod)
                await insist(self.kube, pod)

    async def create_lost(self) -> None:
        """Create again what the cluster has forgotten, as whoever runs Jobs does."""
        restored = await self._list("/api/v1/pods")
        gated = {gang_of(pod) for pod in restored if is_gated(pod)}
        self.torn |= gated & {gang_of(pod) for pod in restored if not is_gated(pod)}
        there = {pod["metadata"]["name"] for pod in restored}
        for pod in self._pods:
            if pod["metadata"]["name"] not in there:
                await insist(self.kube, pod)

    async def check(self) -> None:
        """Look once: claims of one list are of one moment."""
        async with self.looking:
            await self._check()

    async def _check(self) -> None:
        pods = await self._list("/api/v1/pods")
        claims = await self._list("/apis/resource.k8s.io/v1/resourceclaims")
        self.looks += 1
        held = Counter(
            (result["pool"], result["device"])
            for claim in claims
            for result in devices_of(claim)
        )
        assert not [device for device, count in held.items() if count > 1]
        allocated = {c["metadata"]["name"] for c in claims if devices_of(c)}
        await self._check_gangs(pods, allocated)

    async def _check_gangs(self, pods: list[Json], allocated: set[str]) -> None:
        """A gate is open only where every claim of the gang holds its devices."""
        opened = {gang_of(pod) for pod in pods if not is_gated(pod)} - self.torn
        for pod in pods:
            if gang_of(pod) not in opened:
                continue
            names = [
                item["resourceClaimName"]
                for item in pod["status"].get("resourceClaimStatuses", ())
            ]
            if not is_over(pod) and not (names and allocated.issuperset(names)):
                later = await self.kube.get({**pod, "apiVersion": "v1", "kind": "Pod"})
                gang = [other for other in pods if gang_of(other) == gang_of(pod)]
                assert is_over(later), _describe(gang, allocated)

    async def _list(self, path: str) -> list[Json]:
        path = path.replace("/v1/", f"/v1/namespaces/{self.namespace}/")
        items: list[Json] = (await self.kube.request("GET", path))["items"]
        return items

    async def unsettled(self) -> list[str]:
        """Name the pods that have not run to their end, and claims that are left."""
        pods = await self._list("/api/v1/pods")
        claims = await self._list("/apis/resource.k8s.io/v1/resourceclaims")
        found = [
            _shown(pod)
            for pod in pods
            if not is_over(pod) and not (is_gated(pod) and gang_of(pod) in self.torn)
        ]
        names = (claim["metadata"]["name"] for claim in claims)
        found += [f"claim {n}" for n in names if n.partition("-")[0] not in self.torn]
        return found if len(pods) == sum(self.gangs.values()) else ["pods", *found]


def _shown(pod: Json) -> str:
    where = pod["spec"].get("nodeName") or ("gated" if is_gated(pod) else "unbound")
    return f"pod {pod['metadata']['name']} {where} {pod['status'].get('phase')}"


def _describe(gang: list[Json], allocated: set[str]) -> str:
    lines = []
    for pod in gang:
        statuses = pod["status"].get("resourceClaimStatuses", ())
        claims = {item["resourceClaimName"] for item in statuses}
        meta = pod["metadata"]
        notes, at = meta.get("annotations"), meta["creationTimestamp"]
        held = sorted(claims & allocated)
        lines.append(f"{_shown(pod)} of {at} {notes}: {sorted(claims)}, held {held}")
    return "\n".join(lines)


def gang_of(pod: Json) -> str:
    name: str = pod["metadata"]["labels"][GANG]
    return name


def devices_of(claim: Json) -> list[Json]:
    allocation = claim.get("status", {}).get("allocation", {})
    found: list[Json] = allocation.get("devices", {}).get("results", [])
    return found


def is_gated(pod: Json) -> bool:
    return {"name": GATE} in pod["spec"].get("schedulingGates", ())


def is_over(pod: Json) -> bool:
    return pod["status"].get("phase") in {"Succeeded", "Failed"}


async def insist(kube: Kube, item: Json) -> None:
    """Create an object, however long the API server is away."""
    while True:
        try:
            await kube.create(item)
        except RefusedError as error:
            if error.status == 409:
                return
            if error.status < 500 and error.status != 403:
                raise
        except (aiohttp.ClientError, TimeoutError):
            pass
        else:
            return
        await asyncio.sleep(0.2)


async def tolerant(look: Callable[[], Awaitable[object]]) -> object:
    """Look, unless the API server is away."""
    try:
        return await look()
    except (aiohttp.ClientError, RefusedError, TimeoutError):
        return None


async def watch_over(world: World, stop: asyncio.Event) -> None:
    """Check all the time."""
    while not stop.is_set():
        await tolerant(world.check)
        await asyncio.sleep(0.1)


async def eventually_settled(world: World) -> None:
    """Wait until all pods have run and nothing is left, as long as it gets less."""
    left: object = None
    loop = asyncio.get_running_loop()
    end = loop.time() + SETTLED_S
    while loop.time() < end:
        before, left = left, await tolerant(world.unsettled)
        if left == []:
            return
        if left != before:
            end = loop.time() + SETTLED_S
        await asyncio.sleep(0.5)
    raise AssertionError(left)


async def test_no_gang_is_half_open_and_nothing_lost_whatever_is_killed(
    own_control_plane: OwnControlPlane, tmp_path: Path
) -> None:
    plane = own_control_plane(Options())
    link = Link(find_free_port(), plane.programs[API_SERVER].port)
    kubeconfig = tmp_path / "linked.kubeconfig"
    near = publisher_kubeconfig(plane).read_text()
    kubeconfig.write_text(near.replace(plane.url, f"https://127.0.0.1:{link.port}"))
    async with (
        plane.client() as kube,
        kube.namespace() as namespace,
        forwarding([link]),
        AsyncExitStack() as opened,
    ):
        disk = None
        if not small_disk.why_not():
            place = tmp_path / "nats" / f"nats-{FULL_SERVER}"
            disk = opened.enter_context(small_disk.small_disk(place, "512m"))
        stack = await opened.enter_async_context(
            secured_stack(plane, tmp_path, PUBLISHER_KUBECONFIG=str(kubeconfig))
        )
        await kube.create(objects.device_class(DRIVER, DRIVER))
        for name, count in (("one", 1), ("two", 2)):
            spec = objects.requests(DRIVER, count)
            await kube.create(objects.template(namespace, name, spec))
        nodes = [objects.node(f"node-{number}") for number in range(NODES)]
        platform = TokenPlatform(plane, stack.nats, namespace)
        async with (
            kubelet.running(kube, nodes),
            Bus.open(platform.settings) as bus,
            Bus.open(stack.nats.settings("solver")) as reader,
        ):
            for item in nodes:
                name = item["metadata"]["name"]
                devices = objects.devices(DEVICES)
                await kube.create(objects.resource_slice(DRIVER, name, devices))
            world = World(kube, namespace, seed=SEED)
            faults = Faults(
                plane, stack, link, disk, draw=world.draw, looking=world.looking
            )
            stop, at_start = asyncio.Event(), faults.held_mebibytes()
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(watch_over(world, stop))
                kinds = [kind for kind in faults.kinds if not ONLY or kind in ONLY]
                drawn = in_turn(kinds, KILLS, world.draw)
                for number, kind in enumerate(drawn):
                    await world.create_gangs()
                    await asyncio.sleep(world.draw.random())
                    submitting = tasks.create_task(platform.submit(bus))
                    await faults.make(kind)
                    if kind == RESTORED:
                        await world.create_lost()
                    (tmp_path / "faults.txt").write_text(faults.report())
                    await submitting
                    if number % RENEWED_EVERY == 0:
                        await asyncio.to_thread(platform.renew)
                await eventually_settled(world)
                await eventually(
                    lambda: platform.all_answered(reader), "all is answered", SETTLED_S
                )
                stop.set()
                held = faults.held_mebibytes()
    lines = [
        faults.report(),
        f"{world.looks} looks, {len(world.gangs)} gangs, {len(world.torn)} torn",
        f"ended by themselves: {dict(stack.restarts)}",
        f"MiB at the start: {at_start}",
        f"MiB at the end: {held}",
    ]
    report = "\n".join(lines)
    (tmp_path / "faults.txt").write_text(report)
    print(f"seed {SEED}\n{report}")  # noqa: T201 # the report of a soak
    assert max(held.values()) < MOST_MEBIBYTES
    assert world.looks > KILLS
