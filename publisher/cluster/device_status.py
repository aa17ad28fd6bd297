"""Conditions of our devices in the claims that hold them, on the API server.

Looks at a claim when it changes and when the health of one of its pools does; writes by
server-side apply, so that what other drivers and managers say stays. Decides nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

from contracts.claim import ResourceClaim
from contracts.ids import NodeName, PoolID
from contracts.process.log import get_logger
from contracts.process.retry import Outage
from contracts.process.waits import first_of
from publisher.announced import Announced
from publisher.api import KubernetesApi
from publisher.cluster.plan_device_status import Entry, plan_device_status
from publisher.errors import ApiError, ConflictError, InvalidError, NotFoundError
from publisher.kinds import Kind

_CHUNK = 64
_OUTDATED = (ConflictError, InvalidError, NotFoundError)
"""The claim is another one, was deallocated or is gone: the watch will say."""

log = get_logger(__name__)


class DeviceStatusWriter:
    """Allocated claims by the pools of their devices, and those to look at."""

    def __init__(
        self,
        api: KubernetesApi,
        kind: Kind,
        announced: Announced,
        now: Callable[[], str],
    ) -> None:
        self._api = api
        self._kind = kind
        self._announced = announced
        self._now = now
        self._claims: dict[str, ResourceClaim] = {}
        self._of_pool: dict[PoolID, set[str]] = {}
        self._due: dict[str, None] = {}
        self._outage = Outage("write status.devices of claims")
        self._wake = asyncio.Event()

    def apply_claim(self, key: str, claim: ResourceClaim | None) -> None:
        """Take a claim in (None: it is gone)."""
        before = self._claims.pop(key, None)
        if before is not None:
            for pool in _pools(before):
                holders = self._of_pool[pool]
                holders.discard(key)
                if not holders:
                    del self._of_pool[pool]
        if claim is None:
            return
        pools = _pools(claim)
        if not pools:
            return
        self._claims[key] = claim
        for pool in pools:
            self._of_pool.setdefault(pool, set()).add(key)
        self._make_due((key,))

    def hear(self, node: NodeName, pools: Iterable[PoolID]) -> None:  # noqa: ARG002 # as listeners are told
        """Look again at the claims that hold devices of these pools."""
        for pool in pools:
            self._make_due(sorted(self._of_pool.get(pool, ())))

    def _make_due(self, keys: Iterable[str]) -> None:
        self._due |= dict.fromkeys(keys)
        self._wake.set()

    async def write(self, stop: asyncio.Event) -> None:
        """Write what is due; a failed write is tried again for ever, ever slower."""
        while not stop.is_set():
            self._wake.clear()
            chunk = [
                key for key, _ in zip(list(self._due), range(_CHUNK), strict=False)
            ]
            for key in chunk:
                del self._due[key]
            errors = await asyncio.gather(*map(self._settle, chunk))
            failed = [error for error in errors if error is not None]
            if failed:
                await self._outage.wait(failed[0], stop)
            elif chunk:
                self._outage.over()
            if not self._due:
                await first_of(stop, self._wake)

    async def _settle(self, key: str) -> ApiError | None:
        """Look at one claim; gives why it is to be looked at again."""
        claim = self._claims.get(key)
        if claim is None:
            return None
        entries = plan_device_status(claim, self._announced.sick_of, self._now())
        if entries is None:
            return None
        try:
            await self._apply(key, claim, entries)
        except _OUTDATED as error:
            log.info("device_status.outdated", claim=key, reason=str(error))
        except ApiError as error:
            self._due[key] = None
            return error
        return None

    async def _apply(
        self, key: str, claim: ResourceClaim, entries: tuple[Entry, ...]
    ) -> None:
        body = {
            "apiVersion": self._kind.api_version,
            "kind": self._kind.name,
            "metadata": {"name": claim.metadata.name, "uid": claim.metadata.uid},
            "status": {"devices": list(entries)},
        }
        await self._api.apply(self._kind, key, body, subresource="status")
        states = {
            f"{entry['driver']}/{entry['pool']}/{entry['device']}": condition["status"]
            for entry in entries
            for condition in entry["conditions"]
        }
        log.info("device_status.written", claim=key, ready=states)


def _pools(claim: ResourceClaim) -> frozenset[PoolID]:
    """Name the pools of which the claim holds devices."""
    status = claim.status
    if status is None or status.allocation is None:
        return frozenset()
    results = status.allocation.devices.results
    return frozenset(PoolID(result.driver, result.pool) for result in results)
