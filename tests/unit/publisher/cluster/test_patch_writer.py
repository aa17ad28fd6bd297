"""A write is done once, read again on a conflict, and a refusal is remembered."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest
from msgspec.structs import replace

from contracts.codec import to_builtins
from contracts.ids import GangUID
from contracts.kubernetes.decode import to_kubernetes
from publisher.cluster.observer import Observer
from publisher.cluster.patch_writer import PatchWriter
from publisher.cluster.state_publisher import StatePublisher
from publisher.gangs import patches
from publisher.kube.changes import ChangePage
from runtime.kube.api import KubernetesApi
from runtime.kube.errors import (
    ApiError,
    ConflictError,
    InvalidError,
    NotFoundError,
    PermissionDeniedError,
    ThrottledError,
)
from runtime.kube.kinds import RESOURCE_CLAIM
from tests import builders
from tests.builders.plans import NOW
from tests.builders.pods import real_claim, waiting_pod

KEY = f"{builders.NAMESPACE}/c"
CLAIM = real_claim("c", managed=False)
PREPARE = patches.prepare(CLAIM)
OF_GANG = replace(PREPARE, gang=builders.UID, attempt=2)
UID = GangUID(builders.UID)
NS = builders.NAMESPACE


class Api:
    """Holds one claim; answers writes with it, or with an error."""

    def __init__(self, error: ApiError | None) -> None:
        claim = real_claim("c", version=5)
        self.raw: dict[str, Any] = to_builtins(to_kubernetes(claim))
        self.calls: list[str] = []
        self._error = error

    async def patch(self, *_: object, **__: object) -> dict[str, Any]:
        """Answer a write."""
        self.calls.append("patch")
        if self._error is not None:
            raise self._error
        return self.raw

    async def extend(self, *_: object, **__: object) -> dict[str, Any]:
        """Answer a write that is no patch."""
        self.calls.append("extend")
        return self.raw

    async def delete(self, *_: object, **__: object) -> None:
        """Answer a removal."""
        self.calls.append("delete")
        if self._error is not None:
            raise self._error

    async def evict(self, *_: object, **__: object) -> None:
        """Answer an eviction."""
        self.calls.append("evict")
        if self._error is not None:
            raise self._error

    async def get(self, *_: object) -> dict[str, Any]:
        """Read the claim."""
        self.calls.append("get")
        return self.raw


class State:
    """Notes what the bus is told."""

    def __init__(self) -> None:
        self.keys: list[str] = []

    async def take(self, page: ChangePage) -> None:
        """Take a page of changes."""
        self.keys += [change.key for change in page.changes]


class Written:
    """A writer, and what is around it."""

    def __init__(self, error: ApiError | None = None, *, leads: bool = True) -> None:
        async def changed(_groups: object) -> None:
            return

        self.api, self.state = Api(error), State()
        self.observer = Observer(RESOURCE_CLAIM, changed, now=lambda: NOW)
        self.observer.view.apply_claim(KEY, CLAIM)
        leading = asyncio.Event()
        if leads:
            leading.set()
        self.writer = PatchWriter(
            cast("KubernetesApi", self.api),
            self.observer,
            cast("StatePublisher", self.state),
            leading,
        )

    @property
    def version(self) -> int:
        """The version of the claim that is known; 0: it is gone."""
        claim = self.observer.view.claim(KEY)
        return 0 if claim is None else claim.metadata.version_number


async def test_the_answer_to_a_write_is_known_before_the_watch_shows_it() -> None:
    """To plans, and on the bus."""
    written = Written()
    await written.writer.write([PREPARE])
    assert written.api.calls == ["patch"]
    assert written.version == 5
    assert written.state.keys == [KEY]


async def test_a_claim_that_no_patch_can_change_is_written_all_the_same() -> None:
    """Its parameters are not written as the API server would; others stay refused."""
    reserve = patches.reserve(real_claim("c", allocated=builders.allocation()), [])
    for patch, field in ((PREPARE, "spec"), (reserve, "status.allocation")):
        written = Written(InvalidError("patch", "field is immutable", field))
        await written.writer.write([patch])
        assert written.api.calls == ["patch", "extend"]
        assert written.version == 5
        assert written.writer.refusal_of(patch) == ""
    other = Written(InvalidError("patch", "too long", "metadata.annotations"))
    await other.writer.write([PREPARE])
    assert other.api.calls == ["patch", "get"]
    assert "too long" in other.writer.refusal_of(PREPARE)


async def test_who_does_not_lead_writes_nothing() -> None:
    """Another publisher may be at it."""
    written = Written(leads=False)
    await written.writer.write([PREPARE])
    assert written.api.calls == []


async def test_a_conflict_is_read_again_and_not_repeated() -> None:
    """What is planned then is planned on what is there."""
    written = Written(ConflictError("patch", "changed"))
    await written.writer.write([PREPARE])
    assert written.api.calls == ["patch", "get"]
    assert written.version == 5
    assert written.writer.refusal_of(PREPARE) == ""


async def test_what_is_not_found_is_gone() -> None:
    """Plans know of it at once."""
    written = Written(NotFoundError("patch", "no"))
    await written.writer.write([PREPARE])
    assert written.version == 0


async def test_the_refusal_of_a_decision_is_one_of_its_attempt() -> None:
    """It is not tried again while admission may have changed its mind."""
    written = Written(InvalidError("patch", "quota"))
    await written.writer.write([OF_GANG])
    writer = written.writer
    assert "quota" in writer.attempt_refusal_of(NS, UID, 2)
    assert writer.attempt_refusal_of(NS, UID, 3) == ""
    writer.retry_refused()
    assert writer.attempt_refusal_of(NS, UID, 2)
    writer.forget_refusals()
    assert writer.attempt_refusal_of(NS, UID, 2) == ""


async def test_another_refusal_holds_while_its_object_stays_so() -> None:
    """A write on another version is another write."""
    written = Written(InvalidError("patch", "quota"))
    await written.writer.write([PREPARE])
    writer = written.writer
    assert "quota" in writer.refusal_of(PREPARE)
    newer = patches.prepare(real_claim("c", managed=False, version=6))
    assert writer.refusal_of(newer) == ""
    assert writer.refusal_of(PREPARE) == ""


async def test_who_may_not_write_stops() -> None:
    """Every further write would be denied as well."""
    written = Written(PermissionDeniedError("patch", "no"))
    with pytest.raises(PermissionDeniedError):
        await written.writer.write([PREPARE, PREPARE, PREPARE])
    assert written.api.calls == ["patch"]


async def test_a_pod_is_read_anew_once_a_version() -> None:
    """What is known is right if the server says the same."""
    written, checked = Written(), set[tuple[str, str]]()
    key = f"{builders.NAMESPACE}/a"
    pod, newer = waiting_pod("a"), waiting_pod("a", version=2)
    written.observer.view.apply_pod(key, pod)
    written.api.raw = {"apiVersion": "v1", "kind": "Pod", **to_builtins(pod)}
    assert await written.writer.check([pod], checked)
    assert await written.writer.check([pod], checked)
    assert written.api.calls == ["get"]
    written.api.raw = {"apiVersion": "v1", "kind": "Pod", **to_builtins(newer)}
    assert not await written.writer.check([pod], set())
    assert written.observer.view.pod(key) == newer


async def test_a_pod_that_admission_keeps_is_remembered_while_it_stays_so() -> None:
    """It ends nothing, and others are deleted; as another version it is tried again."""
    written = Written(InvalidError("delete", "protected"))
    pods = [waiting_pod(name) for name in ("a", "b")]
    for pod in pods:
        raw = {"apiVersion": "v1", "kind": "Pod", **to_builtins(pod)}
        written.observer.view.apply_pod(
            f"{builders.NAMESPACE}/{pod.metadata.name}", pod
        )
        written.api.raw = raw
    await written.writer.remove(pods)
    assert written.api.calls.count("delete") == 2
    writer = written.writer
    assert all("protected" in writer.removal_refusal_of(pod) for pod in pods)
    assert writer.removal_refusal_of(waiting_pod("a", version=2)) == ""
    writer.retry_refused()
    assert writer.removal_refusal_of(pods[0]) == ""


async def test_an_eviction_that_a_budget_refuses_is_remembered_as_well() -> None:
    refusal = ThrottledError("evict", "Cannot evict pod: stays", 1.0)
    written, pod = Written(refusal), waiting_pod("a")
    written.observer.view.apply_pod(f"{builders.NAMESPACE}/a", pod)
    written.api.raw = {"apiVersion": "v1", "kind": "Pod", **to_builtins(pod)}
    await written.writer.evict([pod])
    assert written.api.calls == ["evict", "get"]
    assert "Cannot evict" in written.writer.removal_refusal_of(pod)
    with pytest.raises(ThrottledError):
        await written.writer.remove([pod])
