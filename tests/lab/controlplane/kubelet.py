"""Stands in for the kubelets of many nodes: pods that are bound run, end and go.

It sees pods by one watch and asks of each what is the next step, so that a lost
connection or a killed API server costs nothing but time. As the real one, it starts a
pod when all its claims are reserved for it and their devices prepared. Runs no
container, sends no heartbeat.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterable
from contextlib import aclosing, asynccontextmanager
from datetime import UTC, datetime

import aiohttp

from tests.lab.controlplane.client import STRATEGIC, Json, Kube, RefusedError, named
from tests.lab.controlplane.drivers import Drivers
from tests.lab.controlplane.objects import RESOURCE

RUNS_S = "kubelet.test/runs-s"
"""A pod with this annotation ends by itself after so many seconds."""
EXIT_CODE = "kubelet.test/exit-code"
"""... with this code; 0 if there is none."""
Key = tuple[str, str]
"""A pod's namespace and name."""
_WORKERS = 16
_RETRY_S = 0.1
_TERMINAL = ("Succeeded", "Failed")


class Kubelets:
    """The kubelets of some nodes."""

    def __init__(self, kube: Kube, nodes: Iterable[str]) -> None:
        self.nodes = set(nodes)
        self.drivers = Drivers()
        self._kube = kube
        self._pods: dict[Key, Json] = {}
        self._listed = asyncio.Event()
        """Nothing is done by what was seen before a connection was lost: the cluster
        may have been restored from a backup meanwhile."""
        self._exit_codes: dict[str, int] = {}
        """By pod uid: what ended, or shall."""
        self._queued: set[Key] = set()
        self._due: list[asyncio.Queue[Key]] = [asyncio.Queue() for _ in range(_WORKERS)]
        """A pod is always the same worker's: its steps follow each other."""
        self._timers: dict[str, asyncio.TimerHandle] = {}

    def finish(self, pod: Json, exit_code: int = 0) -> None:
        """End the containers of a pod: Succeeded with 0, Failed with another code."""
        self._exit_codes[pod["metadata"]["uid"]] = exit_code
        self._look(_key(pod))

    async def run(self) -> None:
        """Tend the pods until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._follow())
            for due in self._due:
                tasks.create_task(self._work(due))

    async def _follow(self) -> None:
        while True:
            with contextlib.suppress(aiohttp.ClientError, RefusedError, TimeoutError):
                await self._list_and_watch()
            await asyncio.sleep(_RETRY_S)

    async def _list_and_watch(self) -> None:
        path, bound = "/api/v1/pods", {"fieldSelector": "spec.nodeName!="}
        listed = await self._kube.request("GET", path, **bound)
        there = {pod["metadata"]["uid"] for pod in listed["items"]}
        for pod in list(self._pods.values()):
            if pod["metadata"]["uid"] not in there:
                self._see(pod, gone=True)
        for pod in listed["items"]:
            self._see(pod)
        version = listed["metadata"]["resourceVersion"]
        self._listed.set()
        try:
            async with aclosing(self._kube.watch(path, version, **bound)) as events:
                async for event in events:
                    self._see(event["object"], gone=event["type"] == "DELETED")
        finally:
            self._listed.clear()

    def _see(self, pod: Json, *, gone: bool = False) -> None:
        if pod["spec"].get("nodeName") not in self.nodes:
            return
        if gone:
            self._pods.pop(_key(pod), None)
            self.drivers.unprepare(pod)
            self._exit_codes.pop(pod["metadata"]["uid"], None)
            if timer := self._timers.pop(pod["metadata"]["uid"], None):
                timer.cancel()
        else:
            self._pods[_key(pod)] = pod
            self._look(_key(pod))

    def _look(self, key: Key) -> None:
        if key not in self._queued:
            self._queued.add(key)
            self._due[hash(key) % _WORKERS].put_nowait(key)

    async def _work(self, due: asyncio.Queue[Key]) -> None:
        while True:
            key = await due.get()
            await self._listed.wait()
            self._queued.discard(key)
            pod = self._pods.get(key)
            if pod is None:
                continue
            try:
                await self._step(pod)
            except RefusedError as error:
                if error.status not in {404, 409}:  # gone, or another pod by now
                    self._look_later(key)
            except (aiohttp.ClientError, TimeoutError):
                self._look_later(key)

    def _look_later(self, key: Key) -> None:
        asyncio.get_running_loop().call_later(_RETRY_S, self._look, key)

    async def _step(self, pod: Json) -> None:
        """Do the one next thing that a kubelet would do with a pod."""
        uid, phase = pod["metadata"]["uid"], pod["status"].get("phase")
        leaves = "deletionTimestamp" in pod["metadata"]
        if phase in _TERMINAL:
            self.drivers.unprepare(pod)
            if leaves:
                await self._kube.delete(_whole(pod), grace_s=0)
        elif leaves or uid in self._exit_codes:
            self.drivers.unprepare(pod)  # before anybody hears that it has ended
            await self._patch_status(pod, _ended(pod, self._exit_codes.get(uid, 137)))
        elif phase == "Pending" and not await self._prepared(pod):
            self._look_later(_key(pod))
        else:
            if phase == "Pending":
                await self._patch_status(pod, _running(pod))
            self._end_later(pod)

    async def _prepared(self, pod: Json) -> bool:
        """Have the pod's devices prepared, if its claims are there and reserved."""
        if not _are_generated(pod):
            return False
        namespace = pod["metadata"]["namespace"]
        claims = []
        for name in _claims(pod):
            claim = named(RESOURCE, "ResourceClaim", name, namespace)
            try:
                claims.append(await self._kube.get(claim))
            except RefusedError as error:
                if error.status != 404:
                    raise
                return False
        there = self._pods.get(_key(pod))
        same = there is not None and there["metadata"]["uid"] == pod["metadata"]["uid"]
        return same and self.drivers.prepare(pod, claims)

    def _end_later(self, pod: Json) -> None:
        meta = pod["metadata"]
        notes = meta.get("annotations", {})
        if RUNS_S in notes and meta["uid"] not in self._timers:
            code = int(notes.get(EXIT_CODE, "0"))
            self._timers[meta["uid"]] = asyncio.get_running_loop().call_later(
                float(notes[RUNS_S]), self.finish, pod, code
            )

    async def _patch_status(self, pod: Json, status: Json) -> None:
        patch = {"metadata": {"uid": pod["metadata"]["uid"]}, "status": status}
        await self._kube.patch(_whole(pod), patch, "status", media=STRATEGIC)


