"""What the controller of classic DRA writes, and what it does where that fails."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable
from typing import Any, cast

from contracts.ids import GangUID, Namespace
from contracts.lifecycle import LifecycleMessage
from contracts.messages import AllocationRefused, CancelGang, ClaimsReleased
from publisher.classic.controller import ClassicController
from publisher.classic.objects import V1ALPHA3, kinds_of
from publisher.cluster.event_writer import EventWriter
from publisher.cluster.gang_bus import GangBus
from publisher.cluster.group_queue import GroupQueue
from publisher.cluster.state_publisher import StatePublisher
from publisher.gangs.records import PodGangRecord
from publisher.gangs.view import GroupKey
from publisher.kube.changes import Change, ChangePage
from runtime.kube.api import KubernetesApi
from runtime.kube.errors import ApiError, ConflictError, InvalidError, UnavailableError
from runtime.kube.kinds import Kind
from tests.builders.classic import (
    CLUSTER,
    FINALIZER,
    NOW,
    ClassicWorld,
    classic_claim,
    classic_pod,
    context,
    key_of,
    lone,
    metadata,
)
from tests.builders.decisions import gang_released

Json = dict[str, Any]
LONE = lone("pod")
DEADLINE_S = 10.0


class _Api:
    """An API server that keeps what is written, or raises first."""

    def __init__(self) -> None:
        self.objects: dict[str, Json] = {}
        self.fails: dict[str, list[ApiError]] = defaultdict(list)
        """By kind and subresource."""
        self.written: list[str] = []
        self.writes = asyncio.Event()
        self.events: list[Json] = []

    async def patch(
        self, kind: Kind, key: str, body: Json, *, subresource: str = "", **_: str
    ) -> Json:
        what = "/".join(filter(None, (kind.name, subresource)))
        if self.fails[what]:
            raise self.fails[what].pop(0)
        raw = self.objects[f"{kind.name}/{key}"]
        changed = dict(raw)
        for part, fields in body.items():
            changed[part] = {**raw.get(part, {}), **fields}
        changed["metadata"] = {
            **changed["metadata"],
            "resourceVersion": metadata("any")["resourceVersion"],
        }
        self.objects[f"{kind.name}/{key}"] = changed
        self.written.append(what)
        self.writes.set()
        return changed

    async def create(self, _: Kind, body: Json) -> Json:
        self.events.append(body)
        return body


class _Gangs:
    """Records without a bus."""

    def __init__(self, world: ClassicWorld) -> None:
        self._world = world
        self.said: list[LifecycleMessage] = []

    def of_group(self, group: GroupKey) -> tuple[PodGangRecord, ...]:
        return self._world.records.of_group(group)

    def groups(self) -> Iterable[GroupKey]:
        return self._world.records.groups()

    def finished_groups(self) -> Iterable[GroupKey]:
        return self._world.records.finished_groups()

    def forgotten(self, _: str, __: GangUID) -> None:
        return None

    def forget(self, namespace: str, uids: Iterable[GangUID]) -> None:
        keys = [r.key for r in self.records() if r.uid in set(uids)]
        assert all(key.namespace == namespace for key in keys)
        self._world.records.forget(keys)

    def records(self) -> list[PodGangRecord]:
        records = self._world.records
        return [r for group in tuple(records.groups()) for r in records.of_group(group)]

    async def say(self, message: LifecycleMessage, _: object) -> None:
        self.said.append(message)
        self._world.say(message)


class _State:
    """What the bus would be told."""

    def __init__(self) -> None:
        self.told: list[Change] = []

    async def take(self, page: ChangePage) -> None:
        self.told += page.changes

    async def wait_published(self) -> int:
        return 7


class _Scene:
    """A controller over an API server with some objects."""

    def __init__(self, *objects: Json) -> None:
        self.world = ClassicWorld()
        self.api, self.gangs, self.state = _Api(), _Gangs(self.world), _State()
        leads = asyncio.Event()
        self.queue = GroupQueue(leads)
        api = cast("KubernetesApi", self.api)
        self.controller = ClassicController(
            CLUSTER,
            leads,
            api=api,
            kinds=kinds_of(V1ALPHA3),
            view=self.world.view,
            queue=self.queue,
            gangs=cast("GangBus", self.gangs),
            state=cast("StatePublisher", self.state),
            events=EventWriter(api, "one"),
            now=lambda: NOW,
        )
        self._objects = objects

    async def take(self, *objects: Json) -> None:
        """Have objects come through the watch."""
        for raw in objects:
            self.api.objects[f"{raw['kind']}/{key_of(raw)}"] = raw
            change = Change(raw["kind"], key_of(raw), raw)
            await self.controller.take(ChangePage((change,), synced=True))

    async def until(self, *reached: str) -> None:
        """Let it work until so much was written, in this order."""
        await self.take(*self._objects)
        lost = asyncio.Event()
        lead = asyncio.create_task(self.controller.lead(lost))
        work = asyncio.create_task(self.controller.work(lost))
        await asyncio.sleep(0.1)
        async with asyncio.timeout(DEADLINE_S):
            while len(self.api.written) < len(reached):
                self.api.writes.clear()
                await self.api.writes.wait()
        await asyncio.sleep(0.1)
        assert tuple(self.api.written) == reached
        lost.set()
        await lead
        await self.queue.close()
        await work


def _selected() -> _Scene:
    """A pod whose decided node is selected."""
    pod, claim = classic_pod("pod", {"d": "claim"}), classic_claim("claim")
    asked = context("pod", ["a"], "a")
    scene = _Scene(pod, claim, asked)
    before = ClassicWorld(pod, claim, asked)
    message = before.submit(LONE)
    scene.world.say(message, before.decide(message, "a"))
    return scene


async def test_a_claim_is_protected_before_it_is_allocated() -> None:
    """Then the gang is told that its claims are written and its pods may run."""
    scene = _selected()
    await scene.until("ResourceClaim", "ResourceClaim/status")
    claim = scene.api.objects["ResourceClaim/team-a/claim"]
    assert claim["metadata"]["finalizers"] == [FINALIZER]
    assert claim["status"]["allocation"]["controller"]
    names = [type(message).__name__ for message in scene.gangs.said]
    assert names == ["AllocationWritten", "GatesOpened"]
    held = [c.object for c in scene.state.told if c.kind == "ResourceClaim"][-1]
    assert held is not None
    assert held["status"]["allocation"]["devices"]["results"]


async def test_an_allocation_that_is_refused_is_decided_again() -> None:
    """The reason has the API server's words."""
    scene = _selected()
    error = InvalidError("patch", "devices: too many")
    scene.api.fails["ResourceClaim/status"] = [error]
    await scene.until("ResourceClaim")
    (refused,) = scene.gangs.said
    assert isinstance(refused, AllocationRefused)
    assert "too many" in refused.reason


