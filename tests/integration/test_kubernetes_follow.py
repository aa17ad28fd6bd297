"""Followers of a real API server see every change, whatever happens to it."""

from __future__ import annotations

import asyncio
import base64
import gc
import json
import warnings
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest

from moorings.local.process import find_free_port
from publisher.kube.informer import follow
from runtime.kube.api import KubernetesApi
from runtime.kube.errors import InvalidError, NotFoundError
from runtime.kube.kinds import GANG_OWNERS, RESOURCE_CLAIM, Kind
from runtime.kube.lenient import ALTERED
from tests.lab.controlplane import objects, server
from tests.lab.controlplane.client import Json, Kube, named
from tests.lab.controlplane.options import API_SERVER, ETCD, Options, User
from tests.lab.controlplane.server import ControlPlane
from tests.lab.services import eventually

SMALL = Options(programs=(ETCD, API_SERVER), users=(User("stranger"), User("outsider")))
GADGET = Kind(group="example.com", plural="gadgets", name="Gadget", namespaced=True)
CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"


@pytest.fixture(scope="module")
def started(
    control_plane_programs: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ControlPlane]:
    """A control plane that each test leaves running; it may kill parts of it."""
    folder = tmp_path_factory.mktemp("small")
    with server.running(control_plane_programs, folder, SMALL) as running:
        yield running


@pytest.fixture
async def small(started: ControlPlane) -> ControlPlane:
    """The same without claims."""
    await forget_claims(started)
    return started


async def forget_claims(control_plane: ControlPlane) -> None:
    """Delete what earlier tests left."""
    async with control_plane.client() as kube:
        await kube.request("DELETE", CLAIMS)


class Seen:
    """What a follower was told: the objects as they are now, and how often."""

    def __init__(self) -> None:
        self.objects: dict[str, Json] = {}
        self.changes = 0
        self.synced = False

    async def follow(
        self,
        api: KubernetesApi,
        kind: Kind,
        stop: asyncio.Event,
        *,
        may_be_absent: bool = False,
    ) -> None:
        """Believe what a follower says until `stop`."""
        async for page in follow(api, kind, stop, may_be_absent=may_be_absent):
            for change in page.changes:
                assert change.kind == kind.name
                self.changes += 1
                if change.object is None:
                    del self.objects[change.key]
                else:
                    self.objects[change.key] = change.object
            self.synced = page.synced

    def labels(self) -> dict[str, str]:
        """The label that says which version of an object is seen, by name."""
        return {
            key.rpartition("/")[2]: item["metadata"].get("labels", {}).get("v", "")
            for key, item in self.objects.items()
        }


@asynccontextmanager
async def following(
    control_plane: ControlPlane,
    kind: Kind,
    user: str = "admin",
    *,
    may_be_absent: bool = False,
) -> AsyncIterator[Seen]:
    """Follow a kind while the block runs."""
    seen, stop = Seen(), asyncio.Event()
    async with KubernetesApi.open(str(control_plane.kubeconfig(user))) as api:
        task = asyncio.create_task(
            seen.follow(api, kind, stop, may_be_absent=may_be_absent)
        )
        try:
            yield seen
        finally:
            stop.set()
            await task


async def until(holds: Callable[[], bool], what: str) -> None:
    async def really() -> bool:
        return holds()

    await eventually(really, what)


def claim(name: str, version: str = "1") -> Json:
    made = objects.claim("default", name, objects.requests("none"))
    made["metadata"]["labels"] = {"v": version}
    return made


def change(version: str) -> Json:
    return {"metadata": {"labels": {"v": version}}}


async def compact(control_plane: ControlPlane) -> None:
    """Let etcd forget its history, which by itself it does every five minutes."""
    etcd = control_plane.programs[ETCD].url
    key = base64.b64encode(b"/").decode()
    async with aiohttp.ClientSession(etcd) as session:
        async with session.post("/v3/kv/range", json={"key": key}) as answer:
            revision = (await answer.json())["header"]["revision"]
        body = {"revision": revision, "physical": True}
        async with session.post("/v3/kv/compaction", json=body) as answer:
            assert answer.status == 200, await answer.text()


