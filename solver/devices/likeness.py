"""Nodes that are alike: what is read of one holds for the others, names aside.

Nearly all pools are one whole slice of a node's own, with devices that are plain. What
such a pool has to say is told by its facts, by how the selectors in question see it,
and by who is taken: nodes that are equal in these are looked at once. Whatever is less
plain is looked at node by node; that costs time, not truth.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from contracts.device import DeviceAttribute
from contracts.ids import DeviceName
from solver.devices.facts import PoolFacts
from solver.devices.gather import NodePools
from solver.devices.looks import PoolLook, Selectors, look_of

PoolLikeness = tuple[PoolFacts, PoolLook, tuple[DeviceName, ...]]
"""What tells of a plain pool which devices it has, which are chosen, which taken."""
MOST_ALIKE = 8192
"""Nodes that are not alike, of which one reader remembers so many."""


def likeness_of(node: NodePools, selectors: Selectors) -> Hashable | None:
    """Say what decides about a node's devices, in the order of its pools.

    `selectors`: all that are asked about. None: the node is like no other.
    """
    pools: list[PoolLikeness] = []
    for seen in node.pools:
        view, use = seen.view, seen.use
        if not view.is_plain:
            return None
        if use is None:
            taken: tuple[DeviceName, ...] = ()
        elif use.shared or use.taints:
            return None
        else:
            taken = use.taken
        pools.append((view.facts, look_of(view.part, selectors), taken))
    return tuple(pools)


Value = Hashable
"""What an attribute is for a comparison; None: a device lacks it."""


def values_of(node: NodePools, attribute: str) -> tuple[Value, ...] | None:
    """List what the devices of a node publish under a name, pool by pool.

    Equal values are equal elements (`solver/problem/attributes.py`), whatever lists
    mean. None: some device has a list.
    """
    domain, _, identifier = attribute.partition("/")
    values: list[Value] = []
    for seen in node.pools:
        is_own = bool(identifier) and domain == seen.view.driver
        bare = identifier if is_own else attribute
        for device in seen.view.devices:
            published = device.attributes.get(attribute)
            if published is None and bare is not attribute:
                published = device.attributes.get(bare)
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
    """Number values by who is first to have each, so that only equality is left."""
    numbers: dict[Value, int] = {None: 0}
    return tuple([numbers.setdefault(value, len(numbers)) for value in values])


def _scalar_of(attribute: DeviceAttribute) -> Value:
    """Return what an attribute that is no text is, with its kind; None: nothing."""
    for kind, value in (
        ("int", attribute.int_value),
        ("bool", attribute.bool_value),
        ("version", attribute.version_value),
    ):
        if value is not None:
            return (kind, value)
    return None
