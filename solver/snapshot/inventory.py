"""Pools, nodes, classes and health as parts in pages, each change to its own page.

One source per pool. Of a pool that has ResourceSlices, which are other drivers' (the
publisher's own do not come here): the agent of their node, else these slices. Of any
other: the agent of the node that it is on; agents that contest it keep it out until one
of them stops. Pure; `snapshot.py` decides which message leads here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct, structs

from contracts.announcing import find_speakers
from contracts.claim import DeviceClass
from contracts.device import (
    DeviceCounterConsumption,
    DeviceTaint,
    DeviceTaintRule,
    ResourcePool,
    ResourceSlice,
)
from contracts.ids import DeviceClassName, DeviceName, DriverName, NodeName, PoolName
from contracts.messages import DevicesAnnounced, HealthJudged
from contracts.workload import Node
from solver.snapshot.device_uses import Uses, list_holders, sum_consumed
from solver.snapshot.events import NODE_EVENT, ClusterEvent, class_event, driver_event
from solver.snapshot.maps import FrozenMap
from solver.snapshot.node_state import (
    NodeState,
    NodeUse,
    is_only_less,
    make_node_part,
)
from solver.snapshot.pages import Pages
from solver.snapshot.parts import (
    ClassPart,
    NodePart,
    PoolPart,
    ShareUse,
    UnpublishedUse,
    UsePart,
    class_key,
    node_key,
    pool_key,
    use_key,
    use_key_of,
)
from solver.snapshot.pools import (
    find_node,
    list_named_nodes,
    pool_of_collision,
    pool_of_inventory,
    pool_of_slices,
    with_announcer,
)

_Tainted = tuple[DeviceName, DeviceTaint]
_JudgedTaints = dict[tuple[str, str], list[_Tainted]]
"""By driver and pool."""


class Inventory(Struct, frozen=True, kw_only=True):
    """The devices of a cluster and all that decides whether they may be used."""

    pages: Pages = Pages()
    grown: frozenset[ClusterEvent] = frozenset()
    """What turned up, since somebody last took note, that may make a no a yes."""
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
    """True if Kubernetes says which nodes there are: it has named one."""
    node_uses: FrozenMap[NodeName, dict[str, NodeUse]] = FrozenMap()
    """What each holder uses of a node besides devices."""
    repelling: FrozenMap[NodeName, bool] = FrozenMap()
    """Nodes with pods that keep other pods away (required anti-affinity)."""
    holders: FrozenMap[str, Uses] = FrozenMap()
    """Who holds which device, by pool key."""
    pool_nodes: FrozenMap[str, NodeName] = FrozenMap()
    """The node of each known pool, by pool key."""
    naming_pools: FrozenMap[NodeName, frozenset[str]] = FrozenMap()
    """Keys of the pools of several nodes that name a node."""

    def with_grown(self, *events: ClusterEvent) -> Inventory:
        """Note events that may have turned a no into a yes."""
        if self.grown.issuperset(events):
            return self
        return structs.replace(self, grown=self.grown.union(events))


def with_inventory(inventory: Inventory, message: DevicesAnnounced) -> Inventory:
    """Apply a node agent's inventory, which replaces all it announced before."""
    node = message.node
    previous_message = inventory.announced.get(node)
    if previous_message == message:
        return inventory
    old_pools = {
        pool_key(p.driver, p.name): p
        for p in (previous_message.pools if previous_message else ())
    }
    new_pools = {pool_key(p.driver, p.name): p for p in message.pools}
    announcers = inventory.announcers
    for key in old_pools.keys() - new_pools.keys():
        announcers = with_announcer(announcers, key, node, announces=False)
    for key in new_pools.keys() - old_pools.keys():
        announcers = with_announcer(announcers, key, node, announces=True)
    # First what the agent says of its node, then each pool that it changed.
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
    keys = sorted(old_pools.keys() | new_pools.keys())
    other = [key for key in keys if old_pools.get(key) != new_pools.get(key)]
    return with_node_part(with_pools(changed, other), node)


def without_inventory(inventory: Inventory, node: NodeName) -> Inventory:
    """Drop the inventory of a node that is announced no more."""
    last_message = inventory.announced.get(node)
    if last_message is None:
        return inventory
    no_pools = DevicesAnnounced(cluster=last_message.cluster, node=node, pools=())
    changed = with_inventory(inventory, no_pools)
    state = changed.nodes.get(node) or NodeState()
    silent = structs.replace(state, announced=False, away=False)
    changed = structs.replace(
        changed,
        announced=changed.announced.without(node),
        nodes=changed.nodes.with_item(node, silent),
    )
    return with_node_part(changed, node)