@asynccontextmanager
async def running(kube: Kube, nodes: Iterable[Json]) -> AsyncIterator[Kubelets]:
    """Make nodes and tend their pods while the block runs; the nodes go with it.

    Raises:
        AssertionError: at the end, if a device was wanted by two claims at a time.
    """
    made = list(nodes)
    await asyncio.gather(*(kube.create(node) for node in made))
    kubelets = Kubelets(kube, (node["metadata"]["name"] for node in made))
    task = asyncio.create_task(kubelets.run())
    try:
        yield kubelets
        assert not kubelets.drivers.conflicts
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        await asyncio.gather(*(_delete(kube, node) for node in made))


async def _delete(kube: Kube, node: Json) -> None:
    with contextlib.suppress(RefusedError):
        await kube.delete(node)


def _key(pod: Json) -> Key:
    return pod["metadata"]["namespace"], pod["metadata"]["name"]


def _are_generated(pod: Json) -> bool:
    """Whether the claims of a pod's templates were made."""
    made = {entry["name"] for entry in pod["status"].get("resourceClaimStatuses", ())}
    return all(
        "resourceClaimName" in entry or entry["name"] in made
        for entry in pod["spec"].get("resourceClaims", ())
    )


def _claims(pod: Json) -> list[str]:
    """Name the claims of a pod: its own, those made for it, of extended resources."""
    status = pod["status"]
    made = {
        entry["name"]: entry.get("resourceClaimName")
        for entry in status.get("resourceClaimStatuses", ())
    }
    names = [
        entry.get("resourceClaimName") or made.get(entry["name"])
        for entry in pod["spec"].get("resourceClaims", ())
    ]
    extended = status.get("extendedResourceClaimStatus", {})
    names.append(extended.get("resourceClaimName"))
    return [name for name in names if name]


def _whole(pod: Json) -> Json:
    """Name the kind, which lists leave out."""
    return {"apiVersion": "v1", "kind": "Pod", **pod}


def _running(pod: Json) -> Json:
    now = _now()
    conditions = ("PodReadyToStartContainers", "Initialized", "Ready")
    return {
        "phase": "Running",
        "startTime": now,
        "hostIP": "192.0.2.10",
        "podIP": "198.51.100.10",
        "podIPs": [{"ip": "198.51.100.10"}],
        "conditions": [
            {"type": kind, "status": "True", "lastTransitionTime": now}
            for kind in (*conditions, "ContainersReady")
        ],
        "containerStatuses": [
            _container(container, {"running": {"startedAt": now}}, ready=True)
            for container in pod["spec"]["containers"]
        ],
    }


def _ended(pod: Json, exit_code: int) -> Json:
    now = _now()
    state = {
        "terminated": {
            "exitCode": exit_code,
            "reason": "Error" if exit_code else "Completed",
            "startedAt": pod["status"].get("startTime", now),
            "finishedAt": now,
        }
    }
    return {
        "phase": "Failed" if exit_code else "Succeeded",
        "conditions": [
            {"type": kind, "status": "False", "lastTransitionTime": now}
            for kind in ("Ready", "ContainersReady")
        ],
        "containerStatuses": [
            _container(container, state, ready=False)
            for container in pod["spec"]["containers"]
        ],
    }


def _container(container: Json, state: Json, *, ready: bool) -> Json:
    # A strategic merge would keep the old state beside the new one.
    states = {"running": None, "waiting": None, "terminated": None, **state}
    return {
        "name": container["name"],
        "image": container["image"],
        "imageID": "none",
        "ready": ready,
        "started": ready,
        "restartCount": 0,
        "state": states,
    }


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