async def test_every_change_is_seen(small: ControlPlane) -> None:
    """From before and after the beginning, each once, the last one last."""
    async with small.client() as kube:
        for number in range(510):
            await kube.create(claim(f"old-{number}"))
        async with following(small, RESOURCE_CLAIM) as seen:
            await until(lambda: seen.synced, "the list is complete")
            assert len(seen.objects) == seen.changes == 510
            await asyncio.gather(
                *(kube.patch(claim(f"old-{n}"), change("2")) for n in range(100)),
                *(kube.create(claim(f"new-{n}")) for n in range(100)),
                *(kube.delete(claim(f"old-{n}")) for n in range(100, 200)),
            )
            expected = {f"old-{n}": "2" for n in range(100)}
            expected |= {f"old-{n}": "1" for n in range(200, 510)}
            expected |= {f"new-{n}": "1" for n in range(100)}
            await until(lambda: seen.labels() == expected, "the changes are seen")
            assert seen.changes == 510 + 300
    async with KubernetesApi.open(str(small.kubeconfig())) as api:
        never = asyncio.Event()
        with pytest.raises(InvalidError):
            await anext(follow(api, RESOURCE_CLAIM, never, field_selector="none=1"))
        with pytest.raises(NotFoundError):
            await anext(follow(api, GADGET, never))


async def test_what_happens_meanwhile_is_seen_once(
    small: ControlPlane, capsys: pytest.CaptureFixture[str]
) -> None:
    """The API server was away and the history is lost: only differences come."""
    api_server = small.programs[API_SERVER]
    async with small.client() as kube:
        for name in ("changed", "deleted", "kept", "recreated"):
            await kube.create(claim(name))
        async with following(small, RESOURCE_CLAIM) as seen:
            await until(lambda: seen.synced, "the list is complete")
            small.kill(API_SERVER)
            await until(
                lambda: "outage.began" in capsys.readouterr().out, "it is noticed"
            )
            port, api_server.port = api_server.port, find_free_port()
            await small.restart(API_SERVER)
            async with small.client() as elsewhere:
                await elsewhere.patch(claim("changed"), change("2"))
                await elsewhere.delete(claim("deleted"))
                await elsewhere.delete(claim("recreated"))
                await elsewhere.create(claim("recreated", "2"))
                await elsewhere.create(claim("created"))
            await compact(small)
            small.kill(API_SERVER)
            api_server.port = port
            await small.restart(API_SERVER)
            expected = {"changed": "2", "kept": "1", "recreated": "2", "created": "1"}
            await until(lambda: seen.labels() == expected, "the changes are seen")
    assert seen.changes == 4 + 4
    log = capsys.readouterr().out
    assert "too old resource version" in log
    # Away, and then without its history: one line each at the start and at the end.
    assert (log.count("outage.began"), log.count("outage.ended")) == (1, 2)


async def test_etcd_may_be_away_too(small: ControlPlane) -> None:
    """The API server stays and answers 5xx, or nothing; then all goes on."""
    async with small.client() as kube:
        await kube.create(claim("a"))
        async with following(small, RESOURCE_CLAIM) as seen:
            await until(lambda: seen.synced, "the list is complete")
            small.kill(ETCD)
            async with following(small, RESOURCE_CLAIM) as late:
                await asyncio.sleep(1)
                assert not late.synced
                await small.restart(ETCD)
                await until(lambda: late.synced, "a follower that began meanwhile")
            await kube.patch(claim("a"), change("2"))
            await until(lambda: seen.labels() == {"a": "2"}, "the change is seen")


async def test_a_kind_may_come_and_go(small: ControlPlane) -> None:
    """Nothing is there while it is not served; an API server that restarts is none."""
    gadget = {**named("example.com/v1", "Gadget", "g", "default"), "spec": {}}
    async with (
        small.client() as kube,
        following(small, GADGET, may_be_absent=True) as seen,
    ):
        await until(lambda: seen.synced, "nothing is there")
        definition = await kube.create(definition_of(GADGET))
        await kube.until(definition, is_established)
        await kube.create(gadget)
        await until(lambda: set(seen.objects) == {"default/g"}, "it is seen")
        small.kill(API_SERVER)
        await small.restart(API_SERVER)
        await kube.patch(gadget, change("2"))
        await until(lambda: seen.labels() == {"g": "2"}, "it is still there")
        assert seen.changes == 2
        await kube.delete(definition)
        await until(lambda: not seen.objects, "all is gone with the kind")


