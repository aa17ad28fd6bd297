"""Writes of plans on the API server: believed, read again, or refused for good.

A conflict means that the object is read again and planned anew, never that a write is
repeated blindly. What the API server refuses is remembered, so that plans know of it:
for an attempt of a gang that it cannot be written, else for the one write while its
object stays as it is.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from time import monotonic
from typing import Any

from contracts.ids import GangUID, object_key
from contracts.workload import Pod
from publisher.cluster.observer import Observer
from publisher.cluster.state_publisher import StatePublisher
from publisher.errors import (
    ConflictError,
    InvalidError,
    NotFoundError,
    PermissionDeniedError,
)
from publisher.gangs.patches import Patch
from publisher.kube.api import KubernetesApi
from publisher.kube.changes import Change, ChangePage
from publisher.kube.kinds import POD, Kind
from runtime.log import get_logger
from runtime.waits import together

_SHOWN = 500

log = get_logger(__name__)


class PatchWriter:
    """The way to the API server, and what it does not take."""

    def __init__(
        self,
        api: KubernetesApi,
        observed: Observer,
        state: StatePublisher,
        leads: Callable[[], bool],
    ) -> None:
        """`leads` is asked before each write."""
        self._api = api
        self._observed = observed
        self._state = state
        self._leads = leads
        self._attempts: dict[tuple[GangUID, int], str] = {}
        """Attempts that the API server does not take, and why."""
        self._refused: dict[tuple[str, str], tuple[Patch, str]] = {}
        """Writes that the API server does not take, while their objects stay so."""
        self.counts: Counter[str] = Counter()
        """Writes by purpose, and those that were answered by a conflict."""

    async def write(self, patches: Sequence[Patch]) -> None:
        """Do writes side by side; each is believed or read again.

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
        """Delete pods side by side; why was told."""
        await together(map(self._remove, pods))

    async def check(self, pods: Iterable[Pod], checked: set[tuple[str, str]]) -> bool:
        """Read pods anew, each version once; False: what is known has changed."""
        same = True
        for pod in pods:
            meta = pod.metadata
            key = object_key(meta.namespace, meta.name)
            if (meta.uid, meta.resource_version) in checked:
                continue
            checked.add((meta.uid, meta.resource_version))
            await self._believe(POD.name, key, await self._get(POD, key), meta.uid)
            same = same and self._observed.view.pod(key) == pod
        return same

    # --- what is not taken ------------------------------------------------------------

    def attempt_refusal(self, uid: GangUID, attempt: int) -> str:
        """Say why an attempt cannot be written; empty: nothing is known against it."""
        return self._attempts.get((uid, attempt), "")

    def refusal(self, patch: Patch) -> str:
        """Say why just this is not taken: the object is as it was, to the version."""
        refused, reason = self._refused.get((patch.kind, patch.key), (None, ""))
        if refused == patch:
            return reason
        self._refused.pop((patch.kind, patch.key), None)
        return ""

    def forget_refusals(self) -> None:
        """Try again what was refused by itself: admission may have changed its mind."""
        self._refused.clear()

    def forget_all(self) -> None:
        """Forget every refusal."""
        self._attempts.clear()
        self._refused.clear()

    # --- one object -------------------------------------------------------------------

    async def _write_one(self, patch: Patch, denied: asyncio.Event) -> None:
        """Do one write, unless we lead no more or may not; `denied` is of all."""
        if not self._leads() or denied.is_set():
            return
        kind = self._observed.kind(patch.kind)
        found: dict[str, Any] | None = None
        self.counts[patch.purpose] += 1
        try:
            found = await self._api.patch(
                kind, patch.key, patch.body, subresource=patch.subresource
            )
        except ConflictError:
            self.counts["conflict"] += 1
            found = await self._read_again(patch)
        except NotFoundError:
            pass
        except PermissionDeniedError:
            denied.set()
            raise
        except InvalidError as error:
            self._refuse(patch, error)
            found = await self._read_again(patch)
        await self._believe(patch.kind, patch.key, found, patch.uid)

    async def _remove(self, pod: Pod) -> None:
        meta = pod.metadata
        key = object_key(meta.namespace, meta.name)
        with suppress(ConflictError, NotFoundError):
            await self._api.delete(POD, key, uid=meta.uid)
        self.counts["remove"] += 1
        log.warning("pod.removed", pod=key)
        await self._believe(POD.name, key, await self._get(POD, key), meta.uid)

    async def _believe(
        self, kind: str, key: str, raw: dict[str, Any] | None, uid: str
    ) -> None:
        """Believe an answer, and let the bus have it before the watch shows it."""
        self._observed.believe(kind, key, raw, uid)
        if raw is not None and self._observed.view.has(kind, key, uid):
            change = Change(kind, key, raw, uid)
            await self._state.take(ChangePage((change,), synced=True))

    async def _read_again(self, patch: Patch) -> dict[str, Any] | None:
        return await self._get(self._observed.kind(patch.kind), patch.key)

    async def _get(self, kind: Kind, key: str) -> dict[str, Any] | None:
        try:
            return await self._api.get(kind, key)
        except NotFoundError:
            return None

    def _refuse(self, patch: Patch, error: InvalidError) -> None:
        """Remember that an attempt cannot be written as it is."""
        log.error(
            "write.refused",
            purpose=patch.purpose,
            object=f"{patch.kind} {patch.key}",
            gang_uid=patch.gang,
            attempt=patch.attempt,
            reason=str(error)[:_SHOWN],
        )
        reason = str(error)[:_SHOWN]
        if patch.gang:
            self._attempts[GangUID(patch.gang), patch.attempt] = reason
        else:
            self._refused[patch.kind, patch.key] = patch, reason
