"""Where ResourceSlices are published: what the writer asks of a folder or a cluster.

Stands alone so that the writer knows neither files nor an API server.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from contracts.device import ResourceSlice
from contracts.ids import PoolID
from contracts.meta import OwnerReference
from publisher.errors import FolderError
from publisher.slices.layout import PoolLayout
from publisher.steps import Step
from runtime.kube.errors import ApiError

SlicePlan = Sequence[Step[ResourceSlice]]
"""The steps for the slices of one pool, in their order."""
SinkError = ApiError | FolderError
"""Why a plan was not carried out, or not all of it."""


class SliceSink(Protocol):
    """Slices as they are, and the one way to change them."""

    def pools(self) -> Iterable[PoolID]:
        """Name the pools of which slices of ours are there."""

    def slices(self, pool: PoolID) -> tuple[ResourceSlice, ...]:
        """Return our slices of a pool."""

    def owner_of(self, layout: PoolLayout) -> OwnerReference | str | None:
        """Return with what slices go: a Node, nothing, or why none may be written."""

    async def carry_out(
        self, plans: Mapping[PoolID, SlicePlan]
    ) -> dict[PoolID, SinkError]:
        """Carry out plans; returns the pools that failed, and why.

        Plans of different pools do not wait for each other; what became of a failed
        one shows in `slices`, by which the caller plans anew.
        """
