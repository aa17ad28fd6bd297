"""SIGKILL to anything beside a real control plane: no half-open gang, nothing twice.

Three NATS servers with TLS and tokens, two solvers, two publishers, two callouts; 300
kills, in `make soak` alone.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path

import aiohttp
import pytest

from contracts.names import GANG, GATE
from runtime.bus.bus import Bus
from tests.conftest import OwnControlPlane
from tests.lab.cluster import gang_pod
from tests.lab.controlplane import kubelet, objects
from tests.lab.controlplane.client import Json, Kube, RefusedError
from tests.lab.controlplane.kubelet import RUNS_S
from tests.lab.controlplane.options import API_SERVER, ETCD, Options
from tests.lab.controlplane.server import ControlPlane
from tests.lab.secured_cluster import (
    CALLOUTS,
    PUBLISHERS,
    SOLVERS,
    SecuredStack,
    TokenPlatform,
    secured_stack,
)
from tests.lab.secured_nats import SERVERS
from tests.lab.services import eventually

pytestmark = pytest.mark.soak

SERVER, ALL_SERVERS = "a server", "all servers"
"""Of NATS."""
VICTIMS = (
    *(*SOLVERS, *PUBLISHERS, *CALLOUTS),
    *(SERVER, ALL_SERVERS, API_SERVER, ETCD),
)
KILLS = 300
DRIVER = "gpu.example.com"
NODES, DEVICES = 4, 4
SETTLED_S = 120.0
RENEWED_EVERY = 20
"""Faults between two tokens of the platform; each is valid for ten minutes."""


class World:
    """What runs, what was asked of it, and what must hold at any moment."""

    def __init__(self, kube: Kube, namespace: str, seed: int) -> None:
        self.kube = kube
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
                await insist(self.kube, pod)

    async def check(self) -> None:
        """Look once: claims of one list are of one moment."""
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
        opened = {p["metadata"]["labels"][GANG] for p in pods if not is_gated(p)}
        for pod in pods:
            if pod["metadata"]["labels"][GANG] not in opened:
                continue
            names = [
                item["resourceClaimName"]
                for item in pod["status"].get("resourceClaimStatuses", ())
            ]
            if not is_over(pod) and not (names and allocated.issuperset(names)):
                later = await self.kube.get({**pod, "apiVersion": "v1", "kind": "Pod"})
                assert is_over(later), later

    async def _list(self, path: str) -> list[Json]:
        path = path.replace("/v1/", f"/v1/namespaces/{self.namespace}/")
        items: list[Json] = (await self.kube.request("GET", path))["items"]
        return items

    async def unsettled(self) -> list[str]:
        """Name the pods that have not run to their end, and claims that are left."""
        pods = await self._list("/api/v1/pods")
        claims = await self._list("/apis/resource.k8s.io/v1/resourceclaims")
        found = [_shown(pod) for pod in pods if not is_over(pod)]
        found += [f"claim {claim['metadata']['name']}" for claim in claims]
        return found if len(pods) == sum(self.gangs.values()) else ["pods", *found]


def _shown(pod: Json) -> str:
    where = pod["spec"].get("nodeName") or ("gated" if is_gated(pod) else "unbound")
    return f"pod {pod['metadata']['name']} {where} {pod['status'].get('phase')}"


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


async def kill(
    victim: str, plane: ControlPlane, stack: SecuredStack, draw: random.Random
) -> None:
    """Kill and start again after a while."""
    pause_s = draw.random() * 0.5
    if victim in plane.programs:
        plane.kill(victim)
        await asyncio.sleep(pause_s)
        await plane.restart(victim)
    elif victim in (SERVER, ALL_SERVERS):
        count = 1 if victim == SERVER else SERVERS
        numbers = draw.sample(range(SERVERS), count)
        for number in numbers:
            stack.nats.kill(number)
        await asyncio.sleep(pause_s)
        for number in numbers:
            stack.nats.start(number)
    else:
        stack.processes[victim].kill()
        await asyncio.sleep(pause_s)
        stack.processes[victim].start()


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
    async with (
        plane.client() as kube,
        kube.namespace() as namespace,
        secured_stack(plane, tmp_path) as stack,
    ):
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
            world = World(kube, namespace, seed=KILLS)
            stop = asyncio.Event()
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(watch_over(world, stop))
                for number in range(KILLS):
                    await world.create_gangs()
                    await asyncio.sleep(world.draw.random())
                    submitting = tasks.create_task(platform.submit(bus))
                    await kill(victim_of(number, world.draw), plane, stack, world.draw)
                    await submitting
                    if number % RENEWED_EVERY == 0:
                        await asyncio.to_thread(platform.renew)
                await eventually_settled(world)
                await eventually(
                    lambda: platform.all_answered(reader), "all is answered", SETTLED_S
                )
                stop.set()
    assert world.looks > KILLS


def victim_of(number: int, draw: random.Random) -> str:
    return VICTIMS[number] if number < len(VICTIMS) else draw.choice(VICTIMS)
