"""Pools, nodes, classes and health as parts in pages, each change to its own page.

One source per pool: the agent of the node that owns it, else ResourceSlices; two
agents that announce one pool keep it out until one of them stops. Pure; `snapshot.py`
decides which message leads here.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct, structs

from contracts.claim import DeviceClass
from contracts.device import DeviceTaint, DeviceTaintRule, ResourcePool, ResourceSlice
from contracts.ids import DeviceClassName, DeviceName, DriverName, NodeName, PoolName
from contracts.messages import DevicesAnnounced, HealthJudged
from contracts.quantity import Quantity
from contracts.workload import Node
from solver.snapshot.maps import FrozenMap
from solver.snapshot.node_state import NodeState, NodeUse, node_part
from solver.snapshot.pages import Pages
from solver.snapshot.parts import (
    ClassPart,
    NodePart,
    PoolPart,
    ShareUse,
    UsePart,
    class_key,
    node_key,
    pool_key,
    use_key,
)
from solver.snapshot.pools import pool_of_collision, pool_of_inventory, pool_of_slices
from solver.snapshot.uses import DeviceUse, Uses


class Inventory(Struct, frozen=True, kw_only=True):
    """The devices of a cluster and all that decides whether they may be used."""

    pages: Pages = Pages()
    growth: int = 0
    announced: FrozenMap[NodeName, DevicesAnnounced] = FrozenMap()
    announcers: FrozenMap[str, tuple[NodeName, ...]] = FrozenMap()
    """Nodes whose agents announce a pool, by pool key."""
    slices: FrozenMap[str, dict[str, ResourceSlice]] = FrozenMap()
    """Slices by their key, by pool key."""
    slice_pools: FrozenMap[str, str] = FrozenMap()
    """Pool key by slice key."""
    health: FrozenMap[NodeName, HealthJudged] = FrozenMap()
    taint_rules: FrozenMap[str, DeviceTaintRule] = FrozenMap()
    nodes: FrozenMap[NodeName, NodeState] = FrozenMap()
    names_nodes: bool = False
    """Whether Kubernetes says which nodes there are: it has named one."""
    node_uses: FrozenMap[NodeName, dict[str, NodeUse]] = FrozenMap()
    """What each holder uses of a node besides devices."""
    holders: FrozenMap[str, Uses] = FrozenMap()
    """Who holds which device, by pool key."""
    pool_nodes: FrozenMap[str, NodeName] = FrozenMap()
    """The node of each known pool, by pool key."""

    def grown(self) -> Inventory:
        """Note that a no may have become a yes."""
        return structs.replace(self, growth=self.growth + 1)


def with_inventory(inventory: Inventory, message: DevicesAnnounced) -> Inventory:
    """Believe a node agent's inventory: all of it, and nothing it said before."""
    node = message.node
    before = inventory.announced.get(node)
    if before == message:
        return inventory
    old = {pool_key(p.driver, p.name): p for p in (before.pools if before else ())}
    new = {pool_key(p.driver, p.name): p for p in message.pools}
    announcers = inventory.announcers
    for key in old.keys() - new.keys():
        announcers = _with_announcer(announcers, key, node, announces=False)
    for key in new.keys() - old.keys():
        announcers = _with_announcer(announcers, key, node, announces=True)
    state = inventory.nodes.get(node) or NodeState()
    changed = structs.replace(
        inventory,
        announced=inventory.announced.with_item(node, message),
        announcers=announcers,
        nodes=inventory.nodes.with_item(
            node,
            structs.replace(
                state,
                announced=True,
                labels=message.labels,
                resources=message.resources,
            ),
        ),
    )
    for key in sorted(old.keys() | new.keys()):
        if old.get(key) != new.get(key):
            changed = _with_pool(changed, key)
    return with_node_part(changed, node)


def without_inventory(inventory: Inventory, node: NodeName) -> Inventory:
    """Believe that nobody speaks for a node any more."""
    said = inventory.announced.get(node)
    if said is None:
        return inventory
    nothing = DevicesAnnounced(cluster=said.cluster, node=node, pools=())
    changed = with_inventory(inventory, nothing)
    state = changed.nodes.get(node) or NodeState()
    silent = structs.replace(state, announced=False, away=False)
    changed = structs.replace(
        changed,
        announced=changed.announced.without(node),
        nodes=changed.nodes.with_item(node, silent),
    )
    return with_node_part(changed, node)


def _with_announcer(
    announcers: FrozenMap[str, tuple[NodeName, ...]],
    key: str,
    node: NodeName,
    *,
    announces: bool,
) -> FrozenMap[str, tuple[NodeName, ...]]:
    others = tuple(name for name in announcers.get(key) or () if name != node)
    nodes = tuple(sorted((*others, node))) if announces else others
    return announcers.with_item(key, nodes) if nodes else announcers.without(key)