async def test_an_outage_is_waited_out() -> None:
    """What failed is tried again after a pause."""
    scene = _selected()
    scene.api.fails["ResourceClaim"] = [UnavailableError("patch", "away")]
    await scene.until("ResourceClaim", "ResourceClaim/status")


async def test_a_conflict_has_it_planned_anew() -> None:
    """What was answered meanwhile is known by then."""
    scene = _selected()
    scene.api.fails["ResourceClaim/status"] = [ConflictError("patch", "changed")]
    await scene.until("ResourceClaim", "ResourceClaim/status")


async def test_a_claim_that_is_over_is_freed() -> None:
    """First its devices, then the claim itself."""
    held = {"allocation": {"controller": "ours.example.com"}}
    over: dict[str, Any] = {"deletionTimestamp": NOW, "finalizers": [FINALIZER]}
    scene = _Scene(classic_claim("claim", status=held, **over))
    await scene.until("ResourceClaim/status", "ResourceClaim")
    claim = scene.api.objects["ResourceClaim/team-a/claim"]
    assert claim["status"]["allocation"] is None
    assert claim["metadata"]["finalizers"] == []


async def test_a_context_is_answered_once() -> None:
    """What it says is known from the answer."""
    scene = _selected()
    await scene.take(context("pod", ["a", "b"], "b"))
    scene._objects = scene._objects[:2]
    await scene.until("PodSchedulingContext/status")
    told = scene.api.objects["PodSchedulingContext/team-a/pod"]["status"]
    assert told == {"resourceClaims": [{"name": "d", "unsuitableNodes": ["b"]}]}


async def test_gangs_of_which_nothing_is_left_are_forgotten() -> None:
    """They are over, and their pods are gone."""
    before = _selected().gangs.records()[0].submission
    assert before is not None
    scene = _Scene()
    address: dict[str, Any] = {
        "cluster": CLUSTER,
        "namespace": Namespace("team-a"),
        "uid": before.uid,
    }
    ended = (
        CancelGang(**address),
        gang_released(before.uid),
        ClaimsReleased(**address),
    )
    scene.world.say(before, *ended)
    await scene.until()
    assert scene.gangs.records() == []