def with_health(inventory: Inventory, message: HealthJudged) -> Inventory:
    """Apply which devices of a node are not healthy."""
    previous = inventory.health.get(message.node)
    if previous == message:
        return inventory
    health_by_node, node = inventory.health, message.node
    health = (
        health_by_node.with_item(node, message)
        if message.devices
        else health_by_node.without(node)
    )
    changed = structs.replace(inventory, health=health)
    devices = [*(previous.devices if previous else ()), *message.devices]
    pools = {
        pool_key(device_health.device.driver, device_health.device.pool)
        for device_health in devices
    }
    return with_uses(changed, pools)


def with_taint_rule(
    inventory: Inventory, key: str, rule: DeviceTaintRule | None
) -> Inventory:
    """Apply a DeviceTaintRule; None: it is gone."""
    rules = inventory.taint_rules
    changed = structs.replace(
        inventory,
        taint_rules=rules.without(key) if rule is None else rules.with_item(key, rule),
    )
    return with_uses(changed, inventory.pool_nodes)


def with_class(
    inventory: Inventory, name: DeviceClassName, device_class: DeviceClass | None
) -> Inventory:
    """Apply a DeviceClass; None: it is gone."""
    if device_class is None:
        pages = inventory.pages.without("", class_key(name))
    else:
        pages = inventory.pages.with_value(
            ClassPart(
                name=name,
                selectors=tuple(
                    selector.cel.expression if selector.cel else ""
                    for selector in device_class.spec.selectors
                ),
                config=device_class.spec.config,
                extended_resource_name=device_class.spec.extended_resource_name or "",
                created=device_class.metadata.creation_timestamp or "",
            )
        )
    return _with_pages(inventory, pages, class_event(name))


def with_node(inventory: Inventory, name: NodeName, node: Node | None) -> Inventory:
    """Apply a Node of Kubernetes; None: it is gone."""
    return with_nodes(inventory, {name: node})


def with_nodes(
    inventory: Inventory, nodes: Mapping[NodeName, Node | None]
) -> Inventory:
    """Apply Nodes of Kubernetes by name; None: it is gone."""
    states = {
        name: structs.replace(inventory.nodes.get(name) or NodeState(), node=node)
        for name, node in nodes.items()
    }
    changed = structs.replace(inventory, nodes=inventory.nodes.with_items(states))
    if inventory.names_nodes or not any(node is not None for node in nodes.values()):
        return with_node_parts(changed, nodes)
    changed = structs.replace(changed, names_nodes=True)
    parts = (part for part in changed.pages.values() if isinstance(part, NodePart))
    return with_node_parts(changed, {**nodes, **{part.name: None for part in parts}})


def with_presence(inventory: Inventory, name: NodeName, *, away: bool) -> Inventory:
    """Apply that a node's agent is heard of, or is not any more."""
    state = inventory.nodes.get(name) or NodeState()
    if state.away == away:
        return inventory
    nodes = inventory.nodes.with_item(name, structs.replace(state, away=away))
    return with_node_part(structs.replace(inventory, nodes=nodes), name)


def with_node_part(inventory: Inventory, name: NodeName) -> Inventory:
    """Make a node's part again, after anything about it changed."""
    return with_node_parts(inventory, (name,))


def with_node_parts(inventory: Inventory, names: Iterable[NodeName]) -> Inventory:
    """Make the parts of nodes again, after anything about them changed.

    A node is there for as long as its agent, its Node or pools say so: those of its
    own, and those of several nodes that name it.
    """
    before, parts, gone = inventory.pages, list[NodePart](), list[NodeName]()
    for name in names:
        state = inventory.nodes.get(name) or NodeState()
        own = any(isinstance(value, PoolPart) for value in before.of(name))
        is_named = own or inventory.naming_pools.get(name)
        if not (state.announced or state.node is not None or is_named):
            gone.append(name)
            continue
        uses = inventory.node_uses.get(name) or {}
        named = inventory.names_nodes
        parts.append(make_node_part(name, state, uses.values(), names_nodes=named))
    after, nodes = before.with_values(parts), inventory.nodes
    for name in gone:
        after, nodes = after.without(name, node_key(name)), nodes.without(name)
    if after is before and nodes is inventory.nodes:
        return inventory
    changed = structs.replace(inventory, pages=after, nodes=nodes)
    return changed.with_grown(*_find_grown(before, after, parts))


