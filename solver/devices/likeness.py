"""Nodes that are alike: what is read of one holds for the others, names aside.

Nearly all pools are one whole slice of a node's own, with devices that are plain. What
such a pool has to say is told by its facts, by how the selectors in question see it, by
who is taken, and where amounts count by what there is and what shares consume: nodes
that are equal in these are looked at once. Whatever is less plain is looked at node by
node; that costs time, not truth.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from operator import itemgetter

from msgspec import Struct

from contracts.device import DeviceAttribute, DeviceCapacity
from contracts.ids import DeviceName
from solver.cache import Cache, Slot
from solver.devices.facts import NO_MARKS, PoolFacts, pool_of
from solver.devices.gather import NodePools
from solver.devices.pool_projections import PoolProjection, Selectors, projection_of
from solver.devices.published import list_published
from solver.snapshot.parts import Part, ShareUse


class PoolCapacity(Struct, frozen=True, cache_hash=True):
    """What the devices of a pool have of each capacity, in their order."""

    devices: tuple[tuple[tuple[str, DeviceCapacity], ...], ...]


PoolLikeness = tuple[
    PoolFacts,
    PoolProjection,
    tuple[DeviceName, ...],
    PoolCapacity | None,
    str,
    tuple[ShareUse, ...],
]
"""What tells of a plain pool which devices it has, which are chosen, which taken, and
where amounts count what there is, of which driver, and what shares consume of it."""
MOST_ALIKE = 8192
"""Nodes that are not alike, of which one reader remembers so many."""
_name_of = itemgetter(0)
_CAPACITY: Slot[PoolCapacity] = Slot()
"""By part of a pool."""
_EQUAL_CAPACITY: Cache[PoolCapacity, PoolCapacity] = Cache(MOST_ALIKE)
"""Equal ones are one object."""


def likeness_of(
    node: NodePools, selectors: Selectors, *, by_amounts: bool = False
) -> Hashable | None:
    """Return a key of all that decides about a node's devices, pool by pool.

    `selectors`: all that are asked about; `by_amounts`: amounts are asked for, too.
    None: the node is like no other.
    """
    pools: list[PoolLikeness] = []
    for view in node.pools:
        use = view.use
        if not view.is_plain:
            return None
        taken: tuple[DeviceName, ...] = ()
        shared: tuple[ShareUse, ...] = ()
        if use is not None:
            if use.taints:
                return None
            taken, shared = use.taken, use.shared
        facts, capacity, domain = view.facts, None, ""
        if by_amounts or (facts.marks is not NO_MARKS and facts.marks.has_amounts):
            capacity, domain = _capacity_of(view.part), view.driver
        projection = projection_of(view.part, selectors)
        pools.append((facts, projection, taken, capacity, domain, shared))
    return tuple(pools)


def _capacity_of(part: Part) -> PoolCapacity:
    capacity = _CAPACITY.get(part.memory)
    if capacity is None:
        devices = pool_of(part).devices
        found = PoolCapacity(
            tuple([tuple(sorted(d.capacity.items(), key=_name_of)) for d in devices])
        )
        equal = _EQUAL_CAPACITY.get(found) or _EQUAL_CAPACITY.keep(found, found)
        capacity = _CAPACITY.keep(part.memory, equal)
    return capacity


Value = Hashable
"""What an attribute is for a comparison; None: a device lacks it."""


def values_of(node: NodePools, attribute: str) -> tuple[Value, ...] | None:
    """List what the devices of a node publish under a name, pool by pool.

    Equal values are equal elements (`solver/problem/attributes.py`), whatever lists
    mean. None: some device has a list.
    """
    values: list[Value] = []
    for view in node.pools:
        for published in list_published(view.devices, view.driver, attribute):
            if published is None:
                values.append(None)
                continue
            if (
                published.int_values
                or published.bool_values
                or published.string_values
                or published.version_values
            ):
                return None
            text = published.string_value
            values.append(_scalar_of(published) if text is None else text)
    return tuple(values)


def number_equal(values: Iterable[Value]) -> tuple[int, ...]:
    """Number values in the order of first use, so that only equality is left."""
    numbers: dict[Value, int] = {None: 0}
    return tuple([numbers.setdefault(value, len(numbers)) for value in values])


def _scalar_of(attribute: DeviceAttribute) -> Value:
    """Return the scalar value of an attribute, unless it is text, with its kind."""
    if (number := attribute.int_value) is not None:
        return ("int", number)
    if (truth := attribute.bool_value) is not None:
        return ("bool", truth)
    if (version := attribute.version_value) is not None:
        return ("version", version)
    return None
