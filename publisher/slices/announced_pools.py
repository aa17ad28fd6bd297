"""What node agents say: pools, health, and which node a pool belongs to.

Answers what should be published for a pool, or why nothing new may be. Pure state,
changed by whole messages; knows neither the bus nor what is published.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec.structs import replace

from contracts.device import ResourcePool, ResourceSlice
from contracts.ids import DeviceName, DriverName, NodeName, PoolID
from contracts.messages import DeviceHealth, DevicesAnnounced, HealthJudged
from contracts.meta import ObjectMeta
from contracts.validate import validate
from publisher.slices.layout import PoolLayout, group_taints, lay_out, name_slice

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

    def nodes(self) -> tuple[NodeName, ...]:
        """Name the nodes that have said what they have."""
        return tuple(self._heard)

    def of_node(self, node: NodeName) -> frozenset[PoolID]:
        """Name the pools that a node announces."""
        return frozenset(self._pools.get(node, ()))

    def pools(self) -> frozenset[PoolID]:
        """Name all pools that are announced: their slices are ours to write."""
        return frozenset(self._nodes)

    def apply_inventory(
        self, node: NodeName, message: DevicesAnnounced | None
    ) -> frozenset[PoolID]:
        """Note a node's inventory; returns the pools concerned.

        None: the bus has forgotten it, as after a day of silence. That says nothing of
        the node: what is published of it stays while the node does.
        """
        if message is None:
            self._heard.discard(node)
        else:
            self._heard.add(node)
        old = self._pools.pop(node, {})
        pools = () if message is None else message.pools
        new = {PoolID(pool.driver, pool.name): pool for pool in pools}
        if new:
            self._pools[node] = new
        for pool in old.keys() - new.keys():
            self._nodes[pool].discard(node)
            if not self._nodes[pool]:
                del self._nodes[pool]
        for pool in new:
            self._nodes.setdefault(pool, set()).add(node)
        return _changed_keys(old, new)

    def apply_health(
        self, node: NodeName, message: HealthJudged | None
    ) -> frozenset[PoolID]:
        """Note a node's health (None: it is gone); returns the pools concerned."""
        old = group_taints(self._health.pop(node, None))
        if message is not None:
            self._health[node] = message
        return _changed_keys(old, group_taints(message))

    def unhealthy_of(self, pool: PoolID) -> dict[DeviceName, DeviceHealth] | None:
        """Return the devices of a pool that are not healthy; None: not announced."""
        nodes = self._nodes.get(pool, set())
        if len(nodes) != 1:
            return None
        health = self._health.get(next(iter(nodes)))
        return {
            judged.device.device: judged
            for judged in (health.devices if health is not None else ())
            if judged.device.pool_id == pool
        }

    def layout_of(self, pool: PoolID) -> PoolLayout | str | None:
        """Return what to publish: slices, nothing (None), or why all stays as it is."""
        nodes = self._nodes.get(pool, set())
        if not nodes:
            return None
        if len(nodes) > 1:
            return f"announced by several nodes: {', '.join(sorted(nodes))}"
        node = next(iter(nodes))
        announced = self._pools[node][pool]
        taints = group_taints(self._health.get(node)).get(pool, {})
        layout = lay_out(
            announced, node, taints, owned=self._is_owned(pool.driver, node)
        )
        return _refusal_of(announced, layout) or layout


def _changed_keys(
    old: Mapping[PoolID, object], new: Mapping[PoolID, object]
) -> frozenset[PoolID]:
    """Return the pools of which something else is said."""
    keys = old.keys() | new.keys()
    return frozenset(key for key in keys if old.get(key) != new.get(key))


def _refusal_of(pool: ResourcePool, layout: PoolLayout) -> str:
    """Return what the API server, or a reader of the whole pool, would not take."""
    names = [device.name for device in pool.devices]
    if len(set(names)) != len(names):
        return "two devices of one name"
    for index, spec in enumerate(layout.slices):
        counted = replace(spec.pool, resource_slice_count=len(layout.slices))
        whole = ResourceSlice(
            metadata=ObjectMeta(name=name_slice(index, layout)),
            spec=replace(spec, pool=counted),
        )
        for violation in validate(whole):
            return f"slice {index}: {violation}"
    return ""
