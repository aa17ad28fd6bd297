"""Writes of plans on the API server: applied, read again, or refused for good.

A conflict means that the object is read again and planned anew, never that a write is
repeated blindly. What the API server refuses is remembered, so that plans know of it:
for an attempt of a gang that it cannot be written, else for the one write while its
object stays as it is.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from time import monotonic
from typing import Any

from contracts.ids import GangUID, object_key
from contracts.messages import MAX_REASON
from contracts.workload import Pod
from publisher.cluster.observer import Observer
from publisher.cluster.state_publisher import StatePublisher
from publisher.gangs.patches import Patch, Purpose, without_allocation_time
from publisher.kube.changes import Change, ChangePage
from publisher.metrics import WRITES
from runtime.kube.api import KubernetesApi
from runtime.kube.errors import (
    ConflictError,
    InvalidError,
    NotFoundError,
    PermissionDeniedError,
    ThrottledError,
)
from runtime.kube.kinds import POD, Kind
from runtime.log import get_logger
from runtime.waits import together

_UNTOUCHED = {Purpose.PREPARE: "spec", Purpose.RESERVE: "status.allocation"}
"""Fields that are refused as changed by patches that only add to others."""

log = get_logger(__name__)


class PatchWriter:
    """Writes to the API server, and remembers what it refuses."""

    def __init__(
        self,
        api: KubernetesApi,
        observer: Observer,
        state: StatePublisher,
        leads: asyncio.Event,
        *,
        has_allocation_times: bool = True,
    ) -> None:
        """`leads` is checked before each write: only the leader may write.

        `has_allocation_times`: see `runtime.kube.kinds:ServedKinds`.
        """
        self._has_times = has_allocation_times
        self._api = api
        self._observer = observer
        self._state = state
        self._leads = leads
        self._refused_attempts: dict[tuple[str, str, int], str] = {}
        """Attempts that the API server does not take, and why."""
        self._refused: dict[tuple[str, str], tuple[Patch, str]] = {}
        """Writes that the API server does not take, while their objects stay so."""
        self._refused_removals: dict[str, tuple[Pod, str]] = {}
        """By uid: pods that it refuses to delete, as they were, and why."""

    async def write(self, patches: Sequence[Patch]) -> None:
        """Write side by side; apply each answer, or read the object anew.

        Raises:
            ApiError: the first that is neither a conflict nor a refusal.
        """
        if not patches:
            return
        began = monotonic()
        denied = asyncio.Event()
        results = await asyncio.gather(
            *(self._write_one(patch, denied) for patch in patches),
            return_exceptions=True,
        )
        for result in results:
            if isinstance(result, BaseException):
                raise result
        log.info(
            "objects.written",
            writes=dict(Counter(patch.purpose for patch in patches)),
            write_ms=round((monotonic() - began) * 1000),
        )

    async def remove(self, pods: Iterable[Pod]) -> None:
        """Delete pods side by side; their authors were told why."""
        await together(map(self._remove_pod, pods))

    async def evict(self, pods: Iterable[Pod]) -> None:
        """Evict pods side by side; their authors were told why."""
        await together(self._remove_pod(pod, evicts=True) for pod in pods)

    async def check(self, pods: Iterable[Pod], checked: set[tuple[str, str]]) -> bool:
        """Read pods anew, each version once; False: what is known has changed."""
        same = True
        for pod in pods:
            meta = pod.metadata
            key = object_key(meta.namespace, meta.name)
            if (meta.uid, meta.resource_version) in checked:
                continue
            checked.add((meta.uid, meta.resource_version))
            await self._apply_answer(
                POD.name, key, await self._fetch_object(POD, key), meta.uid
            )
            same = same and self._observer.view.pod(key) == pod
        return same

    # --- what is not taken ------------------------------------------------------------

    def attempt_refusal_of(self, namespace: str, uid: GangUID, attempt: int) -> str:
        """Return why an attempt cannot be written; empty: nothing is against it."""
        return self._refused_attempts.get((namespace, uid, attempt), "")

    def refusal_of(self, patch: Patch) -> str:
        """Return why this write is refused, while its object stays as it is.

        Empty: nothing is against it.
        """
        refused, reason = self._refused.get((patch.kind, patch.key), (None, ""))
        if refused == patch:
            return reason
        self._refused.pop((patch.kind, patch.key), None)
        return ""

    def removal_refusal_of(self, pod: Pod) -> str:
        """Return why a pod, as it is, is not deleted; empty: nothing is against it."""
        refused, reason = self._refused_removals.get(pod.metadata.uid, (None, ""))
        return reason if refused == pod else ""

    def retry_refused(self) -> None:
        """Try again what was refused by itself: admission may have changed its mind."""
        self._refused.clear()
        self._refused_removals.clear()

    def forget_refusals(self) -> None:
        """Forget every refusal, those of attempts as well."""
        self._refused_attempts.clear()
        self.retry_refused()

    # --- one object -------------------------------------------------------------------

    async def _write_one(self, patch: Patch, denied: asyncio.Event) -> None:
        """Do one write, if we lead and may; all writes share `denied`."""
        if not self._leads.is_set() or denied.is_set():
            return
        kind = self._observer.kind(patch.kind)
        raw: dict[str, Any] | None = None
        result = "failed"
        try:
            raw = await self._send_patch(kind, patch)
            result = "written"
        except ConflictError:
            result = "conflict"
            raw = await self._fetch_object(kind, patch.key)
        except NotFoundError:
            result = "gone"
        except PermissionDeniedError:
            result = "denied"
            denied.set()
            raise
        except InvalidError as error:
            result = "refused"
            self._note_refusal(patch, error)
            raw = await self._fetch_object(kind, patch.key)
        finally:
            WRITES.labels(patch.purpose, result).inc()
        await self._apply_answer(patch.kind, patch.key, raw, patch.uid)

    async def _send_patch(self, kind: Kind, patch: Patch) -> dict[str, Any]:
        """Send a patch, or an equal write where a patch cannot do it."""
        body = patch.body if self._has_times else without_allocation_time(patch)
        try:
            return await self._api.patch(
                kind, patch.key, body, subresource=patch.subresource
            )
        except InvalidError as error:
            if _UNTOUCHED.get(patch.purpose) != error.field:
                raise
            return await self._api.extend(
                kind, patch.key, patch.body, subresource=patch.subresource
            )

    async def _remove_pod(self, pod: Pod, *, evicts: bool = False) -> None:
        meta = pod.metadata
        key = object_key(meta.namespace, meta.name)
        try:
            with suppress(ConflictError, NotFoundError):
                if evicts:
                    await self._api.evict(key, uid=meta.uid)
                else:
                    await self._api.delete(POD, key, uid=meta.uid)
            log.warning("pod.removed", pod=key, evicted=evicts)
        except (InvalidError, ThrottledError) as error:
            if isinstance(error, ThrottledError) and not evicts:
                raise
            reason = str(error)[:MAX_REASON]
            self._refused_removals[meta.uid] = pod, reason
            log.error(  # noqa: TRY400 # the reason is the whole story
                "write.refused", purpose="remove", object=f"Pod {key}", reason=reason
            )
        await self._apply_answer(
            POD.name, key, await self._fetch_object(POD, key), meta.uid
        )

    async def _apply_answer(
        self, kind: str, key: str, raw: dict[str, Any] | None, uid: str
    ) -> None:
        """Apply an answer, and let the bus have it before the watch shows it."""
        self._observer.apply(kind, key, raw, uid)
        if raw is not None and self._observer.view.has(kind, key, uid):
            change = Change(kind, key, raw, uid)
            await self._state.take(ChangePage((change,), synced=True))

    async def _fetch_object(self, kind: Kind, key: str) -> dict[str, Any] | None:
        try:
            return await self._api.get(kind, key)
        except NotFoundError:
            return None

    def _note_refusal(self, patch: Patch, error: InvalidError) -> None:
        """Remember that an attempt, or this one write, is not taken as it is."""
        reason = str(error)[:MAX_REASON]
        log.error(
            "write.refused",
            purpose=patch.purpose,
            object=f"{patch.kind} {patch.key}",
            gang_uid=patch.gang,
            attempt=patch.attempt,
            reason=reason,
        )
        if patch.gang:
            attempt = (patch.namespace, patch.gang, patch.attempt)
            self._refused_attempts[attempt] = reason
        else:
            self._refused[patch.kind, patch.key] = patch, reason
