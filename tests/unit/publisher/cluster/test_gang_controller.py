"""What the writer of gangs does when nothing that it does changes anything."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest

from contracts.codec import to_builtins
from contracts.gang import GangPhase
from contracts.ids import ClusterName, GangKey, GangUID, Namespace
from contracts.lifecycle import PREEMPTED
from contracts.messages import CancelGang, Preemption, SubmitGang
from publisher.cluster.budgets import Budgets
from publisher.cluster.gang_bus import GangBus
from publisher.cluster.gang_controller import GangController
from publisher.cluster.group_queue import GroupQueue
from publisher.cluster.observer import Observer
from publisher.cluster.patch_writer import PatchWriter
from publisher.cluster.report_publisher import ReportPublisher
from publisher.cluster.state_publisher import StatePublisher
from publisher.cluster.status_writer import StatusWriter
from publisher.gangs.context import (
    EndForAnother,
    NextSteps,
    PlanContext,
    StatusReport,
)
from publisher.gangs.records import PodGangRecord
from publisher.gangs.view import GroupKey
from runtime.bus.bus import Bus
from runtime.errors import BusFullError
from runtime.kube.api import KubernetesApi
from runtime.kube.errors import ApiError, ConflictError, InvalidError
from runtime.kube.kinds import RESOURCE_CLAIM
from tests import builders
from tests.builders.gangs import gang
from tests.builders.pods import real_claim, waiting_pod
from tests.lab.services import eventually

NS = builders.NAMESPACE
CLUSTER = ClusterName("east")
NOW = "2026-11-20T12:00:00Z"
MANY = 1000


class RefusingServer:
    """An API server that takes no write, and has the same object all the time."""

    def __init__(self, claim: dict[str, Any], answer: ApiError) -> None:
        self.claim = claim
        self.answer = answer
        self.asked = 0
        self.deleting = asyncio.Barrier(3)
        self.deleted = 0
        self.keeps = False
        """Whether it refuses to delete as well."""

    async def patch(self, *_: object, **__: object) -> dict[str, Any]:
        """Refuse."""
        self.asked += 1
        raise self.answer

    async def delete(self, *_: object, **__: object) -> None:
        """Wait until all pods of a gang are to be deleted."""
        if self.keeps:
            raise self.answer
        await self.deleting.wait()
        self.deleted += 1

    async def get(self, *_: object) -> dict[str, Any]:
        """Give what it has."""
        return self.claim


async def ignore(_: object) -> None:
    """Nobody wants to know."""


def controller_of(
    answer: ApiError,
) -> tuple[GangController, RefusingServer, GroupQueue]:
    """Make a controller with one pod whose claim is to be prepared."""
    claim = real_claim("pod-1-gpus", managed=False, version=2)
    leads = asyncio.Event()
    queue = GroupQueue(leads)
    observer = Observer(RESOURCE_CLAIM, queue.add, now=lambda: NOW)
    observer.view.apply_pod(f"{NS}/pod-1", waiting_pod("pod-1", templates=["gpus"]))
    observer.view.apply_claim(f"{NS}/pod-1-gpus", claim)
    old = to_builtins(claim) | {"apiVersion": "resource.k8s.io/v1"}
    old |= {"kind": "ResourceClaim"}
    old["metadata"]["resourceVersion"] = "1"
    server = RefusingServer(old, answer)
    api, bus = cast("KubernetesApi", server), cast("Bus", None)
    state = StatePublisher(CLUSTER, bus)
    controller = GangController(
        CLUSTER,
        leads,
        queue=queue,
        observer=observer,
        gangs=GangBus(CLUSTER, bus, changed=ignore, shown=tuple),
        state=state,
        patches=PatchWriter(api, observer, state, leads),
        budgets=Budgets(api),
        statuses=StatusWriter(api, observer, "one", lambda: NOW),
        reports=ReportPublisher(
            CLUSTER, bus, exists=observer.view.has_group, now=lambda: NOW
        ),
        owns=lambda _: True,
        now=lambda: NOW,
    )
    return controller, server, queue


@asynccontextmanager
async def working(answer: ApiError) -> AsyncIterator[RefusingServer]:
    """Let a controller lead, work and tend to what was refused in this block."""
    controller, server, queue = controller_of(answer)
    stop = asyncio.Event()
    tasks = (controller.work, controller.lead, controller.forget)
    running = [asyncio.ensure_future(task(stop)) for task in tasks]
    yield server
    stop.set()
    await queue.close()
    await asyncio.gather(*running)


async def test_a_step_that_changes_nothing_is_not_repeated_at_once() -> None:
    """As when the API server went back in time: what we know it will not write."""
    modified = ConflictError("patch", "the object has been modified")
    async with working(modified) as server:
        for _ in range(MANY):
            await asyncio.sleep(0)
        assert 1 <= server.asked <= 3


async def test_what_admission_refused_is_tried_again_now_and_then(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Not in a hot loop, and not never."""
    async with working(InvalidError("patch", "not here")) as server:
        for _ in range(MANY):
            await asyncio.sleep(0)
        assert server.asked == 1
    monkeypatch.setattr("publisher.cluster.gang_controller._FORGET_S", 0.01)
    async with working(InvalidError("patch", "not here")) as server:

        async def asked() -> bool:
            return server.asked > 1

        await eventually(asked, "it is tried again")


