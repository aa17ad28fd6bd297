"""The changes of a what-if, as the messages by which they would become known.

A change is applied to a Snapshot by what the solver would be told of the real one, so
that afterwards both are the same. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct, structs

from contracts.device import (
    DeviceTaint,
    DeviceTaintRule,
    DeviceTaintRuleSpec,
    DeviceTaintSelector,
    ResourcePool,
    ResourceSlice,
)
from contracts.ids import ClusterName, DeviceID, NodeName, PoolName
from contracts.kueue import ClusterQueue
from contracts.lifecycle import GangRecord
from contracts.messages import DevicesAnnounced, ObjectGone
from contracts.meta import ObjectMeta
from contracts.names import OURS
from contracts.quantity import Quantity
from contracts.workload import Node
from moorings.errors import UnknownNameError
from solver.snapshot.inventory import Inventory
from solver.snapshot.parts import PoolPart, pool_key
from solver.snapshot.snapshot import InventoryExpired, Snapshot, apply, observe
from solver.timeline.futures import without_gangs
from solver.timeline.quota_raises import set_amount

HOSTNAME = "kubernetes.io/hostname"
TAINT = f"{OURS}what-if"
"""Key of the taint on devices that are tainted."""


class Changes(Struct, frozen=True, kw_only=True):
    """What would be otherwise; of gangs only those that end."""

    without_nodes: tuple[NodeName, ...] = ()
    """Nodes that are gone, with their devices; gangs there keep what they hold."""
    taint: tuple[DeviceID, ...] = ()
    """Devices that nobody new may have (`NoSchedule`)."""
    free: tuple[str, ...] = ()
    """Gangs that end, by `namespace/name`, or name or uid where only one has it."""
    add_nodes: Mapping[NodeName, int] = {}
    """So many nodes more like one, with nothing of theirs held."""
    quotas: Mapping[str, Quantity] = {}
    """Nominal quotas by `QUEUE/RESOURCE`, or `QUEUE/FLAVOR/RESOURCE`."""


def change_cluster(
    snapshot: Snapshot, changes: Changes, cluster: ClusterName
) -> Snapshot:
    """Let nodes, devices and quotas be otherwise; gangs are `end_gangs`'s.

    Raises:
        UnknownNameError: something of that name is not there.
    """
    for like, count in changes.add_nodes.items():
        snapshot = _with_nodes(snapshot, like, count, cluster)
    for node in changes.without_nodes:
        snapshot = _without_node(snapshot, node, cluster)
    for number, device in enumerate(changes.taint, start=1):
        snapshot = _with_taint(snapshot, device, f"what-if-{number}")
    for name, amount in changes.quotas.items():
        snapshot = _with_quota(snapshot, name, amount)
    return snapshot


def end_gangs(snapshot: Snapshot, names: Iterable[str]) -> Snapshot:
    """Let gangs that have a place be gone, with their claims and pods.

    Raises:
        UnknownNameError: no gang of that name has a place, or several have.
    """
    found = [find_gang(snapshot.placed.values(), name) for name in names]
    return without_gangs(snapshot, found)


def find_gang(
    records: Iterable[GangRecord], name: str, kind: str = "gang with a place"
) -> GangRecord:
    """Find a gang by `namespace/name`, name or uid; `kind` says what they are.

    Raises:
        UnknownNameError: there is none, or more than one.
    """
    known = {f"{each.namespace}/{each.name}": each for each in records}
    named = [
        each for full, each in known.items() if name in {full, each.name, each.uid}
    ]
    if len(named) == 1:
        return named[0]
    full_names = [f"{each.namespace}/{each.name}" for each in named]
    what = f"single {kind}" if named else kind
    raise UnknownNameError(what, name, full_names or sorted(known)[:3])


# --- nodes ---------------------------------------------------------------------------


def _without_node(snapshot: Snapshot, node: NodeName, cluster: ClusterName) -> Snapshot:
    _require_node(snapshot.inventory, node)
    for key, _ in _list_slices(snapshot.inventory, node):
        gone = ObjectGone(cluster=cluster, kind="ResourceSlice", key=key)
        snapshot = apply(snapshot, gone)
    snapshot = apply(snapshot, ObjectGone(cluster=cluster, kind="Node", key=node))
    return apply(snapshot, InventoryExpired(node=node))


def _with_nodes(
    snapshot: Snapshot, like: NodeName, count: int, cluster: ClusterName
) -> Snapshot:
    inventory = snapshot.inventory
    _require_node(inventory, like)
    announced, model = inventory.announced.get(like), inventory.nodes.get(like)
    slices = _list_slices(inventory, like)
    for number in range(1, count + 1):
        name = name_added(like, number)
        if model is not None and model.node is not None:
            snapshot = observe(snapshot, name, _copy_node(model.node, name))
        for key, each in slices:
            made = _copy_slice(each, like, name)
            snapshot = observe(snapshot, f"{name}-{key}", made)
        if announced is not None:
            snapshot = apply(snapshot, _copy_announced(announced, name, cluster))
    return snapshot


def name_added(like: NodeName, number: int) -> NodeName:
    """Name a node that is added like one."""
    return NodeName(f"{like}-what-if-{number}")


def _require_node(inventory: Inventory, node: NodeName) -> None:
    if node not in inventory.nodes and not _list_slices(inventory, node):
        raise UnknownNameError("node", node, sorted(inventory.nodes)[:3])


def _list_slices(
    inventory: Inventory, node: NodeName
) -> list[tuple[str, ResourceSlice]]:
    """List the slices of a node alone, by their key."""
    return [
        (key, each)
        for of_pool in inventory.slices.values()
        for key, each in of_pool.items()
        if each.spec.node_name == node
    ]


def _copy_node(node: Node, name: NodeName) -> Node:
    labels = _rename_host(node.metadata.labels, name)
    metadata = structs.replace(node.metadata, name=name, uid="", labels=labels)
    return structs.replace(node, metadata=metadata)


def _rename_host(labels: Mapping[str, str], name: NodeName) -> dict[str, str]:
    return {key: name if key == HOSTNAME else of for key, of in labels.items()}


def _copy_slice(each: ResourceSlice, like: NodeName, name: NodeName) -> ResourceSlice:
    pool = structs.replace(
        each.spec.pool, name=_rename_pool(each.spec.pool.name, like, name)
    )
    metadata = structs.replace(each.metadata, name=f"{name}-{each.metadata.name}")
    spec = structs.replace(each.spec, node_name=name, pool=pool)
    return structs.replace(each, metadata=metadata, spec=spec)


def _copy_announced(
    announced: DevicesAnnounced, name: NodeName, cluster: ClusterName
) -> DevicesAnnounced:
    like = announced.node
    pools: tuple[ResourcePool, ...] = tuple(
        structs.replace(pool, name=_rename_pool(pool.name, like, name))
        for pool in announced.pools
    )
    labels = _rename_host(announced.labels, name)
    return structs.replace(
        announced, cluster=cluster, node=name, pools=pools, labels=labels
    )


def _rename_pool(pool: PoolName, like: NodeName, name: NodeName) -> PoolName:
    """Name the pool of an added node: most pools are named after their node."""
    if like in pool:
        return PoolName(pool.replace(like, name))
    return PoolName(f"{name}-{pool}")


# --- devices and quotas --------------------------------------------------------------


def _with_taint(snapshot: Snapshot, device: DeviceID, rule: str) -> Snapshot:
    names = sorted(map(str, _list_devices(snapshot.inventory, device)))
    if str(device) not in names:
        raise UnknownNameError("device", str(device), names[:3])
    made = DeviceTaintRule(
        metadata=ObjectMeta(name=rule),
        spec=DeviceTaintRuleSpec(
            device_selector=DeviceTaintSelector(
                driver=device.driver, pool=device.pool, device=device.device
            ),
            taint=DeviceTaint(key=TAINT, effect="NoSchedule"),
        ),
    )
    return observe(snapshot, rule, made)


def _list_devices(inventory: Inventory, like: DeviceID) -> Iterator[DeviceID]:
    """List the devices of a device's pool."""
    node = inventory.pool_nodes.get(pool_key(like.driver, like.pool))
    for part in () if node is None else inventory.pages.of(node):
        if isinstance(part, PoolPart) and part.pool == like.pool:
            for each in part.devices if part.driver == like.driver else ():
                yield DeviceID(like.driver, like.pool, each.name)


