"""What the judge knows of a Problem: its own reading of devices, taken from the parts.

Written apart from the models on purpose: it shares no helper with candidates, kinds
or rules, so that an error there is not repeated here.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from contracts.device import Device, DeviceTaint
from contracts.ids import DeviceID, NodeName, PoolID
from solver.problem.problem import Problem
from solver.snapshot.parts import NodePart, PartValue, PoolPart, UsePart


class DeviceFacts(Struct, frozen=True):
    """One device and all that bears on its use."""

    device: Device
    node: NodeName
    pool_usable: bool
    taken: bool
    taints: tuple[DeviceTaint, ...]


class Facts:
    """The devices and nodes of a Problem, by name; a device is read when asked for."""

    def __init__(self, problem: Problem) -> None:
        self.unavailable: dict[NodeName, str] = {}
        self._pools: dict[PoolID, PoolPart] = {}
        self._uses: dict[PoolID, UsePart] = {}
        self._pools_of: dict[NodeName, list[PoolPart]] = {}
        for page in problem.pages:
            for part in page.parts.values():
                self._read(part.value)

    def _read(self, value: PartValue) -> None:
        if isinstance(value, NodePart):
            self.unavailable[value.name] = value.unavailable
        elif isinstance(value, PoolPart):
            self._pools[PoolID(value.driver, value.pool)] = value
            self._pools_of.setdefault(value.node, []).append(value)
        elif isinstance(value, UsePart):
            self._uses[PoolID(value.driver, value.pool)] = value

    def device(self, name: DeviceID) -> DeviceFacts | None:
        """Look a device up; None: nobody announced it."""
        pool = self._pools.get(name.pool_id)
        for device in pool.devices if pool is not None else ():
            if pool is not None and device.name == name.device:
                return self._facts(pool, device)
        return None

    def on_node(self, node: NodeName) -> Iterator[tuple[DeviceID, DeviceFacts]]:
        """Go through the devices of a node."""
        for pool in self._pools_of.get(node, ()):
            for device in pool.devices:
                name = DeviceID(pool.driver, pool.pool, device.name)
                yield name, self._facts(pool, device)

    def _facts(self, pool: PoolPart, device: Device) -> DeviceFacts:
        use = self._uses.get(PoolID(pool.driver, pool.pool))
        added = [t for name, t in (use.taints if use else ()) if name == device.name]
        return DeviceFacts(
            device=device,
            node=pool.node,
            pool_usable=not (pool.incomplete or pool.invalid or pool.not_modelled),
            taken=use is not None and device.name in use.taken,
            taints=(*device.taints, *added),
        )


def attribute_value(facts: DeviceFacts, driver: str, name: str) -> object:
    """Read the value that a constraint compares; None: missing."""
    known = facts.device.attributes
    domain, _, identifier = name.partition("/")
    found = known.get(name)
    if found is None and domain == driver:
        found = known.get(identifier)
    if found is None:
        return None
    for kind, value in (
        ("int", found.int_value),
        ("bool", found.bool_value),
        ("string", found.string_value),
        ("version", found.version_value),
    ):
        if value is not None:
            return (kind, value)
    return None
