"""What the controller of AdmissionChecks does when something is in its way."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, cast

import pytest

from contracts.gang import Gang
from publisher.kube.changes import Change, ChangePage
from publisher.kueue.admission_checks import AdmissionChecks
from publisher.kueue.objects import CONTROLLER, read_kueue_workload
from publisher.kueue.plan_checks import make_gang
from runtime.kube.api import KubernetesApi
from runtime.kube.errors import ApiError, InvalidError, NotFoundError, UnavailableError
from runtime.kube.kinds import ADMISSION_CHECK, GANG, KUEUE_WORKLOAD

Json = dict[str, Any]
NOW = "2026-11-22T10:00:40Z"
CHECK = {
    "metadata": {"name": "devices"},
    "spec": {"controllerName": CONTROLLER},
    "status": {"conditions": [{"type": "Active", "status": "True"}]},
}


def workload(name: str, *, quota: bool = True, version: str = "1") -> Json:
    claim = {"name": "d", "resourceClaimTemplateName": "pair"}
    template = {"spec": {"containers": [], "resourceClaims": [claim]}}
    since = {"lastTransitionTime": "2026-11-22T10:00:00Z"}
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "metadata": {
            "name": name,
            "namespace": "ns",
            "uid": f"uid-{name}",
            "resourceVersion": version,
        },
        "spec": {"podSets": [{"name": "main", "count": 2, "template": template}]},
        "status": {
            "conditions": [{"type": "QuotaReserved", "status": str(quota)} | since],
            "admissionChecks": [{"name": "devices", "state": "Pending", "message": ""}],
        },
    }


async def answer(_name: str) -> None:
    """Do nothing before the answer."""


class Cluster:
    """An API server that keeps Gangs, with a controller beside it.

    `meets` is called with what is written before it is answered, and may raise.
    """

    def __init__(self) -> None:
        self.gangs: dict[str, Gang] = {}
        self.phases: dict[str, str] = {}
        self.made: list[str] = []
        self.told: list[tuple[str, Json]] = []
        self.activated: list[str] = []
        self.meets: Callable[[str], Awaitable[None]] = answer
        self.checks = AdmissionChecks(
            cast("KubernetesApi", self), self._find, patience_s=90.0, now=lambda: NOW
        )

    def _find(self, key: str) -> tuple[Gang | None, Mapping[str, Any]]:
        return self.gangs.get(key), {"phase": self.phases.get(key, "Pending")}

    async def create(self, kind: object, body: Json) -> Json:
        """Take a Gang."""
        assert kind == GANG
        name = body["metadata"]["name"]
        await self.meets(name)
        self.made.append(name)
        return body

    async def patch(self, kind: object, key: str, body: Json, **_how: str) -> Json:
        """Take a status."""
        await self.meets(key)
        if kind == ADMISSION_CHECK:
            self.activated.append(key)
            return CHECK | body
        (state,) = body["status"]["admissionChecks"]
        self.told.append((key, state))
        raw = workload(key.partition("/")[2], version="2")
        return raw | {"status": raw["status"] | body["status"]}

    def hold(self, raw: Json, phase: str) -> None:
        """Have the Gang of a Workload."""
        gang = make_gang(read_kueue_workload(raw), {})
        assert isinstance(gang, Gang)
        key = f"ns/{gang.metadata.name}"
        self.gangs[key], self.phases[key] = gang, phase

    async def take(self, *raws: Json) -> None:
        """Take in Workloads as they are now."""
        await self.take_object(*((_key(raw), raw) for raw in raws))

    async def take_object(
        self, *pairs: tuple[str, Json | None], kind: str = KUEUE_WORKLOAD.name
    ) -> None:
        """Take in objects, or that they are gone."""
        changes = tuple(Change(kind, key, raw) for key, raw in pairs)
        await self.checks.take(ChangePage(changes, synced=True))

    async def look(self) -> None:
        """Look at everything once."""
        lost = asyncio.Event()
        task = asyncio.create_task(self.checks.write(lost))
        for _ in range(50):
            await asyncio.sleep(0)
        lost.set()
        await task


def _key(raw: Json) -> str:
    return f"{raw['metadata']['namespace']}/{raw['metadata']['name']}"


@pytest.fixture
async def cluster() -> Cluster:
    """A cluster with a check of ours, which is active."""
    made = Cluster()
    await made.take_object(("devices", CHECK), kind=ADMISSION_CHECK.name)
    return made


def refuse(name: str, error: ApiError) -> Callable[[str], Awaitable[None]]:
    async def meets(written: str) -> None:
        if written == name:
            raise error

    return meets


@pytest.mark.parametrize(
    ("error", "states"),
    [
        (InvalidError("create Gang ns/bad", "not so", "spec.members"), ["Rejected"]),
        (InvalidError("create Gang ns/bad", "exceeded quota: gangs"), ["Retry"]),
        (UnavailableError("create Gang ns/bad", "no answer"), []),
    ],
)
async def test_one_that_cannot_be_answered_holds_up_no_other(
    cluster: Cluster, error: ApiError, states: list[str]
) -> None:
    """What the API server refuses is said in the check, in its words."""
    await cluster.take(workload("bad"), workload("good"))
    cluster.meets = refuse("bad", error)
    await cluster.look()
    assert cluster.made == ["good"]
    assert [state["state"] for _, state in cluster.told] == states
    assert all(error.reason in state["message"] for _, state in cluster.told)


async def test_a_check_that_cannot_be_activated_holds_up_nobody(
    cluster: Cluster,
) -> None:
    raw = {"spec": {"controllerName": CONTROLLER}}
    await cluster.take_object(("new", raw), kind=ADMISSION_CHECK.name)
    await cluster.take(workload("good"))
    cluster.meets = refuse("new", UnavailableError("patch", "no answer"))
    await cluster.look()
    assert cluster.made == ["good"]


async def test_a_decision_is_told_as_soon_as_it_is_known(cluster: Cluster) -> None:
    """Before the status of the Gang is written; of other Gangs nothing is told."""
    raw = workload("train")
    await cluster.take(raw)
    await cluster.look()
    cluster.hold(raw, "Pending")
    lost = asyncio.Event()
    task = asyncio.create_task(cluster.checks.write(lost))
    await asyncio.sleep(0)
    told_before = len(cluster.told)
    cluster.hold(raw, "Decided")
    cluster.checks.look(["ns/other", "ns/train"])
    for _ in range(50):
        await asyncio.sleep(0)
    lost.set()
    await task
    assert [state["state"] for _, state in cluster.told[told_before:]] == ["Ready"]


async def test_what_changes_while_another_is_answered_is_not_forgotten(
    cluster: Cluster,
) -> None:
    """It had no quota when the look began: nothing was to be done for it."""
    await cluster.take(workload("first"), workload("second", quota=False))

    async def change(written: str) -> None:
        if written == "first" and not cluster.made:
            await cluster.take(workload("second"))

    cluster.meets = change
    await cluster.look()
    await cluster.look()
    assert "second" in cluster.made


@pytest.mark.parametrize("is_gone", [True, False])
async def test_an_answer_replaces_nothing_that_is_newer(
    cluster: Cluster, *, is_gone: bool
) -> None:
    """Neither a newer version, nor is one that is deleted revived."""
    raw = workload("train")
    newer = None if is_gone else workload("train", quota=False, version="3")
    await cluster.take(raw)
    cluster.hold(raw, "Pending")

    async def change(_written: str) -> None:
        await cluster.take_object(("ns/train", newer))

    cluster.meets = change
    await cluster.look()
    cluster.gangs.clear()
    await cluster.look()
    assert [state["state"] for _, state in cluster.told] == ["Pending"]
    assert cluster.made == []


async def test_a_malformed_workload_that_vanishes_ends_nothing(
    cluster: Cluster,
) -> None:
    """It is deleted while the one before it is answered."""
    bad = workload("bad") | {"spec": {"podSets": "none"}}
    await cluster.take(workload("first"), bad, workload("good"))

    async def delete(_written: str) -> None:
        await cluster.take_object(("ns/bad", None))

    cluster.meets = delete
    await cluster.look()
    assert cluster.made == ["first", "good"]


@pytest.mark.parametrize(
    "spec", [{}, {"spec": None}, {"spec": "ours"}, {"spec": {"controllerName": 7}}]
)
async def test_a_check_without_a_spec_is_not_ours(cluster: Cluster, spec: Json) -> None:
    await cluster.take_object(("odd", spec), kind=ADMISSION_CHECK.name)
    await cluster.take(workload("good"))
    await cluster.look()
    assert cluster.activated == []
    assert cluster.made == ["good"]


async def test_a_check_that_is_deleted_while_it_is_activated_stays_gone(
    cluster: Cluster,
) -> None:
    """Nobody asks for it any more, so no Workload is answered for it."""
    raw = {"spec": {"controllerName": CONTROLLER}}
    await cluster.take_object(
        ("devices", None), ("new", raw), kind=ADMISSION_CHECK.name
    )
    asked = workload("train")
    asked["status"]["admissionChecks"] = [{"name": "new", "state": "Pending"}]
    await cluster.take(asked)

    async def delete(_written: str) -> None:
        await cluster.take_object(("new", None), kind=ADMISSION_CHECK.name)

    cluster.meets = delete
    await cluster.look()
    assert cluster.activated == ["new"]
    assert cluster.made == []


async def test_a_workload_that_is_gone_is_no_trouble(cluster: Cluster) -> None:
    await cluster.take(workload("gone"), workload("good"))
    cluster.meets = refuse("gone", NotFoundError("create", "no such namespace"))
    await cluster.look()
    assert cluster.made == ["good"]
    assert cluster.told == []