async def test_pods_of_a_gang_are_deleted_side_by_side(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One after the other, thousands of them would take minutes."""
    plans = iter([NextSteps(removals=tuple(waiting_pod(name) for name in "abc"))])
    monkeypatch.setattr(
        "publisher.cluster.gang_controller.plan_gang",
        lambda _: next(plans, NextSteps()),
    )
    async with working(InvalidError("patch", "not here")) as server:

        async def deleted() -> bool:
            return server.deleted == 3

        await eventually(deleted, "all are deleted", 5)


async def test_pods_are_told_when_their_gang_could_not_be_stored(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Not that the solver has yet to decide: it knows of nothing."""
    told: list[StatusReport] = []

    async def step(*_: object) -> None:
        raise BusFullError("submit.v1.east", "maximum bytes exceeded")

    def report(_self: object, _group: object, reports: list[StatusReport]) -> None:
        told.extend(reports)

    module = "publisher.cluster.gang_controller"
    monkeypatch.setattr(f"{module}.GangController._take_step", step)
    monkeypatch.setattr(f"{module}.GangController._report_status", report)
    async with working(InvalidError("patch", "not here")):

        async def is_told() -> bool:
            return bool(told)

        await eventually(is_told, "the pods are told")
    assert told[0].reason == "NotStored"
    assert "the bus has no room: maximum bytes exceeded" in told[0].message


async def test_a_pod_that_is_not_let_go_keeps_nobody_from_hearing_the_rest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What is to be said is said, and its author reads who refused."""
    told: list[StatusReport] = []
    said: list[object] = []
    pod, word = waiting_pod("a"), cast("Any", object())

    def plan(_: object) -> NextSteps:
        return NextSteps(removals=(pod,), messages=() if said else (word,))

    async def say(_self: object, _situation: object, message: object) -> None:
        said.append(message)

    def report(_self: object, _group: object, reports: list[StatusReport]) -> None:
        told.extend(reports)

    module = "publisher.cluster.gang_controller"
    monkeypatch.setattr(f"{module}.plan_gang", plan)
    monkeypatch.setattr(f"{module}.GangController._publish_message", say)
    monkeypatch.setattr(f"{module}.GangController._report_status", report)
    async with working(InvalidError("delete", "protected")) as server:
        server.keeps = True

        async def is_told() -> bool:
            return any(report.reason == "WriteRefused" for report in told)

        await eventually(is_told, "the refusal is told")
    assert said == [word]
    assert server.deleted == 0
    (refusal, *_) = [report for report in told if report.reason == "WriteRefused"]
    assert "protected" in refusal.message
    assert refusal.pods == (pod,)


async def test_a_group_that_cannot_be_planned_ends_nobody_who_follows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """While another publisher leads, what is over is dropped all the same."""
    stop, asked = asyncio.Event(), []
    controller, *_ = controller_of(InvalidError("patch", "not here"))

    def plan(situation: PlanContext) -> NextSteps:
        asked.append(situation.group)
        stop.set()
        raise RecursionError("as whatever nobody has thought of")

    module = "publisher.cluster.gang_controller"
    groups = [GroupKey(NS, "hostile"), GroupKey(NS, "train")]
    monkeypatch.setattr(f"{module}.plan_gang", plan)
    monkeypatch.setattr(f"{module}.GangBus.finished_groups", lambda _: iter(groups))
    await controller.forget(stop)
    assert asked == groups


async def test_a_group_that_cannot_be_handled_rests_and_its_pods_are_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whatever is raised: the others are worked on, and it is tried again later."""
    asked: list[GroupKey] = []
    told: list[StatusReport] = []
    rests: list[float] = []

    def plan(situation: PlanContext) -> NextSteps:
        asked.append(situation.group)
        raise RecursionError("as whatever nobody has thought of")

    def report(_self: object, _group: object, reports: list[StatusReport]) -> None:
        told.extend(reports)

    def rest(_self: object, _group: object, pause_s: float) -> None:
        rests.append(pause_s)

    module = "publisher.cluster.gang_controller"
    monkeypatch.setattr(f"{module}.plan_gang", plan)
    monkeypatch.setattr(f"{module}.GangController._report_status", report)
    monkeypatch.setattr(f"{module}.GroupQueue.rest", rest)
    controller, _, queue = controller_of(InvalidError("patch", "not here"))
    stop, lost = asyncio.Event(), asyncio.Event()
    running = [
        asyncio.ensure_future(controller.work(stop)),
        asyncio.ensure_future(controller.lead(lost)),
    ]
    for count in range(1, 4):

        async def is_asked(count: int = count) -> bool:
            return len(asked) == count

        await eventually(is_asked, "the group is planned for")
        await queue.add(asked[:1])
    lost.set()
    stop.set()
    await queue.close()
    await asyncio.gather(*running)
    assert rests[:3] == [1.0, 2.0, 4.0]
    assert told[0].reason == "NotHandled"
    assert "RecursionError: as whatever" in told[0].message
    assert [pod.metadata.name for pod in told[0].pods] == ["pod-1"]


def waiting_for(said: Preemption) -> PodGangRecord:
    """Make the record of the gang that waits for others to go."""
    uid = said.preemptor.uid
    asked = gang(name=said.name, namespace=said.preemptor.namespace, uid=uid)
    return PodGangRecord.of(SubmitGang(cluster=CLUSTER, uid=uid, gang=asked)).apply(
        SubmitGang(cluster=CLUSTER, uid=uid, gang=asked), 1
    )


async def test_gangs_go_each_for_who_waits_and_hold_nobody_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of two of one group each is weighed; what else is to be said is said."""
    word = cast("Any", object())
    records: dict[GangKey, PodGangRecord] = {}
    ends, said, told = list[EndForAnother](), list[object](), list[StatusReport]()
    for name in ("first", "second", "gone"):
        preempted = Preemption(
            preemptor=GangKey(Namespace("team-b"), GangUID(name)),
            name=name,
            until="2099-01-01T00:00:00Z",
            victims=(GangKey(Namespace(NS), GangUID(f"for-{name}")),),
        )
        message = CancelGang(
            cluster=CLUSTER, namespace=Namespace(NS), uid=GangUID(name)
        )
        report = StatusReport(
            phase=GangPhase.RUNNING, reason=PREEMPTED, message="it goes"
        )
        ends.append(EndForAnother(said=preempted, message=message, report=report))
        records[preempted.preemptor] = waiting_for(preempted)
    first, second, gone = (end.message for end in ends)
    del records[ends[2].said.preemptor]

    def plan(_: object) -> NextSteps:
        left = tuple(end for end in ends if end.message not in said)
        return NextSteps(preemptions=left, messages=() if word in said else (word,))

    async def say(_self: object, _situation: object, message: object) -> None:
        said.append(message)

    def report_all(_self: object, _group: object, reports: list[StatusReport]) -> None:
        told.extend(reports)

    async def allow(_self: object, _pods: object) -> str:
        return ""

    module = "publisher.cluster.gang_controller"
    monkeypatch.setattr(f"{module}.plan_gang", plan)
    monkeypatch.setattr(f"{module}.GangController._publish_message", say)
    monkeypatch.setattr(f"{module}.GangController._report_status", report_all)
    monkeypatch.setattr(f"{module}.GangBus.find", lambda _, key: records.get(key))
    # Of those that went before nothing is left.
    monkeypatch.setattr(f"{module}.GangBus.forgotten", lambda *_: True)
    monkeypatch.setattr(f"{module}.Budgets.find_refusal", allow)
    async with working(InvalidError("delete", "protected")):

        async def is_told() -> bool:
            return any("does not wait" in report.message for report in told)

        await eventually(is_told, "the refusal is told")
    assert said == [word, first, second]
    assert gone not in said