def _find_grown(
    before: Pages, after: Pages, parts: Iterable[NodePart]
) -> set[ClusterEvent]:
    """Find what may be had of nodes that changed, unless only less of them is left."""
    names, drivers = list[NodeName](), set[DriverName]()
    for part in parts:
        previous = before.get(part.name, node_key(part.name))
        if previous == part:
            continue
        if isinstance(previous, NodePart) and is_only_less(previous, part):
            continue
        names.append(part.name)
    for name in names:
        drivers.update([p.driver for p in after.of(name) if isinstance(p, PoolPart)])
    return {NODE_EVENT, *map(driver_event, drivers)} if names else set()


def with_pools(inventory: Inventory, keys: Iterable[str]) -> Inventory:
    """Make the parts of pools again from their sources.

    So are those of nodes that pools came to, or left.
    """
    pages, pool_nodes = inventory.pages, dict[str, NodeName]()
    parts, gone = list[PoolPart](), list[str]()
    nodes: dict[NodeName, None] = {}
    naming, by_name = inventory.naming_pools, dict[NodeName, frozenset[str]]()
    drivers = set[DriverName]()
    for key in keys:
        part = _make_pool_part(inventory, key)
        node = None if part is None else part.node
        previous_node = inventory.pool_nodes.get(key)
        if previous_node is not None and node != previous_node:
            pages = pages.without(previous_node, key)
            pages = pages.without(previous_node, use_key_of(key))
        if node != previous_node:
            nodes |= dict.fromkeys(filter(None, (previous_node, node)))
        named = _list_named(inventory, key, previous_node)
        names = frozenset[NodeName]() if part is None else list_named_nodes(part)
        for name in sorted(named ^ names):
            naming_keys = by_name.get(name, naming.get(name) or frozenset())
            by_name[name] = naming_keys ^ {key}
            nodes[name] = None
        if part is None:
            gone.append(key)
        else:
            parts.append(part)
            pool_nodes[key] = part.node
        drivers.add(DriverName(key.split("/", 2)[1]))
    grown = map(driver_event, drivers)
    changed = _with_pages(inventory, pages.with_values(parts), *grown)
    known = inventory.pool_nodes.with_items(pool_nodes)
    for key in gone:
        known = known.without(key)
    naming = naming.with_items(by_name)
    for name, naming_keys in by_name.items():
        if not naming_keys:
            naming = naming.without(name)
    changed = structs.replace(changed, pool_nodes=known, naming_pools=naming)
    changed = with_uses(changed, pool_nodes, before=inventory)
    return with_node_parts(changed, nodes)


def _list_named(
    inventory: Inventory, key: str, owner: NodeName | None
) -> frozenset[NodeName]:
    """List the nodes that a known pool names so far."""
    part = None if owner is None else inventory.pages.get(owner, key)
    return list_named_nodes(part) if isinstance(part, PoolPart) else frozenset()


def _make_pool_part(inventory: Inventory, key: str) -> PoolPart | None:
    slices = inventory.slices.get(key)
    announced = {
        node: pool
        for node in inventory.announcers.get(key) or ()
        for pool in _list_announced_pools(inventory, node)
        if pool_key(pool.driver, pool.name) == key
    }
    if slices is not None:
        # Of a pool that somebody else publishes only the agent of its node may speak.
        node = find_node(slices.values())
        if node not in announced:
            return pool_of_slices(slices)
        return pool_of_inventory(announced[node], node)
    if not announced:
        return None
    nodes = find_speakers(PoolName(key.split("/", 2)[2]), announced)
    if len(nodes) == 1:
        return pool_of_inventory(announced[nodes[0]], nodes[0])
    return pool_of_collision(announced[nodes[0]], nodes)


def _list_announced_pools(
    inventory: Inventory, node: NodeName
) -> tuple[ResourcePool, ...]:
    message = inventory.announced.get(node)
    return () if message is None else message.pools


