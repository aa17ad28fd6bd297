"""Which announcements of node agents count: of which drivers, and on which node.

A message comes from whoever speaks as its node. Everybody who acts on inventories asks
here, so that what the solver gives out is what the publisher publishes. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping

from msgspec import Struct
from msgspec.structs import replace

from contracts.counts import listed
from contracts.device import ResourcePool
from contracts.ids import DriverName, NodeName, PoolID, PoolName
from contracts.messages import DevicesAnnounced


class Refusal(Struct, frozen=True):
    """A part of a message that is left out, or reduced."""

    field: str
    reason: str


def refuse_driver(driver: DriverName, drivers: Collection[DriverName]) -> str:
    """Return why node agents may announce no pool of a driver; empty: they may.

    `drivers`: those of the setting `AGENT_DRIVERS`; empty: any.
    """
    if not drivers or driver in drivers:
        return ""
    return (
        "no node agent of this installation has devices of this driver (AGENT_DRIVERS)"
    )


def limit_drivers(
    message: DevicesAnnounced, drivers: Collection[DriverName]
) -> tuple[DevicesAnnounced, tuple[Refusal, ...]]:
    """Return an inventory without pools of drivers for which no agent speaks."""
    refusals = tuple(
        Refusal(f"pools[{pool.driver}/{pool.name}]", reason)
        for pool in message.pools
        if (reason := refuse_driver(pool.driver, drivers))
    )
    if not refusals:
        return message, ()
    pools = tuple(p for p in message.pools if not refuse_driver(p.driver, drivers))
    return replace(message, pools=pools), refusals


def find_speakers(
    name: PoolName, announced: Mapping[NodeName, ResourcePool]
) -> tuple[NodeName, ...]:
    """Return the nodes whose agents' word about a pool counts, by name; one at least.

    Several contest it, and nobody may have its devices. A pool is on the node that it
    is named after: whose name stands in the pool's, best as a whole between slashes,
    else at a beginning, and then the longest. Where it is named after none of them, an
    empty pool contests nothing.
    """
    nodes = sorted(announced)
    if len(nodes) == 1:
        return (*nodes,)
    namesakes = [node for node in nodes if _is_named_after(name, node)]
    ranks = {node: _rank_namesake(name, node) for node in namesakes}
    best = max(ranks.values(), default=None)
    return (
        tuple(node for node, rank in ranks.items() if rank == best)
        or tuple(node for node in nodes if announced[node].devices)
        or (*nodes[:1],)
    )


def _is_named_after(pool: PoolName, node: NodeName) -> bool:
    """True if a node's name stands in a pool's, between other signs than its own."""
    before, after = r"(?<![a-zA-Z0-9])", r"(?![a-zA-Z0-9])"
    return re.search(f"{before}{re.escape(node)}{after}", pool) is not None


def _rank_namesake(pool: PoolName, node: NodeName) -> tuple[int, int]:
    """Rank a node that a pool is named after: `n-1-nics` is of `n-1`, not `nics`."""
    parts = pool.split("/")
    if node in parts:
        return 2, 0
    return int(any(part.startswith(node) for part in parts)), len(node)


def describe_contest(pool: PoolID, nodes: Iterable[NodeName]) -> str:
    """Name a pool that several nodes announce, and these nodes."""
    return f"pool {pool} is announced by nodes {listed(sorted(nodes))}"