async def test_a_missing_permission_is_waited_for(
    small: ControlPlane, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is named once, and followed once it is granted."""
    printed: list[str] = []

    def named_once() -> bool:
        printed.append(capsys.readouterr().out)
        return "verb list on resourceclaims" in "".join(printed)

    async with (
        small.client() as kube,
        following(small, RESOURCE_CLAIM, "stranger") as seen,
    ):
        await until(named_once, "the rule is named")
        await kube.create(
            {
                "apiVersion": "rbac.authorization.k8s.io/v1",
                "kind": "ClusterRoleBinding",
                "metadata": {"name": "stranger"},
                "roleRef": {
                    "apiGroup": "rbac.authorization.k8s.io",
                    "kind": "ClusterRole",
                    "name": "cluster-admin",
                },
                "subjects": [{"kind": "User", "name": "stranger"}],
            }
        )
        await until(lambda: seen.synced, "it is followed")
        printed.append(capsys.readouterr().out)
        assert "".join(printed).count("outage.began") == 1


async def test_a_kind_that_may_be_denied_keeps_nobody_waiting(
    small: ControlPlane, capsys: pytest.CaptureFixture[str]
) -> None:
    """It has no objects for us; the missing right is named once."""
    stop = asyncio.Event()
    kubeconfig = str(small.kubeconfig("outsider"))
    job = next(kind for kind in GANG_OWNERS if kind.name == "Job")
    async with KubernetesApi.open(kubeconfig) as api:
        async for page in follow(api, job, stop, may_be_denied=True):
            assert page.synced
            assert page.changes == ()
            asyncio.get_running_loop().call_later(3.0, stop.set)
    printed = capsys.readouterr().out
    assert printed.count("outage.began") == 1
    assert "jobs" in printed


def definition_of(kind: Kind) -> Json:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {
        "name": kind.version,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{kind.plural}.{kind.group}"},
        "spec": {
            "group": kind.group,
            "scope": "Namespaced",
            "names": {"plural": kind.plural, "kind": kind.name},
            "versions": [version],
        },
    }


def is_established(definition: Json) -> bool:
    conditions = definition.get("status", {}).get("conditions") or []
    return any(
        (item["type"], item["status"]) == ("Established", "True") for item in conditions
    )


def test_what_is_left_leaves_no_connection(started: ControlPlane) -> None:
    """Nobody waits for the farewell of an API server that is slow to say it.

    Neither who follows nor who gives up a request, ours and that of these tests.
    """
    api_server = started.programs[API_SERVER]

    async def follow_and_leave() -> None:
        await forget_claims(started)
        async with following(started, RESOURCE_CLAIM) as seen:
            await until(lambda: seen.synced, "the list is complete")
            kubeconfig = str(started.kubeconfig())
            async with (
                started.client() as kube,
                KubernetesApi.open(kubeconfig) as api,
            ):
                await kube.create(claim("a"))
                await until(lambda: seen.changes == 1, "the watch stands")
                await api.get(RESOURCE_CLAIM, "default/a")
                api_server.pause()
                for request in (
                    kube.get(claim("a")),
                    api.get(RESOURCE_CLAIM, "default/a"),
                ):
                    with pytest.raises(TimeoutError):
                        await asyncio.wait_for(request, 0.5)

    gc.collect()  # what earlier tests of this process left is not ours
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        asyncio.run(follow_and_leave())
        gc.collect()
    api_server.resume()
    assert [str(item.message) for item in said] == []


PARAMETERS = {
    "deep": b"[" * 4500 + b"]" * 4500,
    "half": b'"\\ud800"',
    "bytes": b'"\xff"',
}
"""What the API server keeps as it was written, and no parser of ours reads."""


async def create_unreadable(kube: Kube, name: str, parameters: bytes) -> None:
    """Create a claim with parameters of a driver."""
    made = claim(name)
    place = {"driver": "gpu.example.com", "parameters": {"x": "HERE"}}
    made["spec"]["devices"]["config"] = [{"opaque": place}]
    body = json.dumps(made).encode().replace(b'"HERE"', parameters)
    await kube.send_bytes("POST", CLAIMS, body)


async def test_an_object_that_cannot_be_read_keeps_no_other_from_being_seen(
    control_plane: ControlPlane, kube: Kube
) -> None:
    """Neither in a list nor in a watch; it is there itself, and marked."""
    for name, parameters in PARAMETERS.items():
        await create_unreadable(kube, f"listed-{name}", parameters)
    await kube.create(claim("listed-plain"))
    async with following(control_plane, RESOURCE_CLAIM) as seen:
        await until(lambda: seen.synced, "all are listed")
        for name, parameters in PARAMETERS.items():
            await create_unreadable(kube, f"watched-{name}", parameters)
        await kube.create(claim("watched-plain"))
        await until(lambda: "watched-plain" in seen.labels(), "all are watched")
        marked = {
            key.rpartition("/")[2]: ALTERED in item
            for key, item in seen.objects.items()
            if "listed-" in key or "watched-" in key
        }
    expected = {
        f"{how}-{name}": name != "plain"
        for how in ("listed", "watched")
        for name in (*PARAMETERS, "plain")
    }
    assert marked == expected
    for name in expected:
        await kube.send_bytes("DELETE", f"{CLAIMS}/{name}")
