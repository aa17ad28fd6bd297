"""What the judge reads in a Problem: nodes, pools and devices, taken from the parts.

Written apart from the models on purpose: it shares no helper with candidates, kinds
or rules, so that an error there is not repeated here. A node is read when it is first
asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property

from msgspec import Struct

from contracts.device import (
    Device,
    DeviceAttribute,
    DeviceCounterConsumption,
    DeviceTaint,
)
from contracts.ids import DeviceClassName, DeviceID, NodeName, PoolID
from solver.judge.amounts import shares_by_own_name
from solver.judge.pools import CounterAmounts, VisiblePool, is_readable, read_pool
from solver.problem.gangs import SubrequestPart
from solver.problem.problem import Problem
from solver.selectors.footprint import footprint_of
from solver.selectors.projection import Projection, find_faults, project, project_all
from solver.snapshot.pages import NodeParts
from solver.snapshot.parts import ClassPart, NodePart, PoolPart, PoolSlice, UsePart

Violations = Iterator[str]
"""What breaks rules: `rule: subject and what it does`."""
_PoolOnNode = tuple[tuple[NodeName, PoolID], VisiblePool | None]
KINDS = ("int", "bool", "string", "version")
"""Fields of attributes, in the order in which lists count."""
EXPERIMENTAL = (
    "list_type_attributes",
    "optional_node_operations",
    "derived_attributes",
    "compatibility_groups",
    "rules_of_138",
)


class DeviceFacts(Struct, frozen=True, gc=False):
    """One device as a node sees it, and all that bears on its use."""

    device: Device
    pool_slice: PoolSlice
    reachable: bool
    taken: bool
    shares: dict[str, int] | None
    """What the shares of others consume; None: there are none."""
    taints: tuple[DeviceTaint, ...]
    shareable: bool


class Facts:
    """The nodes, pools and classes of a Problem, by name."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.features = problem.parameters.features
        self.classes: dict[DeviceClassName, ClassPart] = {}
        self._nodes: dict[NodeName, NodePart] = {}
        self._pools: dict[PoolID, PoolPart] = {}
        self._uses: dict[PoolID, UsePart] = {}
        self._local: dict[NodeName, list[PoolID]] = {}
        """Pools of one node each."""
        self._shared: list[PoolID] = []
        """Pools that several nodes may see."""
        self._visible: dict[tuple[NodeName, PoolID], VisiblePool | None] = {}
        """Pools that several nodes may see."""
        self._visible_last: _PoolOnNode | None = None
        """The pool that was read last: what is asked next is asked of it mostly."""
        self._devices: dict[NodeName, dict[DeviceID, DeviceFacts | None]] = {}
        self._verdicts: dict[
            tuple[NodeName, str, str, tuple[str, ...]], dict[str, bool | None]
        ] = {}
        """By the node, driver and name of a pool of one node, and by selectors."""
        self._verdicts_by_look: dict[object, dict[str, bool | None]] = {}
        """By the names of a pool's devices, and by all that expressions see of them."""
        self._unread: dict[str, NodeParts] = {}
        """What was not looked at yet, by the node that it belongs to."""
        for page in problem.pages:
            self._unread.update(page.nodes)
        self._read_owner("")

    def _read_owner(self, owner: str) -> None:
        """Read the parts of a node (or, for "", of the cluster), once."""
        if owner not in self._unread:
            return
        for part in self._unread.pop(owner).parts.values():
            match part.value:
                case NodePart() as node:
                    self._nodes[node.name] = node
                case UsePart() as use:
                    self._uses[PoolID(use.driver, use.pool)] = use
                case ClassPart() as device_class:
                    self.classes[device_class.name] = device_class
                case PoolPart() as pool:
                    name = PoolID(pool.driver, pool.pool)
                    self._pools[name] = pool
                    if pool.node:
                        self._local.setdefault(pool.node, []).append(name)
                    else:
                        self._shared.append(name)

    @cached_property
    def classes_configure(self) -> bool:
        """True if any class has configuration for drivers."""
        return any(each.config for each in self.classes.values())

    def has_node(self, name: NodeName) -> bool:
        """True if there is such a node."""
        self._read_owner(name)
        return name in self._nodes or name in self._local

    def is_readable(self, name: NodeName) -> bool:
        """True if every node selection that the node must read can be read."""
        if not self._selective_slices:
            return True
        node = self.find_node(name)
        return all(
            is_readable(pool_slice, node, self.features)
            for pool_slice in self._selective_slices
        )

    @cached_property
    def _selective_slices(self) -> list[PoolSlice]:
        """The slices that select nodes by labels, themselves or device by device."""
        return [
            pool_slice
            for pool in self._shared
            for pool_slice in self._pools[pool].slices
            if pool_slice.node_selector is not None
            or any(device.node_selector is not None for device in pool_slice.devices)
        ]

    def find_node(self, name: NodeName) -> NodePart:
        """Look a node up; one that only its devices name has no labels."""
        node = self._nodes.get(name)
        if node is None:
            self._read_owner(name)
            node = self._nodes.get(name) or NodePart(name=name)
        return node

    def all_nodes(self) -> Iterator[NodePart]:
        """Yield all nodes that say of themselves what they are."""
        for owner in tuple(self._unread):
            self._read_owner(owner)
        return iter(self._nodes.values())

    def find_pool(self, node: NodeName, pool: PoolID) -> VisiblePool | None:
        """Read a pool from a node; None: there is none."""
        key = (node, pool)
        last = self._visible_last
        if last is not None and last[0] == key:
            return last[1]
        if key in self._visible:
            return self._visible[key]
        self._read_owner(node)
        part = self._pools.get(pool)
        visible = None
        if part is not None:
            visible = read_pool(part, self.find_node(node), self.features)
            # A pool of a single node is read as a whole when it is needed, mostly once.
            if not part.node:
                self._visible[key] = visible
        self._visible_last = (key, visible)
        return visible

    def pools_of(self, node: NodeName) -> Iterator[tuple[PoolID, VisiblePool]]:
        """Yield all pools that a node sees."""
        self._read_owner(node)
        for name in (*self._local.get(node, ()), *self._shared):
            pool = self.find_pool(node, name)
            if pool is not None:
                yield name, pool

    def _use_of(self, pool: PoolID) -> UsePart:
        return self._uses.get(pool) or UsePart(driver=pool.driver, pool=pool.pool)

    def has_device(self, name: DeviceID) -> bool:
        """True if any node could see a device of this name."""
        return self.read_device(name) is not None

    def read_device(self, name: DeviceID) -> Device | None:
        """Read what is published of a device, held or not; None: nothing is."""
        for owner in tuple(self._unread):
            self._read_owner(owner)
        pool = self._pools.get(name.pool_id)
        devices = () if pool is None else pool.devices
        return next((each for each in devices if each.name == name.device), None)

    def find_device(self, node: NodeName, name: DeviceID) -> DeviceFacts | None:
        """Look a device up from a node; None: it cannot be allocated there."""
        devices = self._devices.get(node)
        if devices is None:
            devices = self._devices[node] = {}
        try:
            return devices[name]
        except KeyError:
            devices[name] = None  # unless its pool has it
            devices.update(self._read_devices(node, name))
            return devices[name]

    def _read_devices(
        self, node: NodeName, name: DeviceID
    ) -> dict[DeviceID, DeviceFacts]:
        """Read a device; of a pool of one node all of them: others are had as well."""
        pool_id = name.pool_id
        pool = self.find_pool(node, pool_id)
        if pool is None or not pool.usable or name.device not in pool.devices:
            return {}
        is_local = bool(self._pools[pool_id].node)
        names = pool.devices if is_local else {name.device}
        use, sharing = self._use_of(pool_id), self.features.consumable_capacity
        unreachable = pool.unreachable
        shares = {
            share.device: {each: amount.nano for each, amount in share.consumed}
            for share in use.shared
        }
        added: dict[str, list[DeviceTaint]] = {}
        for owner, taint in use.taints:
            added.setdefault(owner, []).append(taint)
        driver, of_driver, read = pool_id.driver, pool_id.pool, {}
        for device, pool_slice in map(pool.devices.__getitem__, names):
            each, taints = device.name, device.taints
            shareable = sharing and bool(device.allow_multiple_allocations)
            if each in added:
                taints = (*taints, *added[each])
            read[DeviceID(driver, of_driver, each)] = DeviceFacts(
                device,
                pool_slice,
                each not in unreachable,
                each in use.taken or (each in shares and not shareable),
                self._read_shares(device, driver, shares.get(each)),
                taints,
                shareable,
            )
        return read

    def _read_shares(
        self, device: Device, driver: str, shares: dict[str, int] | None
    ) -> dict[str, int] | None:
        if shares is None:
            return None
        return shares_by_own_name(device, shares, self.features, driver)

    def is_chosen(
        self, node: NodeName, subrequest: SubrequestPart, name: DeviceID, device: Device
    ) -> bool | None:
        """Read the verdict of all selectors on a device that a node sees."""
        key = (node, name.driver, name.pool, subrequest.selectors)
        verdicts = self._verdicts.get(key)
        if verdicts is None:
            if not self._pools[name.pool_id].node:
                return self.is_selected(subrequest, name.driver, device)
            read = self._read_verdicts(node, name, subrequest.selectors)
            verdicts = self._verdicts[key] = read
        return verdicts[name.device]

    def _read_verdicts(
        self, node: NodeName, name: DeviceID, selectors: tuple[str, ...]
    ) -> dict[str, bool | None]:
        """Read verdicts on all devices of a pool, once for equal projections."""
        self.find_device(node, name)  # and all others of its pool
        pool, driver = name.pool, name.driver
        devices = [
            facts.device
            for each, facts in self._devices[node].items()
            if facts is not None and each.pool == pool
            if each.driver == driver
        ]
        faults = find_faults(devices)
        looks = tuple(
            project_all(footprint_of(expression), name.driver, devices, faults)
            for expression in selectors
        )
        names = tuple([device.name for device in devices])
        key = (selectors, names, looks)
        verdicts = self._verdicts_by_look.get(key)
        if verdicts is None:
            each = zip(*looks, strict=True) if looks else ((),) * len(devices)
            read = (self._conclude_selection(selectors, look) for look in each)
            verdicts = dict(zip(names, read, strict=True))
            self._verdicts_by_look[key] = verdicts
        return verdicts

    def _conclude_selection(
        self, selectors: tuple[str, ...], look: Iterable[Projection]
    ) -> bool | None:
        """Combine verdicts; None: one is an error before any is false."""
        for expression, projection in zip(selectors, look, strict=True):
            verdict = self.problem.selectors.get(expression, projection)
            if verdict is None or verdict.error:
                return None
            if verdict.value is not True:
                return False
        return True

    def is_selected(
        self, subrequest: SubrequestPart, driver: str, device: Device
    ) -> bool | None:
        """Read the verdict of all selectors; None: one of them fails."""
        looks = (
            project(footprint_of(expression), driver, device)
            for expression in subrequest.selectors
        )
        return self._conclude_selection(subrequest.selectors, looks)

    def compared_values(
        self, subrequest: SubrequestPart, name: str, driver: str, device: Device
    ) -> set[tuple[str, object]]:
        """Read what a constraint compares, as (type, value); empty: nothing."""
        for attribute, expression in subrequest.derived_attributes:
            if attribute == name:
                text = f"={expression}"
                projection = project(footprint_of(text), driver, device)
                verdict = self.problem.selectors.get(text, projection)
                return self._values_of(verdict.attribute if verdict else None)
        return self.published_values(name, driver, device)

    def published_values(
        self, name: str, driver: str, device: Device
    ) -> set[tuple[str, object]]:
        """Read what a driver publishes of a device: (type, value); empty: nothing."""
        # A bare name is of the driver's own domain; a qualified one comes first.
        domain, slash, short = name.partition("/")
        published = device.attributes.get(name)
        if published is None and slash and domain == driver:
            published = device.attributes.get(short)
        return self._values_of(published)

    def _values_of(self, attribute: DeviceAttribute | None) -> set[tuple[str, object]]:
        if attribute is None:
            return set()
        several = (
            attribute.int_values,
            attribute.bool_values,
            attribute.string_values,
            attribute.version_values,
        )
        if any(several):
            if not self.features.list_type_attributes:
                return set()
            kind, values = next(
                (k, v) for k, v in zip(KINDS, several, strict=True) if v
            )
            return {(kind, self._compared(kind, value)) for value in values or ()}
        single = (
            attribute.int_value,
            attribute.bool_value,
            attribute.string_value,
            attribute.version_value,
        )
        pairs = zip(KINDS, single, strict=True)
        return {
            (kind, self._compared(kind, value))
            for kind, value in pairs
            if value is not None
        }

    def _compared(self, kind: str, value: object) -> object:
        """Return what of a value is compared: some releases ignore build metadata."""
        if kind == "version" and self.features.rules_of_138:
            return str(value).split("+")[0]
        return value

    def counters_left_of(self, node: NodeName, name: PoolID) -> CounterAmounts:
        """Compute what others leave of the counters of a pool."""
        pool = self.find_pool(node, name)
        if pool is None:
            return {}
        left = dict(pool.counters)
        in_use = self.draws_in_use(pool, name)
        if in_use is None:
            return dict.fromkeys(left, -1)
        for consumption in in_use:
            for counter_name, counter in consumption.counters.items():
                key = (consumption.counter_set, counter_name)
                left[key] = left.get(key, 0) - max(counter.value.nano, 0)
        return left

    def draws_in_use(
        self, pool: VisiblePool, name: PoolID
    ) -> list[DeviceCounterConsumption] | None:
        """List what others draw from the counters of a pool; None: unknown.

        Of a device that is not published any more an older slice may tell, else what
        was remembered.
        """
        use = self._use_of(name)
        published: dict[str, list[Device]] = {}
        for device in (*(d for d, _ in pool.devices.values()), *pool.elsewhere):
            published.setdefault(device.name, []).append(device)
        older = {
            device.name: device
            for each in self._pools[name].slices
            for device in each.devices
        }
        remembered = {each.device: each.consumes_counters for each in use.unpublished}
        draws: list[DeviceCounterConsumption] = []
        for held in {*use.taken, *(share.device for share in use.shared)}:
            if held in published:
                for device in published[held]:
                    draws += device.consumes_counters
            elif held in older:
                draws += older[held].consumes_counters
            else:
                found = remembered.get(held)
                if found is None:
                    return None
                draws += found
        return draws