def _with_quota(snapshot: Snapshot, name: str, amount: Quantity) -> Snapshot:
    queue_name, _, resource = name.partition("/")
    queues = snapshot.queues.cluster_queues
    queue = queues.get(queue_name)
    if queue is None:
        known = sorted(each for each, _ in queues.items())
        raise UnknownNameError("ClusterQueue", queue_name, known[:3])
    places = sorted(_list_quotas(queue))
    found = [
        (flavor, each)
        for flavor, each in places
        if resource in {each, f"{flavor}/{each}"}
    ]
    if len(found) != 1:
        what = "single quota" if found else "quota"
        near = [f"{queue_name}/{flavor}/{each}" for flavor, each in found or places]
        raise UnknownNameError(what, name, near[:3])
    ((flavor, each),) = found
    groups = set_amount(
        queue.spec.resource_groups, (flavor, each), nominal_quota=amount
    )
    spec = structs.replace(queue.spec, resource_groups=groups)
    return observe(snapshot, queue_name, structs.replace(queue, spec=spec))


def _list_quotas(queue: ClusterQueue) -> Iterator[tuple[str, str]]:
    """List the quotas of a ClusterQueue, by flavor and resource."""
    for group in queue.spec.resource_groups:
        for flavor in group.flavors:
            for resource in flavor.resources:
                yield flavor.name, resource.name
