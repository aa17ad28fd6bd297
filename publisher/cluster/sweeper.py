"""Looks for claims that hold devices for nobody, now and then, and frees them.

Runs only while this publisher leads. What is an orphan at two looks in the same
version is freed; a claim that was just allocated may look like one for a moment.
"""

from __future__ import annotations

import asyncio

from publisher.cluster.observer import Observer
from publisher.gangs.patches import Patch
from publisher.gangs.running.plan_repairs import plan_sweep
from runtime.kube.api import KubernetesApi
from runtime.kube.errors import ApiError, ConflictError, NotFoundError
from runtime.log import get_logger
from runtime.refusals import Refusals
from runtime.waits import first_of

log = get_logger(__name__)


class Sweeper:
    """Frees claims that look like orphans at two looks."""

    def __init__(
        self, api: KubernetesApi, observer: Observer, interval_s: float
    ) -> None:
        self._api = api
        self._observer = observer
        self._interval_s = interval_s
        self._suspects: dict[str, Patch] = {}
        """What would free each claim that looks like an orphan, by its key."""
        self._refusals = Refusals()

    async def sweep(self, stop: asyncio.Event) -> None:
        """Look for orphans now and then, until `stop`."""
        while not stop.is_set():
            patches = {patch.key: patch for patch in plan_sweep(self._observer.view)}
            due = [p for key, p in patches.items() if self._suspects.get(key) == p]
            self._suspects = patches
            for patch in due:
                with self._refusals.guard(f"{patch.kind}/{patch.key}"):
                    await self._free_claim(patch)
            await first_of(stop, within_s=self._interval_s)

    async def _free_claim(self, patch: Patch) -> None:
        kind = self._observer.kind(patch.kind)
        try:
            raw = await self._api.patch(
                kind, patch.key, patch.body, subresource=patch.subresource
            )
        except (ConflictError, NotFoundError):
            return
        except ApiError as error:
            log.warning("claim.kept", claim=patch.key, reason=str(error))
            return
        self._observer.apply(patch.kind, patch.key, raw, patch.uid)
        log.info("claim.freed", claim=patch.key, reason="reserved and used by none")
