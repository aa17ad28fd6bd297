"""What selectors can see of a pool: its look; pools that look alike get one answer.

Looks are remembered on the pool's part, and equal ones are one object, so whatever
follows from a look is found with one look-up. Nothing here evaluates anything.
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
MOST_LOOKS = 16_384


class PoolLook(Struct, frozen=True, cache_hash=True):
    """The devices of a pool as a list of selectors sees them."""

    size: int
    """Devices."""
    projections: tuple[tuple[Projection, ...], ...]
    """By selector, then by device."""


_POOLS: Slot[tuple[Part, ...]] = Slot()
"""Of a page: its pools."""
_DISTINCT_POOLS: Slots[Selectors, Mapping[PoolLook, Part]] = Slots(MOST_LISTS)
"""Of a page: the pools that differ to these selectors."""
_LOOKS: Slots[Selectors, PoolLook] = Slots(MOST_LISTS)
"""Of a pool's part: how these selectors see it."""
_PROJECTIONS: Slots[Footprint, tuple[Projection, ...]] = Slots(MOST_LISTS)
"""Of a pool's part: what an expression that reads so can see of each device."""
_ALIKE: Cache[tuple[object, ...], PoolLook] = Cache(MOST_LOOKS)
"""By all that they show."""


def pools_of(page: Page) -> tuple[Part, ...]:
    """List the pools of a page."""
    pools = _POOLS.get(page.memory)
    if pools is None:
        parts = (part for part in page.parts() if isinstance(part.value, PoolPart))
        pools = _POOLS.keep(page.memory, tuple(parts))
    return pools


def read_ahead(pages: Iterable[Page]) -> None:
    """Read what is known of all pools before anybody asks.

    Whoever reads ahead has all of it sent and recorded as well, so bytes are kept.
    """
    for page in pages:
        for part in pools_of(page):
            part.data  # noqa: B018
            facts_of(part)


def look_of(part: Part, selectors: Selectors) -> PoolLook:
    """See a pool as these selectors do."""
    look = _LOOKS.find(part.memory, selectors)
    if look is None:
        looks = _LOOKS.of(part.memory)
        look = looks.keep(selectors, _look_at(part, selectors))
    return look


def find_distinct_pools(page: Page, selectors: Selectors) -> Mapping[PoolLook, Part]:
    """Find the pools of a page that differ to these selectors: of each sort the first.

    Kept, as the same is asked until the table has all that the selectors need.
    """
    results = _DISTINCT_POOLS.of(page.memory)
    first_by_look = results.get(selectors)
    if first_by_look is None:
        pools: dict[PoolLook, Part] = {}
        for part in pools_of(page):
            pools.setdefault(look_of(part, selectors), part)
        # Who looks at a page has it hashed as well. A large cluster is not in the
        # processor's cache, so both are cheaper one after the other.
        page.sha  # noqa: B018
        first_by_look = results.keep(selectors, pools)
    return first_by_look


def forget_distinct_pools(page: Page, selectors: Selectors) -> None:
    """Forget these pools: the table has all that the selectors need."""
    _DISTINCT_POOLS.of(page.memory).pop(selectors, None)


def _look_at(part: Part, selectors: Selectors) -> PoolLook:
    facts, projections, rows = facts_of(part), _PROJECTIONS.of(part.memory), []
    for footprint in _footprints_of(selectors):
        row = projections.get(footprint)
        if row is None:
            devices = pool_of(part).devices
            row = project_all(footprint, facts.driver, devices, facts.faults)
            projections.keep(footprint, row)
        rows.append(row)
    key = (len(facts.names), tuple(rows))
    look = _ALIKE.get(key)
    return _ALIKE.keep(key, PoolLook(*key)) if look is None else look


@cached(bound=8192)
def _footprints_of(selectors: Selectors) -> tuple[Footprint, ...]:
    return tuple(map(footprint_of, selectors))