def with_slice(inventory: Inventory, key: str, item: ResourceSlice) -> Inventory:
    """Believe a ResourceSlice."""
    pool = pool_key(item.spec.driver, item.spec.pool.name)
    known = inventory.slices.get(pool) or {}
    if known.get(key) == item:
        return inventory
    if inventory.slice_pools.get(key) not in (None, pool):
        inventory = without_slice(inventory, key)
    changed = structs.replace(
        inventory,
        slices=inventory.slices.with_item(pool, {**known, key: item}),
        slice_pools=inventory.slice_pools.with_item(key, pool),
    )
    changed = _with_pool(changed, pool)
    node = item.spec.node_name
    return changed if node is None else with_node_part(changed, node)


def without_slice(inventory: Inventory, key: str) -> Inventory:
    """Believe that a ResourceSlice is gone."""
    pool = inventory.slice_pools.get(key)
    if pool is None:
        return inventory
    left = dict(inventory.slices.get(pool) or {})
    item = left.pop(key, None)
    slices = inventory.slices
    changed = structs.replace(
        inventory,
        slices=slices.with_item(pool, left) if left else slices.without(pool),
        slice_pools=inventory.slice_pools.without(key),
    )
    changed = _with_pool(changed, pool)
    node = item.spec.node_name if item is not None else None
    return changed if node is None else with_node_part(changed, node)


def with_health(inventory: Inventory, message: HealthJudged) -> Inventory:
    """Believe which devices of a node are not healthy."""
    before = inventory.health.get(message.node)
    if before == message:
        return inventory
    known, node = inventory.health, message.node
    health = known.with_item(node, message) if message.devices else known.without(node)
    changed = structs.replace(inventory, health=health)
    devices = [*(before.devices if before else ()), *message.devices]
    pools = {pool_key(item.device.driver, item.device.pool) for item in devices}
    return with_uses(changed, pools)


def with_taint_rule(
    inventory: Inventory, key: str, rule: DeviceTaintRule | None
) -> Inventory:
    """Believe a DeviceTaintRule, or that it is gone."""
    rules = inventory.taint_rules
    changed = structs.replace(
        inventory,
        taint_rules=rules.without(key) if rule is None else rules.with_item(key, rule),
    )
    return with_uses(changed, inventory.pool_nodes)


def with_class(
    inventory: Inventory, name: DeviceClassName, item: DeviceClass | None
) -> Inventory:
    """Believe a DeviceClass, or (None) that it is gone."""
    if item is None:
        pages = inventory.pages.without("", class_key(name))
    else:
        pages = inventory.pages.with_value(
            ClassPart(
                name=name,
                selectors=tuple(
                    selector.cel.expression if selector.cel else ""
                    for selector in item.spec.selectors
                ),
                config=item.spec.config,
                extended_resource_name=item.spec.extended_resource_name or "",
                created=item.metadata.creation_timestamp or "",
            )
        )
    return _with_pages(inventory, pages)


def with_node(inventory: Inventory, name: NodeName, node: Node | None) -> Inventory:
    """Believe a Node of Kubernetes, or (None) that it is gone."""
    state = inventory.nodes.get(name) or NodeState()
    nodes = inventory.nodes.with_item(name, structs.replace(state, node=node))
    changed = structs.replace(inventory, nodes=nodes)
    if node is None or inventory.names_nodes:
        return with_node_part(changed, name)
    changed = structs.replace(changed, names_nodes=True)
    parts = (part for part in changed.pages.values() if isinstance(part, NodePart))
    for known in (name, *(part.name for part in parts)):
        changed = with_node_part(changed, known)
    return changed


def with_presence(inventory: Inventory, name: NodeName, *, away: bool) -> Inventory:
    """Believe that a node's agent is heard of, or not."""
    state = inventory.nodes.get(name) or NodeState()
    if state.away == away:
        return inventory
    nodes = inventory.nodes.with_item(name, structs.replace(state, away=away))
    return with_node_part(structs.replace(inventory, nodes=nodes), name)


def with_node_part(inventory: Inventory, name: NodeName) -> Inventory:
    """Make a node's part again, after anything about it changed.

    A node is there for as long as its agent, its Node or pools of its own say so.
    """
    state = inventory.nodes.get(name) or NodeState()
    own = (isinstance(value, PoolPart) for value in inventory.pages.of(name))
    if not (state.announced or state.node is not None or any(own)):
        pages = inventory.pages.without(name, node_key(name))
        nodes = inventory.nodes.without(name)
        return structs.replace(inventory, pages=pages, nodes=nodes)
    uses = inventory.node_uses.get(name) or {}
    before = inventory.pages.get(name, node_key(name))
    part = node_part(name, state, uses.values(), names_nodes=inventory.names_nodes)
    pages = inventory.pages.with_value(part)
    if pages is inventory.pages:
        return inventory
    changed = structs.replace(inventory, pages=pages)
    only_less = isinstance(before, NodePart) and _is_only_less(before, part)
    return changed if only_less else changed.grown()