def with_uses(
    inventory: Inventory, keys: Iterable[str], *, before: Inventory | None = None
) -> Inventory:
    """Return an inventory that counts the uses of these pools again.

    Their holders or taints changed. `before`: the inventory before the pools
    themselves changed; None: they did not.
    """
    pages, uses, freed = inventory.pages, list[UsePart](), set[ClusterEvent]()
    judged: dict[NodeName, _JudgedTaints] = {}
    for key in sorted(keys):
        node = inventory.pool_nodes.get(key)
        if node is None:
            continue
        _, driver, pool = key.split("/", 2)
        if node not in judged:
            judged[node] = _group_taints(inventory.health.get(node))
        taints = judged[node].get((driver, pool), ())
        use = _make_use_part(
            inventory, DriverName(driver), PoolName(pool), node, taints
        )
        unpublished = _list_unpublished(inventory, key, before or inventory)
        use = structs.replace(use, unpublished=unpublished)
        previous = pages.get(node, use_key(use.driver, use.pool))
        if not (
            isinstance(previous, UsePart)
            and set(previous.taken) <= set(use.taken)
            and (previous.shared, previous.taints) == (use.shared, use.taints)
            and previous.unpublished == use.unpublished
        ):
            freed.add(driver_event(driver))
        uses.append(use)
    pages = pages.with_values(uses)
    if pages is inventory.pages:
        return inventory
    return structs.replace(inventory, pages=pages).with_grown(*freed)


def _make_use_part(
    inventory: Inventory,
    driver: DriverName,
    pool: PoolName,
    node: NodeName,
    judged: Iterable[_Tainted],
) -> UsePart:
    """Make the part; `judged`: what its node's agent says of its devices."""
    use_by_device = inventory.holders.get(pool_key(driver, pool)) or {}
    return UsePart(
        driver=driver,
        pool=pool,
        node=node,
        taken=tuple(sorted(name for name, use in use_by_device.items() if use.holders)),
        shared=tuple(
            ShareUse(device=name, consumed=sum_consumed(use_by_device[name]))
            for name in sorted(use_by_device)
            if use_by_device[name].shares
        ),
        taints=tuple(_list_taints(inventory, driver, pool, node, judged)),
    )


def _list_unpublished(
    inventory: Inventory, key: str, before: Inventory
) -> tuple[UnpublishedUse, ...]:
    """List what is held of a pool with counters but is in none of its slices.

    What it draws is known as long as somebody remembers the slice that had it.
    """
    node = inventory.pool_nodes.get(key)
    part = None if node is None else inventory.pages.get(node, key)
    uses = inventory.holders.get(key)
    if not uses or not isinstance(part, PoolPart):
        return ()
    if not any(pool_slice.shared_counters for pool_slice in part.slices):
        return ()
    missing = sorted(uses.keys() - {device.name for device in part.devices})
    known = _list_draws(before, key) if missing else {}
    return tuple(
        UnpublishedUse(
            device=name,
            holder=min(list_holders(uses[name])),
            consumes_counters=known.get(name),
        )
        for name in missing
    )


def _list_draws(
    inventory: Inventory, key: str
) -> dict[DeviceName, tuple[DeviceCounterConsumption, ...] | None]:
    """List what devices of a pool draw, published or remembered."""
    node = inventory.pool_nodes.get(key)
    if node is None:
        return {}
    use, part = (inventory.pages.get(node, k) for k in (use_key_of(key), key))
    remembered = use.unpublished if isinstance(use, UsePart) else ()
    draws = {each.device: each.consumes_counters for each in remembered}
    published = part.devices if isinstance(part, PoolPart) else ()
    return draws | {device.name: device.consumes_counters for device in published}


def _group_taints(health: HealthJudged | None) -> _JudgedTaints:
    """Group what a node's agent says of its devices by pool, all pools in one go."""
    taints: _JudgedTaints = {}
    for judged in health.devices if health is not None else ():
        device = judged.device
        of_pool = taints.setdefault((device.driver, device.pool), [])
        of_pool.extend((device.device, taint) for taint in judged.taints)
    return taints


def _list_taints(
    inventory: Inventory,
    driver: DriverName,
    pool: PoolName,
    node: NodeName,
    judged: Iterable[_Tainted],
) -> list[_Tainted]:
    taints = list(judged)
    if not len(inventory.taint_rules):
        return sorted(taints, key=lambda pair: pair[0])
    part = inventory.pages.get(node, pool_key(driver, pool))
    devices = part.devices if isinstance(part, PoolPart) else ()
    for key in sorted(inventory.taint_rules):
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
    return sorted(taints, key=lambda pair: pair[0])


def _with_pages(inventory: Inventory, pages: Pages, *grown: ClusterEvent) -> Inventory:
    if pages is inventory.pages:
        return inventory
    return structs.replace(inventory, pages=pages).with_grown(*grown)
