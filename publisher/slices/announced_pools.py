"""What node agents say: pools, health, and which node a pool belongs to.

Answers what should be published for a pool, or why nothing new may be. Pure state,
changed by whole messages; knows neither the bus nor what is published.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from contracts.device import ResourcePool, ResourceSlice
from contracts.ids import DeviceName, DriverName, NodeName, PoolID
from contracts.messages import DeviceHealth, DevicesAnnounced, HealthJudged
from contracts.meta import ObjectMeta
from contracts.validate import validate
from publisher.slices.layout import WantedPool, slice_name, taints_by_pool, wanted_pool

IsOwned = Callable[[DriverName, NodeName], bool]
"""Whether devices of a driver on a node are kept from kube-scheduler."""


class AnnouncedPools:
    """The last message of every node."""

    def __init__(self, is_owned: IsOwned) -> None:
        self._is_owned = is_owned
        self._pools: dict[NodeName, dict[PoolID, ResourcePool]] = {}
        self._nodes: dict[PoolID, set[NodeName]] = {}
        self._health: dict[NodeName, HealthJudged] = {}
        self._heard: set[NodeName] = set()

    def has_heard(self, node: NodeName | None) -> bool:
        """Whether a node has said what it has."""
        return node in self._heard

    def of_node(self, node: NodeName) -> frozenset[PoolID]:
        """Name the pools that a node announces."""
        return frozenset(self._pools.get(node, ()))

    def pools(self) -> frozenset[PoolID]:
        """Name all pools that are announced: their slices are ours to write."""
        return frozenset(self._nodes)

    def announce(
        self, node: NodeName, message: DevicesAnnounced | None
    ) -> frozenset[PoolID]:
        """Take in a node's inventory; gives the pools concerned.

        None: the bus has forgotten it, as after a day of silence. That says nothing of
        the node: what is published of it stays while the node does.
        """
        if message is None:
            self._heard.discard(node)
        else:
            self._heard.add(node)
        before = self._pools.pop(node, {})
        pools = () if message is None else message.pools
        now = {PoolID(pool.driver, pool.name): pool for pool in pools}
        if now:
            self._pools[node] = now
        for pool in before.keys() - now.keys():
            self._nodes[pool].discard(node)
            if not self._nodes[pool]:
                del self._nodes[pool]
        for pool in now:
            self._nodes.setdefault(pool, set()).add(node)
        keys = before.keys() | now.keys()
        return frozenset(key for key in keys if before.get(key) != now.get(key))

    def judge(self, node: NodeName, message: HealthJudged | None) -> frozenset[PoolID]:
        """Take in a node's health (None: it is gone); gives the pools concerned."""
        before = taints_by_pool(self._health.pop(node, None))
        if message is not None:
            self._health[node] = message
        now = taints_by_pool(message)
        keys = before.keys() | now.keys()
        return frozenset(key for key in keys if before.get(key) != now.get(key))

    def sick_of(self, pool: PoolID) -> dict[DeviceName, DeviceHealth] | None:
        """Give the devices of a pool that are not healthy; None: not announced."""
        nodes = self._nodes.get(pool, set())
        if len(nodes) != 1:
            return None
        health = self._health.get(next(iter(nodes)))
        return {
            item.device.device: item
            for item in (health.devices if health is not None else ())
            if item.device.pool_id == pool
        }

    def wanted(self, pool: PoolID) -> WantedPool | str | None:
        """Say what to publish: a pool, nothing (None), or why it stays as it is."""
        nodes = self._nodes.get(pool, set())
        if not nodes:
            return None
        if len(nodes) > 1:
            return f"announced by several nodes: {', '.join(sorted(nodes))}"
        node = next(iter(nodes))
        announced = self._pools[node][pool]
        taints = taints_by_pool(self._health.get(node)).get(pool, {})
        wanted = wanted_pool(
            announced, node, taints, owned=self._is_owned(pool.driver, node)
        )
        return _refusal(announced, wanted) or wanted


def _refusal(pool: ResourcePool, wanted: WantedPool) -> str:
    """Say what the API server, or a reader of the whole pool, would not take."""
    names = [device.name for device in pool.devices]
    if len(set(names)) != len(names):
        return "two devices of one name"
    for index, spec in enumerate(wanted.slices):
        counted = replace(spec.pool, resource_slice_count=len(wanted.slices))
        item = ResourceSlice(
            metadata=ObjectMeta(name=slice_name(index, wanted)),
            spec=replace(spec, pool=counted),
        )
        for violation in validate(item):
            return f"slice {index}: {violation}"
    return ""
