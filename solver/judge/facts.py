"""What the judge knows of a Problem: its own reading of devices, taken from the parts.

Written apart from the models on purpose: it shares no helper with candidates, kinds
or rules, so that an error there is not repeated here. Only what is used is looked at.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from msgspec import Struct

from contracts.device import Device, DeviceAttribute, DeviceTaint
from contracts.ids import DeviceClassName, DeviceID, NodeName, PoolID
from solver.judge.pools import Amounts, Seen, is_readable, see
from solver.problem.problem import Problem, SubrequestPart
from solver.selectors.footprint import footprint_of
from solver.selectors.projection import project
from solver.snapshot.pages import NodeParts
from solver.snapshot.parts import ClassPart, NodePart, PoolPart, PoolSlice, UsePart

EXPERIMENTAL = (
    "list_type_attributes",
    "optional_node_operations",
    "derived_attributes",
    "compatibility_groups",
)


class DeviceFacts(Struct, frozen=True):
    """One device as a node sees it, and all that bears on its use."""

    device: Device
    item: PoolSlice
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
        self._shared: list[PoolID] = []
        self._seen: dict[tuple[NodeName, PoolID], Seen | None] = {}
        self._devices: dict[tuple[NodeName, DeviceID], DeviceFacts | None] = {}
        self._unread: dict[str, NodeParts] = {}
        """What was not looked at yet, by the node that it belongs to."""
        for page in problem.pages:
            self._unread.update(page.nodes)
        self._read("")

    def _read(self, owner: str) -> None:
        """Take in what belongs to a node (or, for "", to the cluster), once."""
        if owner not in self._unread:
            return
        for part in self._unread.pop(owner).parts.values():
            match part.value:
                case NodePart() as node:
                    self._nodes[node.name] = node
                case ClassPart() as known:
                    self.classes[known.name] = known
                case UsePart() as use:
                    self._uses[PoolID(use.driver, use.pool)] = use
                case PoolPart() as pool:
                    name = PoolID(pool.driver, pool.pool)
                    self._pools[name] = pool
                    if pool.node:
                        self._local.setdefault(pool.node, []).append(name)
                    else:
                        self._shared.append(name)

    def knows(self, name: NodeName) -> bool:
        """Say whether there is such a node."""
        self._read(name)
        return name in self._nodes or name in self._local

    def is_readable(self, name: NodeName) -> bool:
        """Say whether every node selection that the node must read can be read."""
        node = self.node(name)
        return all(is_readable(item, node, self.features) for item in self._selective)

    @cached_property
    def _selective(self) -> list[PoolSlice]:
        """The slices that select nodes by labels, themselves or device by device."""
        return [
            item
            for pool in self._shared
            for item in self._pools[pool].slices
            if item.node_selector is not None
            or any(device.node_selector is not None for device in item.devices)
        ]

    def node(self, name: NodeName) -> NodePart:
        """Look a node up; one that only its devices name has no labels."""
        self._read(name)
        return self._nodes.get(name) or NodePart(name=name)

    def seen(self, node: NodeName, pool: PoolID) -> Seen | None:
        """Read a pool from a node; None: there is none."""
        key = (node, pool)
        if key not in self._seen:
            self._read(node)
            part = self._pools.get(pool)
            self._seen[key] = (
                None if part is None else see(part, self.node(node), self.features)
            )
        return self._seen[key]

    def pools_of(self, node: NodeName) -> Iterator[tuple[PoolID, Seen]]:
        """Go through all pools that a node sees."""
        self._read(node)
        for pool in (*self._local.get(node, ()), *self._shared):
            found = self.seen(node, pool)
            if found is not None:
                yield pool, found

    def use(self, pool: PoolID) -> UsePart:
        """Look up what is used of a pool."""
        known = self._uses.get(pool)
        return known or UsePart(driver=pool.driver, pool=pool.pool)

    def exists(self, name: DeviceID) -> bool:
        """Say whether any node could see a device of this name."""
        for owner in tuple(self._unread):
            self._read(owner)
        pool = self._pools.get(name.pool_id)
        return pool is not None and any(d.name == name.device for d in pool.devices)

    def device(self, node: NodeName, name: DeviceID) -> DeviceFacts | None:
        """Look a device up from a node; None: it cannot be allocated there."""
        key = (node, name)
        if key not in self._devices:
            self._devices[key] = self._device(node, name)
        return self._devices[key]

    def _device(self, node: NodeName, name: DeviceID) -> DeviceFacts | None:
        seen = self.seen(node, name.pool_id)
        if seen is None or not seen.usable or name.device not in seen.devices:
            return None
        device, item = seen.devices[name.device]
        use = self.use(name.pool_id)
        shares = None
        if use.shared:
            shares = next((s for s in use.shared if s.device == name.device), None)
        sharing = self.features.consumable_capacity
        taken = name.device in use.taken or (shares is not None and not sharing)
        added = [taint for owner, taint in use.taints if owner == name.device]
        return DeviceFacts(
            device=device,
            item=item,
            reachable=name.device in seen.reachable,
            taken=taken,
            shares=(
                {n: amount.nano for n, amount in shares.consumed} if shares else None
            ),
            taints=(*device.taints, *added),
            shareable=sharing and bool(device.allow_multiple_allocations),
        )

    def is_selected(
        self, asked: SubrequestPart, driver: str, device: Device
    ) -> bool | None:
        """Read the verdict of all selectors; None: one of them fails."""
        for expression in asked.selectors:
            seen = project(footprint_of(expression), driver, device)
            verdict = self.problem.selectors.get(expression, seen)
            if verdict is None or verdict.error:
                return None
            if verdict.value is not True:
                return False
        return True

    def elements(
        self, asked: SubrequestPart, name: str, driver: str, device: Device
    ) -> set[tuple[str, object]]:
        """Read what a constraint compares; empty: nothing."""
        for attribute, expression in asked.derived_attributes:
            if attribute == name:
                text = f"={expression}"
                row = project(footprint_of(text), driver, device)
                verdict = self.problem.selectors.get(text, row)
                return self._values(verdict.attribute if verdict else None)
        domain, slash, short = name.partition("/")
        found = device.attributes.get(name)
        if found is None and slash and domain == driver:
            found = device.attributes.get(short)
        return self._values(found)

    def _values(self, found: DeviceAttribute | None) -> set[tuple[str, object]]:
        if found is None:
            return set()
        several = {
            "int": found.int_values,
            "bool": found.bool_values,
            "string": found.string_values,
            "version": found.version_values,
        }
        for kind, values in several.items():
            if values:
                listed = self.features.list_type_attributes
                return {(kind, value) for value in values} if listed else set()
        single = {
            "string": found.string_value,
            "int": found.int_value,
            "bool": found.bool_value,
            "version": found.version_value,
        }
        return {(k, v) for k, v in single.items() if v is not None}

    def counters_left(self, node: NodeName, pool: PoolID) -> Amounts:
        """Compute what others leave of the counters of a pool."""
        seen = self.seen(node, pool)
        if seen is None:
            return {}
        left = dict(seen.counters)
        for device in self.in_use(seen, pool):
            for consumption in device.consumes_counters:
                for name, counter in consumption.counters.items():
                    key = (consumption.counter_set, name)
                    left[key] = left.get(key, 0) - counter.value.nano
        return left

    def in_use(self, seen: Seen, pool: PoolID) -> list[Device]:
        """List the devices of a pool that others have, for themselves or shared."""
        use = self.use(pool)
        names = {*use.taken, *(share.device for share in use.shared)}
        everything = (*(d for d, _ in seen.devices.values()), *seen.elsewhere)
        return [device for device in everything if device.name in names]
