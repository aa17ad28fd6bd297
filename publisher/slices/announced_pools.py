"""What node agents say: pools, health, and which node a pool belongs to.

Answers what should be published for a pool, or why nothing new may be. Pure state,
changed by whole messages; knows neither the bus nor what is published.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from msgspec.structs import replace

from contracts.announcing import describe_contest, find_speakers
from contracts.device import DeviceTaint, ResourcePool, ResourceSlice
from contracts.ids import DeviceID, DeviceName, DriverName, NodeName, PoolID
from contracts.messages import DeviceHealth, DevicesAnnounced, HealthJudged
from contracts.meta import ObjectMeta
from contracts.validate import validate
from publisher.slices.announcement_limits import NO_EXECUTE, NO_SCHEDULE
from publisher.slices.eviction_budget import EvictionBudget
from publisher.slices.layout import PoolLayout, group_taints, lay_out, name_slice

IsOwned = Callable[[DriverName, NodeName], bool]
"""True if devices of a driver on a node are kept from kube-scheduler."""


class AnnouncedPools:
    """The last message of every node."""

    def __init__(self, is_owned: IsOwned, evictions: EvictionBudget) -> None:
        self._is_owned = is_owned
        self._evictions = evictions
        self._devices = 0
        """Of all nodes."""
        self._pools: dict[NodeName, dict[PoolID, ResourcePool]] = {}
        self._nodes: dict[PoolID, set[NodeName]] = {}
        self._health: dict[NodeName, HealthJudged] = {}
        self._heard: set[NodeName] = set()

    def has_heard(self, node: NodeName | None) -> bool:
        """True if a node has said what it has."""
        return node in self._heard

    def nodes(self) -> tuple[NodeName, ...]:
        """Name the nodes that have said what they have."""
        return tuple(self._heard)

    def of_node(self, node: NodeName) -> frozenset[PoolID]:
        """Name the pools that a node announces."""
        return frozenset(self._pools.get(node, ()))

    def nodes_of(self, pools: Iterable[PoolID]) -> frozenset[NodeName]:
        """Name the nodes that announce any of these pools."""
        return frozenset(node for pool in pools for node in self._nodes.get(pool, ()))

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
        self._devices += _count_devices(new) - _count_devices(old)
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
        self._evictions.want(node, _list_evicting(message))
        return _changed_keys(old, group_taints(message))

    def admit_evictions(self, now_s: float) -> frozenset[PoolID]:
        """Let devices end their pods whose turn it is; returns the pools concerned."""
        return self._evictions.admit(self._devices, now_s)

    def unhealthy_of(self, pool: PoolID) -> dict[DeviceName, DeviceHealth] | None:
        """Return the devices of a pool that are not healthy; None: not announced."""
        nodes = self._find_speakers(pool)
        if len(nodes) != 1:
            return None
        health = self._health.get(nodes[0])
        return {
            judged.device.device: judged
            for judged in (health.devices if health is not None else ())
            if judged.device.pool_id == pool
        }

    def judged(self) -> Iterator[tuple[NodeName, DeviceHealth]]:
        """Go through all devices that are not healthy, each with the node that says so.

        Also those that nobody announces, which are other drivers' (or nobody's).
        """
        for node, health in self._health.items():
            for judged in health.devices:
                yield node, judged

    def layout_of(self, pool: PoolID) -> PoolLayout | str | None:
        """Return what to publish: slices, nothing (None), or why all stays as it is."""
        nodes = self._find_speakers(pool)
        if not nodes:
            return None
        if len(nodes) > 1:
            return describe_contest(pool, nodes)
        (node,) = nodes
        announced = self._pools[node][pool]
        judged = group_taints(self._health.get(node)).get(pool, {})
        taints = {
            name: self._hold_back(DeviceID(pool.driver, pool.pool, name), of_device)
            for name, of_device in judged.items()
        }
        layout = lay_out(
            announced, node, taints, owned=self._is_owned(pool.driver, node)
        )
        return _refusal_of(layout) or layout

    def _find_speakers(self, pool: PoolID) -> tuple[NodeName, ...]:
        """Find whose word about a pool counts."""
        nodes = self._nodes.get(pool, ())
        return find_speakers(
            pool.pool, {node: self._pools[node][pool] for node in nodes}
        )

    def _hold_back(
        self, device: DeviceID, taints: tuple[DeviceTaint, ...]
    ) -> tuple[DeviceTaint, ...]:
        """Keep pods away from a device whose turn it is not, and end none."""
        if self._evictions.may_evict(device):
            return taints
        return tuple(
            replace(taint, effect=NO_SCHEDULE) if taint.effect == NO_EXECUTE else taint
            for taint in taints
        )


def _count_devices(pools: Mapping[PoolID, ResourcePool]) -> int:
    return sum(len(pool.devices) for pool in pools.values())


def _list_evicting(health: HealthJudged | None) -> list[DeviceID]:
    """List the devices that are to end their pods."""
    return [
        judged.device
        for judged in (health.devices if health is not None else ())
        if any(taint.effect == NO_EXECUTE for taint in judged.taints)
    ]


def _changed_keys(
    old: Mapping[PoolID, object], new: Mapping[PoolID, object]
) -> frozenset[PoolID]:
    """Return the pools of which something else is said."""
    keys = old.keys() | new.keys()
    return frozenset(key for key in keys if old.get(key) != new.get(key))


def _refusal_of(layout: PoolLayout) -> str:
    """Return why the API server would refuse a pool."""
    for index, spec in enumerate(layout.slices):
        counted = replace(spec.pool, resource_slice_count=len(layout.slices))
        whole = ResourceSlice(
            metadata=ObjectMeta(name=name_slice(index, layout)),
            spec=replace(spec, pool=counted),
        )
        for violation in validate(whole):
            return f"slice {index}: {violation}"
    return ""
