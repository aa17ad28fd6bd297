"""Statuses and events are written once, and only while there is something to say."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from msgspec.structs import replace

from contracts.gang import GangPhase
from publisher.cluster.observer import Observer
from publisher.cluster.status_writer import StatusWriter
from publisher.gangs.context import StatusReport
from publisher.gangs.view import GroupKey
from runtime.kube.api import KubernetesApi
from runtime.kube.errors import ApiError, NotFoundError, UnavailableError
from runtime.kube.kinds import EVENT, RESOURCE_CLAIM
from tests import builders
from tests.builders.plans import NOW, TRAIN
from tests.builders.pods import waiting_pod

POD = waiting_pod("a", gang="train", templates=["gpus"])
REPORT = StatusReport(
    phase=GangPhase.REJECTED, reason="WrongClass", message="no class", pods=(POD,)
)


class Api:
    """Notes events; may answer with an error."""

    def __init__(self, error: ApiError | None) -> None:
        self.events: list[dict[str, Any]] = []
        self.statuses: list[dict[str, Any]] = []
        self.error = error

    async def create(self, kind: object, body: dict[str, Any]) -> dict[str, Any]:
        """Take an event."""
        assert kind == EVENT
        if self.error is not None:
            raise self.error
        self.events.append(body)
        return body

    async def patch(
        self, _kind: object, key: str, body: dict[str, Any], **_how: str
    ) -> dict[str, Any]:
        """Take a status."""
        namespace, _, name = key.partition("/")
        self.statuses.append(body["status"])
        return {
            "apiVersion": "moorings.dev/v1alpha1",
            "kind": "Gang",
            "metadata": {"namespace": namespace, "name": name, "uid": builders.UID},
            "spec": {"members": [{"name": "worker"}]},
            "status": body["status"],
        }


class Written:
    """A writer, and what is around it."""

    def __init__(self, error: ApiError | None = None) -> None:
        async def changed(_groups: object) -> None:
            return

        self.api = Api(error)
        self.observer = Observer(RESOURCE_CLAIM, changed, now=lambda: NOW)
        self.writer = StatusWriter(
            cast("KubernetesApi", self.api), self.observer, "publisher-0", lambda: NOW
        )


async def test_an_event_is_about_the_pod_and_told_once() -> None:
    """Whoever looks at the pod finds it."""
    written = Written()
    await written.writer.report_now(TRAIN, [REPORT])
    await written.writer.report_now(TRAIN, [REPORT])
    (event,) = written.api.events
    assert event["regarding"]["uid"] == POD.metadata.uid
    assert event["reportingInstance"] == "publisher-0"
    assert "no class" in event["note"]


async def test_a_status_is_written_where_it_differs() -> None:
    """The answer is known at once, so the second time nothing does."""
    written = Written()
    key = f"{builders.NAMESPACE}/train"
    written.observer.view.apply_gang(key, builders.gang())
    await written.writer.report_now(TRAIN, [REPORT])
    await written.writer.report_now(TRAIN, [REPORT])
    (status,) = written.api.statuses
    assert status["phase"] == GangPhase.REJECTED
    assert written.observer.statuses[key] == status


async def test_an_event_that_was_not_taken_is_tried_again() -> None:
    """Unless its namespace is gone: nobody would read it."""
    away = Written(UnavailableError("create", "no"))
    await away.writer.report_now(TRAIN, [REPORT])
    away.api.error = None
    await away.writer.report_now(TRAIN, [REPORT])
    assert len(away.api.events) == 1
    gone = Written(NotFoundError("create", "no"))
    await gone.writer.report_now(TRAIN, [REPORT])
    gone.api.error = None
    await gone.writer.report_now(TRAIN, [REPORT])
    assert gone.api.events == []


async def test_who_does_not_lead_says_nothing_more() -> None:
    """Another publisher does."""
    written = Written()
    written.writer.report(TRAIN, [REPORT])
    assert written.writer._due.next_s() is not None
    written.writer.fall_silent()
    assert written.writer._due.next_s() is None


async def test_groups_are_written_side_by_side() -> None:
    """One whose answer is slow holds up no other."""
    written = Written()
    slow, other = asyncio.Event(), replace(POD, metadata=replace(POD.metadata, uid="b"))
    create, begun = written.api.create, []

    async def answer(kind: object, body: dict[str, Any]) -> dict[str, Any]:
        begun.append(body["regarding"]["uid"])
        await slow.wait()
        return await create(kind, body)

    written.api.create = answer  # type: ignore[method-assign]
    written.writer.report(TRAIN, [REPORT])
    written.writer.report(
        GroupKey(builders.NAMESPACE, "b"), [replace(REPORT, pods=(other,))]
    )
    for key in (TRAIN, GroupKey(builders.NAMESPACE, "b")):
        written.writer._due.put(key, 0.0)
    stop = asyncio.Event()
    task = asyncio.create_task(written.writer.write(stop))
    for _ in range(10):
        await asyncio.sleep(0)
    assert sorted(begun) == sorted([POD.metadata.uid, "b"])
    stop.set()
    slow.set()
    await task
    assert len(written.api.events) == 2
