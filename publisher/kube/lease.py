"""Leading by a Lease of coordination.k8s.io: at most one publisher acts at a time.

Carries out what `leadership.py` decides: reads, writes with the resourceVersion that
was read, and says in time when leading ends. Give it an api of its own, so that no
burst of other requests can keep a renewal waiting.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator
from datetime import UTC, datetime
from functools import partial

from publisher.kube import leadership
from publisher.kube.former import is_gone
from publisher.kube.holder import HolderProcess
from publisher.kube.leadership import DURATION_S, LeaseCandidate, lease_of, spec_of
from runtime import metrics
from runtime.errors import RestartError
from runtime.kube.api import Json, KubernetesApi
from runtime.kube.errors import ApiError, ConflictError, NotFoundError
from runtime.kube.kinds import LEASE
from runtime.log import get_logger
from runtime.retry import Outage
from runtime.waits import first_of

log = get_logger(__name__)


class LeaderLease:
    """Our candidacy for one Lease."""

    def __init__(
        self,
        api: KubernetesApi,
        key: str,
        identity: str,
        duration_s: float = DURATION_S,
        process: HolderProcess | None = None,
    ) -> None:
        """`key` is `namespace/name`; `identity` is of this process alone.

        `process`: this one, so that its successor knows that it is dead; None: every
        Lease that is held has to expire.
        """
        self._api = api
        self.key = key
        """`namespace/name` of the Lease."""
        self._process = process
        named = identity if process is None else process.add_to(identity)
        self._candidate = LeaseCandidate(identity=named, duration_s=duration_s)
        self._outage = Outage(f"lease {self.key}")
        leader = metrics.LEADER.labels(key.rpartition("/")[2])
        leader.set_function(lambda: self.leads)

    @property
    def uid(self) -> str:
        """The uid of the Lease; empty: it was not seen yet."""
        lease = self._candidate.lease
        return "" if lease is None else lease.uid

    @property
    def leads(self) -> bool:
        """True if we may act now: while the last renewal is young."""
        return self._left_s() > 0

    async def terms(self, stop: asyncio.Event) -> AsyncGenerator[asyncio.Event]:
        """Yield an event each time we lead; it is set when we should stop acting.

        That is on `stop`, or when the Lease could not be renewed for two thirds of its
        duration: the body of the loop has to return within the third that is left.
        Only then is the Lease given to whoever is next.

        Raises:
            RestartError: the cluster was restored from a backup, so that what we have
                read of it, by which every write is planned, did not happen.
        """
        while not stop.is_set():
            # First wait until the Lease is ours ...
            await self._try_once(self._attempt_s)
            if self._candidate.went_back:
                raise RestartError(f"the cluster was restored: {self.key} is older")
            if not self.leads:
                await first_of(stop, within_s=self._candidate.renew_s)
                continue
            # ... then renew it beside the caller's work, which ends with the term.
            log.info("lease.acquired", lease=self.key)
            term = asyncio.Event()
            renewing = asyncio.create_task(self._renew_lease(term), name="lease")
            stopping = asyncio.create_task(stop.wait())
            stopping.add_done_callback(partial(_set_event, term))
            try:
                yield term
            finally:
                for task in (renewing, stopping):
                    task.cancel()
                await asyncio.wait((renewing, stopping))
                await self._release_lease()

    async def _renew_lease(self, term: asyncio.Event) -> None:
        """Renew until cancelled; end the term when that did not succeed in time."""
        never = asyncio.Event()
        while self.leads:
            renewed_s = self._candidate.renewed_s
            await self._try_once(min(self._attempt_s, self._left_s()))
            failed = self._candidate.renewed_s == renewed_s
            pause_s = self._candidate.renew_s / (3 if failed else 1)
            await first_of(never, within_s=min(pause_s, self._left_s()))
        log.error("lease.lost", lease=self.key)
        term.set()

    async def _try_once(self, limit_s: float) -> None:
        """Look at the Lease and write it if it is ours to write, within `limit_s`."""
        try:
            async with asyncio.timeout(limit_s):
                try:
                    if not self.leads:
                        await self._read_lease()
                    await self._write_lease()
                except (ConflictError, NotFoundError):
                    # Somebody else wrote, or we did and the answer was lost.
                    await self._read_lease()
                    await self._write_lease()
        except (ApiError, TimeoutError) as error:
            self._outage.note_failure(error)
        else:
            self._outage.note_success()

    async def _read_lease(self) -> None:
        """Read the Lease; there may be none."""
        try:
            lease = lease_of(await self._api.get(LEASE, self.key))
        except NotFoundError:
            lease = lease_of(None)
        self._candidate = leadership.note_observed(
            self._candidate, lease, time.monotonic()
        )

    async def _write_lease(self) -> None:
        """Write that we lead, where that may be written."""
        began_s = time.monotonic()
        lease = self._candidate.lease
        if lease is None or not self._candidate.may_take(began_s, self._is_gone):
            return
        body = {"spec": spec_of(self._candidate, _micro_time())}
        if lease.resource_version:
            answer = await self._patch_lease(body, lease.resource_version)
        else:
            namespace, _, name = self.key.partition("/")
            metadata = {"namespace": namespace, "name": name}
            header = {"apiVersion": LEASE.api_version, "kind": LEASE.name}
            answer = await self._api.create(
                LEASE, {**header, "metadata": metadata, **body}
            )
        self._candidate = leadership.note_written(
            self._candidate, lease_of(answer), began_s, time.monotonic()
        )

    def _is_gone(self, holder: str) -> bool:
        return self._process is not None and is_gone(holder, self._process)

    async def _release_lease(self) -> None:
        """Leave the Lease to whoever is next, if it is still ours."""
        try:
            async with asyncio.timeout(self._attempt_s):
                await self._read_lease()
                lease = self._candidate.lease
                if lease is not None and lease.holder == self._candidate.identity:
                    body = {"spec": {"holderIdentity": ""}}
                    await self._patch_lease(body, lease.resource_version)
        except (ApiError, TimeoutError) as error:
            log.warning("lease.kept", lease=self.key, reason=str(error))
        self._candidate = leadership.note_released(self._candidate)

    async def _patch_lease(self, body: Json, resource_version: str) -> Json:
        return await self._api.patch(
            LEASE, self.key, body, resource_version=resource_version
        )

    @property
    def _attempt_s(self) -> float:
        """A time of which three fit between a renewal and the end of leading."""
        return self._candidate.duration_s / 6

    def _left_s(self) -> float:
        return self._candidate.left_s(time.monotonic())


def _set_event(event: asyncio.Event, _: object) -> None:
    event.set()


def _micro_time() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
