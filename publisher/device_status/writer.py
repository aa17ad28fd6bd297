"""Conditions of our devices in the claims that hold them, on the API server.

Looks at a claim when it changes and when the health of one of its pools does; writes by
server-side apply, so that what other drivers and managers say stays. Decides nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Protocol

from contracts.claim import ResourceClaim
from contracts.ids import ClaimRef, ClaimUID, Namespace, NodeName, PoolID
from publisher.device_status.plan import Entry, plan_device_status
from publisher.slices.announced_pools import AnnouncedPools
from runtime.kube.api import Json, KubernetesApi
from runtime.kube.device_status import DeviceStatusField
from runtime.kube.errors import ApiError, ConflictError, InvalidError, NotFoundError
from runtime.kube.kinds import Kind
from runtime.log import get_logger
from runtime.refusals import Refusals
from runtime.retry import Outage
from runtime.waits import first_of

_CHUNK = 64
_OUTDATED = (ConflictError, InvalidError, NotFoundError)
"""The claim is another one, was deallocated or is gone: the watch will say."""

log = get_logger(__name__)


class Claims(Protocol):
    """Claims of the cluster as they are now, by `namespace/name`."""

    def claim(self, key: str) -> ResourceClaim | None:
        """Return one claim."""

    def claims(self) -> Iterator[tuple[str, ResourceClaim]]:
        """Go through all claims."""


class DeviceStatusWriter:
    """The claims to look at, and the way to write what their devices are like."""

    def __init__(
        self,
        api: KubernetesApi,
        kind: Kind,
        claims: Claims,
        announced: AnnouncedPools,
        now: Callable[[], str],
    ) -> None:
        self._field = DeviceStatusField(api)
        self._kind = kind
        self._claims = claims
        self._announced = announced
        self._now = now
        self._due: dict[str, None] = {}
        """Keys of claims, oldest first."""
        self._due_pools: set[PoolID] = set()
        """Pools all of whose claims are to be looked at."""
        self._outage = Outage("write status.devices of claims")
        self._refusals = Refusals()
        self._wake = asyncio.Event()

    def look_at(self, key: str, raw: Json) -> None:
        """Look at a claim that changed, if anything may have to be said in it."""
        status = raw.get("status") or {}
        devices = (status.get("allocation") or {}).get("devices") or {}
        results = devices.get("results") or ()
        pools = {PoolID(result["driver"], result["pool"]) for result in results}
        if pools and (
            status.get("devices") or any(map(self._announced.unhealthy_of, pools))
        ):
            self._due[key] = None
            self._wake.set()

    def hear(self, node: NodeName, pools: frozenset[PoolID]) -> None:  # noqa: ARG002 # as listeners are told
        """Look at all claims that hold devices of these pools."""
        if pools:
            self._due_pools |= pools
            self._wake.set()

    async def write(self, stop: asyncio.Event) -> None:
        """Write what is due; a failed write is tried again for ever, ever slower."""
        while not stop.is_set():
            self._wake.clear()
            self._find_due()
            # Some at a time; what changes meanwhile is due once more.
            chunk = list(islice(self._due, _CHUNK))
            for key in chunk:
                del self._due[key]
            errors = await asyncio.gather(*map(self._update_claim, chunk))
            failed = [error for error in errors if error is not None]
            if failed:
                await self._outage.wait(failed[0], stop)
            elif chunk:
                self._outage.note_success()
            if not self._due:
                await first_of(stop, self._wake)

    def _find_due(self) -> None:
        """Go through all claims once for all pools whose health changed."""
        if not self._due_pools:
            return
        pools, self._due_pools = self._due_pools, set()
        for key, claim in self._claims.claims():
            if not pools.isdisjoint(_pools_of(claim)):
                self._due[key] = None

    async def _update_claim(self, key: str) -> ApiError | None:
        """Look at one claim; returns why it is to be looked at again."""
        with self._refusals.guard(f"{self._kind.name}/{key}"):
            return await self._try_claim(key)
        return None

    async def _try_claim(self, key: str) -> ApiError | None:
        claim = self._claims.claim(key)
        if claim is None:
            return None
        entries = plan_device_status(claim, self._announced.unhealthy_of, self._now())
        if entries is None:
            return None
        try:
            await self._apply_entries(key, claim, entries)
        except _OUTDATED as error:
            log.info("device_status.outdated", claim=key, reason=str(error))
        except ApiError as error:
            self._due[key] = None
            return error
        return None

    async def _apply_entries(
        self, key: str, claim: ResourceClaim, entries: tuple[Entry, ...]
    ) -> None:
        meta = claim.metadata
        ref = ClaimRef(Namespace(meta.namespace), meta.name, ClaimUID(meta.uid))
        if not await self._field.apply(self._kind, ref, entries):
            return
        states = {
            f"{entry['driver']}/{entry['pool']}/{entry['device']}": condition["status"]
            for entry in entries
            for condition in entry["conditions"]
        }
        log.info("device_status.written", claim=key, ready=states)


def _pools_of(claim: ResourceClaim) -> Iterator[PoolID]:
    """Name the pools of which a claim holds devices."""
    if claim.allocation is not None:
        for result in claim.allocation.devices.results:
            yield PoolID(result.driver, result.pool)
