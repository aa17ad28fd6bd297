"""ResourceSlices in the folder, where nobody else writes."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping

from contracts.device import ResourceSlice
from contracts.ids import PoolID
from publisher.errors import FolderError, PublisherError
from publisher.folder.files import Folder
from publisher.slices.layout import WantedPool, pool_id
from publisher.slices.sink import SlicePlan
from publisher.steps import Published, apply_steps, key_of


class FolderSliceSink:
    """The slices of a folder, remembered: nothing is read again."""

    def __init__(self, folder: Folder, contents: Iterable[Published]) -> None:
        self._folder = folder
        self._slices: dict[PoolID, tuple[ResourceSlice, ...]] = {}
        for item in contents:
            if isinstance(item, ResourceSlice):
                pool = pool_id(item.spec)
                self._slices[pool] = (*self._slices.get(pool, ()), item)

    def pools(self) -> Iterable[PoolID]:
        """Name the pools of which slices are there."""
        return tuple(self._slices)

    def slices(self, pool: PoolID) -> tuple[ResourceSlice, ...]:
        """Give the slices of a pool."""
        return self._slices.get(pool, ())

    def owner(self, wanted: WantedPool) -> None:  # noqa: ARG002 # as the protocol has it
        """Give no owner: a folder knows no uids of Nodes."""
        return

    async def carry_out(
        self, plans: Mapping[PoolID, SlicePlan]
    ) -> dict[PoolID, PublisherError]:
        """Carry out all plans together: one flush of the directory for all."""
        steps = [step for plan in plans.values() for step in plan]
        try:
            await asyncio.to_thread(self._folder.carry_out, steps)
        except FolderError as error:
            return dict.fromkeys(plans, error)
        for pool, plan in plans.items():
            before = {key_of(item): item for item in self._slices.pop(pool, ())}
            if left := tuple(apply_steps(before, plan).values()):
                self._slices[pool] = left
        return {}
