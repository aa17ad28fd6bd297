"""What selectors can see of a pool: its projection; equal projections get one answer.

Projections are remembered on the pool's part, and equal ones are one object, so what
follows from a projection is found with one look-up. Nothing is evaluated here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct

from solver.cache import Cache, Slot, Slots, cached
from solver.devices.facts import facts_of, pool_of
from solver.selectors.footprint import Footprint, footprint_of
from solver.selectors.projection import Projection, project_all
from solver.snapshot.pages import Page
from solver.snapshot.parts import Part, PoolPart

Selectors = tuple[str, ...]
"""Expressions that a device must pass, in their order."""
MOST_LISTS = 128
"""Lists of selectors that are remembered of one part or page."""
MOST_POOL_PROJECTIONS = 16_384


class PoolProjection(Struct, frozen=True, cache_hash=True):
    """What a list of selectors can see of the devices of a pool."""

    size: int
    """Devices."""
    by_selector: tuple[tuple[Projection, ...], ...]
    """By selector, then by device."""


_POOLS: Slot[tuple[Part, ...]] = Slot()
"""By page: its pools."""
_DISTINCT_POOLS: Slots[Selectors, Mapping[PoolProjection, Part]] = Slots(MOST_LISTS)
"""By page: the pools that differ to these selectors."""
_POOL_PROJECTIONS: Slots[Selectors, PoolProjection] = Slots(MOST_LISTS)
"""By part of a pool: its projection for these selectors."""
_PROJECTIONS: Slots[Footprint, tuple[Projection, ...]] = Slots(MOST_LISTS)
"""By part of a pool: what an expression with a footprint can see of each device."""
_ALIKE: Cache[tuple[object, ...], PoolProjection] = Cache(MOST_POOL_PROJECTIONS)
"""By content, so that equal ones are one object."""


def pools_of(page: Page) -> tuple[Part, ...]:
    """List the pools of a page."""
    pools = _POOLS.get(page.memory)
    if pools is None:
        parts = (part for part in page.parts() if isinstance(part.value, PoolPart))
        pools = _POOLS.keep(page.memory, tuple(parts))
    return pools


def read_ahead(pages: Iterable[Page]) -> None:
    """Read what is known of all pools ahead of the first question.

    What is read ahead is sent and recorded as well, so bytes are kept.
    """
    for page in pages:
        for part in pools_of(page):
            part.data  # noqa: B018
            facts_of(part)


def projection_of(part: Part, selectors: Selectors) -> PoolProjection:
    """Project a pool to what these selectors can see of it."""
    projection = _POOL_PROJECTIONS.find(part.memory, selectors)
    if projection is None:
        projections = _POOL_PROJECTIONS.of(part.memory)
        projection = projections.keep(selectors, _project_pool(part, selectors))
    return projection


def find_distinct_pools(
    page: Page, selectors: Selectors
) -> Mapping[PoolProjection, Part]:
    """Find the first pool of a page for each projection to these selectors.

    Kept, as the same is asked until the table has all that the selectors need.
    """
    results = _DISTINCT_POOLS.of(page.memory)
    first_by_projection = results.get(selectors)
    if first_by_projection is None:
        pools: dict[PoolProjection, Part] = {}
        for part in pools_of(page):
            pools.setdefault(projection_of(part, selectors), part)
        # A page that is read is hashed as well. A large cluster is not in the
        # processor's cache, so both are cheaper one after the other.
        page.sha  # noqa: B018
        first_by_projection = results.keep(selectors, pools)
    return first_by_projection


def forget_distinct_pools(page: Page, selectors: Selectors) -> None:
    """Forget these pools: the table has all that the selectors need."""
    _DISTINCT_POOLS.of(page.memory).pop(selectors, None)


def _project_pool(part: Part, selectors: Selectors) -> PoolProjection:
    facts, projections, rows = facts_of(part), _PROJECTIONS.of(part.memory), []
    for footprint in _footprints_of(selectors):
        row = projections.get(footprint)
        if row is None:
            devices = pool_of(part).devices
            row = project_all(footprint, facts.driver, devices, facts.faults)
            projections.keep(footprint, row)
        rows.append(row)
    key = (len(facts.names), tuple(rows))
    projection = _ALIKE.get(key)
    return _ALIKE.keep(key, PoolProjection(*key)) if projection is None else projection


@cached(bound=8192)
def _footprints_of(selectors: Selectors) -> tuple[Footprint, ...]:
    return tuple(map(footprint_of, selectors))
