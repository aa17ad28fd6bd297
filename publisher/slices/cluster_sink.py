"""ResourceSlices on the API server, where others write, too.

Carries out plans pool by pool and remembers the answers, so that the next plan need
not wait for the watch. After a failed write the slice is read again: whoever plans
next sees what is there. Decides nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping

from contracts.device import ResourceSlice
from contracts.ids import PoolID
from contracts.meta import OwnerReference
from publisher.kube.carry_out import carry_out, decode_as
from publisher.slices.known_slices import KnownSlices
from publisher.slices.layout import PoolLayout
from publisher.slices.sink import SinkError, SlicePlan
from publisher.steps import Step
from runtime.kube.api import KubernetesApi
from runtime.kube.errors import ApiError, ConflictError, NotFoundError, UnavailableError
from runtime.kube.kinds import Kind
from runtime.log import get_logger
from runtime.refusals import Refusals

_UNSURE = (ConflictError, NotFoundError, UnavailableError)
"""After these a slice may be something else than what is known of it."""

log = get_logger(__name__)


class ClusterSliceSink:
    """The slices on the API server, and the way to change them."""

    def __init__(self, api: KubernetesApi, kind: Kind, slices: KnownSlices) -> None:
        self._api = api
        self._kind = kind
        self._slices = slices
        self._dropped: set[tuple[str, ...]] = set()
        """Fields of which it was logged that they are not kept."""
        self._refusals = Refusals()

    def pools(self) -> Iterable[PoolID]:
        """Name the pools of which slices of ours are there."""
        return self._slices.pools()

    def slices(self, pool: PoolID) -> tuple[ResourceSlice, ...]:
        """Return our slices of a pool."""
        return self._slices.slices(pool)

    def owner_of(self, layout: PoolLayout) -> OwnerReference | str:
        """Return a reference to the Node of a pool, or why no slices may be written."""
        return self._slices.owner_of(layout)

    async def carry_out(
        self, plans: Mapping[PoolID, SlicePlan]
    ) -> dict[PoolID, SinkError]:
        """Carry out each plan in its order, all of them at the same time."""
        errors = await asyncio.gather(*map(self._carry_out, plans.values()))
        results = zip(plans, errors, strict=True)
        return {pool: error for pool, error in results if error is not None}

    async def _carry_out(self, plan: SlicePlan) -> ApiError | None:
        for step in plan:
            name = step.object.metadata.name
            with self._refusals.guard(f"{self._kind.name}/{name}") as guarded:
                try:
                    await self._write_step(step)
                except ApiError as error:
                    if isinstance(error, _UNSURE):
                        await self._read_again(name)
                    return error
            if guarded.refused is not None:
                what = f"write {self._kind.name} {name}"
                return ApiError(what, guarded.refused.reason)
        return None

    async def _write_step(self, step: Step[ResourceSlice]) -> None:
        kept = await carry_out(self._api, self._kind, step)
        if kept is None:
            self._slices.note_deleted(step.object)
            return
        dropped = self._slices.note_written(step.object, kept)
        if dropped and dropped not in self._dropped:
            self._dropped.add(dropped)
            log.error(
                "slice.fields_dropped",
                slice=kept.metadata.name,
                fields=dropped,
                reason="the API server drops them: a feature gate is off",
            )

    async def _read_again(self, name: str) -> None:
        try:
            observed = decode_as(ResourceSlice, await self._api.get(self._kind, name))
        except NotFoundError:
            self._slices.apply_slice(name, None)
        except ApiError:
            return  # the watch will say
        else:
            self._slices.apply_slice(name, observed)
