"""ResourceSlices in the folder, where nobody else writes."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping

from contracts.device import ResourceSlice
from contracts.ids import PoolID
from publisher.errors import FolderError
from publisher.folder.files import Folder
from publisher.slices.layout import PoolLayout, pool_of
from publisher.slices.sink import SinkError, SlicePlan
from publisher.steps import Published, apply_steps, key_of


class FolderSliceSink:
    """The slices of a folder, remembered: nothing is read again."""

    def __init__(self, folder: Folder, contents: Iterable[Published]) -> None:
        self._folder = folder
        self._slices: dict[PoolID, tuple[ResourceSlice, ...]] = {}
        for obj in contents:
            if isinstance(obj, ResourceSlice):
                pool = pool_of(obj.spec)
                self._slices[pool] = (*self._slices.get(pool, ()), obj)

    def pools(self) -> Iterable[PoolID]:
        """Name the pools of which slices are there."""
        return tuple(self._slices)

    def slices(self, pool: PoolID) -> tuple[ResourceSlice, ...]:
        """Return the slices of a pool."""
        return self._slices.get(pool, ())

    def owner_of(self, layout: PoolLayout) -> None:  # noqa: ARG002 # as the protocol has it
        """Return no owner: a folder knows no uids of Nodes."""
        return

    async def carry_out(
        self, plans: Mapping[PoolID, SlicePlan]
    ) -> dict[PoolID, SinkError]:
        """Carry out all plans together: one flush of the directory for all."""
        steps = [step for plan in plans.values() for step in plan]
        try:
            await asyncio.to_thread(self._folder.carry_out, steps)
        except FolderError as error:
            return dict.fromkeys(plans, error)
        for pool, plan in plans.items():
            old = {key_of(slice_): slice_ for slice_ in self._slices.pop(pool, ())}
            if new := tuple(apply_steps(old, plan).values()):
                self._slices[pool] = new
        return {}
