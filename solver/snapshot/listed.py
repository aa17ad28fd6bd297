"""The objects of a whole cluster, applied at once.

`observe` copies a page and some buckets for each object. That is cheap for a message,
but quadratic for the objects of a hundred thousand nodes. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import structs

from contracts.claim import ResourceClaim
from contracts.device import ResourceSlice
from contracts.ids import NodeName
from contracts.kubernetes.decode import KubernetesObject
from contracts.workload import Node
from solver.snapshot.events import claim_event
from solver.snapshot.inventory import with_nodes
from solver.snapshot.slices import with_slices
from solver.snapshot.snapshot import Snapshot, observe
from solver.snapshot.usage import with_holders


def observe_all(
    snapshot: Snapshot, objects: Iterable[tuple[str, KubernetesObject]]
) -> Snapshot:
    """Apply objects by key, as `observe` would one after the other.

    Of one key the last counts. Each node's parts are made once.
    """
    slices, nodes = dict[str, ResourceSlice](), dict[NodeName, Node | None]()
    claims: dict[str, ResourceClaim] = {}
    for key, value in objects:
        match value:
            case ResourceSlice():
                slices[key] = value
            case Node():
                nodes[NodeName(key)] = value
            case ResourceClaim() if key not in snapshot.claims:
                claims[key] = value
            case _:
                snapshot = observe(snapshot, key, value)
    # First who holds devices: of pools that come later that is made but once.
    inventory = with_holders(
        snapshot.inventory,
        {
            f"claim/{key}": (claim.allocation,)
            for key, claim in claims.items()
            if claim.allocation is not None
        },
    )
    inventory = with_slices(with_nodes(inventory, nodes), slices)
    inventory = inventory.with_grown(*map(claim_event, claims))
    known = snapshot.claims.with_items(claims)
    return structs.replace(snapshot, inventory=inventory, claims=known)