def _is_only_less(before: NodePart, after: NodePart) -> bool:
    """Whether all that changed is that more of the node is in use."""
    if before.free is None or after.free is None:
        return False
    if before.free.keys() != after.free.keys():
        return False
    if structs.replace(before, free=after.free) != after:
        return False
    return all(after.free[name] <= amount for name, amount in before.free.items())


def _with_pool(inventory: Inventory, key: str) -> Inventory:
    """Make the pool's part again from whoever is its source."""
    part = _pool_part(inventory, key)
    before = inventory.pool_nodes.get(key)
    pages = inventory.pages
    if before is not None and (part is None or part.node != before):
        use = "use" + key.removeprefix("pool")
        pages = pages.without(before, key).without(before, use)
    if part is None:
        pool_nodes = inventory.pool_nodes.without(key)
    else:
        pages = pages.with_value(part)
        pool_nodes = inventory.pool_nodes.with_item(key, part.node)
    changed = structs.replace(_with_pages(inventory, pages), pool_nodes=pool_nodes)
    return changed if part is None else with_uses(changed, (key,))


def _pool_part(inventory: Inventory, key: str) -> PoolPart | None:
    nodes = inventory.announcers.get(key)
    if nodes is not None:
        pools = [
            pool
            for node in nodes
            for pool in _announced_pools(inventory, node)
            if pool_key(pool.driver, pool.name) == key
        ]
        if len(pools) == 1:
            return pool_of_inventory(pools[0], nodes[0])
        return pool_of_collision(pools[0], nodes)
    slices = inventory.slices.get(key)
    return None if slices is None else pool_of_slices(slices)


def _announced_pools(inventory: Inventory, node: NodeName) -> tuple[ResourcePool, ...]:
    message = inventory.announced.get(node)
    return () if message is None else message.pools


def with_uses(inventory: Inventory, keys: Iterable[str]) -> Inventory:
    """Make again what is used of these pools, after their holders or taints changed."""
    pages, freed = inventory.pages, False
    for key in sorted(keys):
        node = inventory.pool_nodes.get(key)
        if node is None:
            continue
        _, driver, pool = key.split("/", 2)
        use = _use_part(inventory, DriverName(driver), PoolName(pool), node)
        before = pages.get(node, use_key(use.driver, use.pool))
        freed = freed or not (
            isinstance(before, UsePart)
            and set(before.taken) <= set(use.taken)
            and (before.shared, before.taints) == (use.shared, use.taints)
        )
        pages = pages.with_value(use)
    if pages is inventory.pages:
        return inventory
    changed = structs.replace(inventory, pages=pages)
    return changed.grown() if freed else changed


def _use_part(
    inventory: Inventory, driver: DriverName, pool: PoolName, node: NodeName
) -> UsePart:
    held = inventory.holders.get(pool_key(driver, pool)) or {}
    return UsePart(
        driver=driver,
        pool=pool,
        node=node,
        taken=tuple(sorted(name for name, use in held.items() if use.holders)),
        shared=tuple(
            ShareUse(device=name, consumed=_consumed(held[name]))
            for name in sorted(held)
            if held[name].shares
        ),
        taints=tuple(_taints(inventory, driver, pool, node)),
    )


def _consumed(use: DeviceUse) -> tuple[tuple[str, Quantity], ...]:
    """Add up what the shares of a device consume."""
    total: dict[str, int] = {}
    for share in use.shares.values():
        for name, amount in share.consumed:
            total[name] = total.get(name, 0) + amount.nano
    return tuple((name, Quantity.of_nano(total[name])) for name in sorted(total))


def _taints(
    inventory: Inventory, driver: DriverName, pool: PoolName, node: NodeName
) -> list[tuple[DeviceName, DeviceTaint]]:
    health = inventory.health.get(node)
    taints = [
        (item.device.device, taint)
        for item in (health.devices if health is not None else ())
        if (item.device.driver, item.device.pool) == (driver, pool)
        for taint in item.taints
    ]
    part = inventory.pages.get(node, pool_key(driver, pool))
    devices = part.devices if isinstance(part, PoolPart) else ()
    for key in sorted(inventory.taint_rules) if len(inventory.taint_rules) else ():
        rule = inventory.taint_rules.get(key)
        selector = rule.spec.device_selector if rule else None
        if rule is None or selector is None:
            continue
        if selector.driver not in (None, driver) or selector.pool not in (None, pool):
            continue
        taints.extend(
            (device.name, rule.spec.taint)
            for device in devices
            if selector.device in (None, device.name)
        )
    return sorted(taints, key=lambda item: item[0])


def _with_pages(inventory: Inventory, pages: Pages) -> Inventory:
    if pages is inventory.pages:
        return inventory
    return structs.replace(inventory, pages=pages).grown()
