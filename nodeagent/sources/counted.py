"""The source `counted`: a name and an integer as devices, and amounts in steps.

`{name: foo, count: 5}` are five devices foo-0 to foo-4. `{name: scratch, total: 800Gi,
step: 100Gi}` is one device that many claims share, each with a multiple of the step
(KEP-5075). Nobody looks whether they are there: the file is the truth. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from msgspec import Meta

from contracts.device import (
    CapacityRequestPolicy,
    CapacityRequestPolicyRange,
    Device,
    DeviceCapacity,
    ResourcePool,
)
from contracts.ids import DeviceID, DeviceName, DriverName, NodeName
from contracts.messages import MAX_NODE_DEVICES
from contracts.quantity import INTEGER_RULE, Quantity
from contracts.validate.devices import check_device
from nodeagent.cdi import ContainerEdits
from nodeagent.errors import SourceError
from nodeagent.inventory import NodeDevices
from nodeagent.sources.attributes import AttributeValue, make_attribute
from nodeagent.sources.container_edits import name_device
from nodeagent.sources.settings import SettingsPart
from nodeagent.sources.source import DeviceDescription, PartitionHooks, Readings
from nodeagent.sources.source_spec import BrokenRule, DeviceSourceSpec


class CountedDevices(SettingsPart, frozen=True, kw_only=True):
    """So many of one kind, or so much of it."""

    name: Annotated[str, Meta(min_length=1, max_length=63)]
    """Of the device; with `count`, each has its number added."""
    count: Quantity | None = None
    """So many devices, each for one claim."""
    total: Quantity | None = None
    """So much in all, of one device that claims share; with `step`."""
    step: Quantity | None = None
    """Amounts of claims and `total` are multiples of it; also the default."""
    capacity: Annotated[str, Meta(max_length=127)] = "size"
    """The name of `total` in claims."""
    attributes: dict[str, AttributeValue] = {}


class CountedSpec(DeviceSourceSpec, frozen=True, kw_only=True, tag="counted"):
    """Devices that are there because the file says so."""

    resources: Annotated[tuple[CountedDevices, ...], Meta(min_length=1, max_length=256)]

    def find_broken_rules(self) -> Iterator[BrokenRule]:
        """Require integers, and devices that the API server takes."""
        at_of: dict[str, str] = {}
        count = 0
        for index, resource in enumerate(self.resources):
            at = f"resources[{index}]"
            broken = list(_check_resource(resource, at))
            yield from broken
            if broken:
                return
            for device in make_devices(resource):
                count += 1
                if count > MAX_NODE_DEVICES:
                    yield at, f"makes more than {MAX_NODE_DEVICES} devices"
                    return
                other = at_of.setdefault(device.name, at)
                if other != at:
                    yield f"{at}.name", f"{other} has a device {device.name!r} too"
            for violation in check_device(device, at, selects_nodes=False):
                yield violation.field, f"{violation.rule}: {violation.message}"


def _check_resource(resource: CountedDevices, at: str) -> Iterator[BrokenRule]:
    amounts = {
        "count": resource.count,
        "total": resource.total,
        "step": resource.step,
    }
    given = {name for name, amount in amounts.items() if amount is not None}
    if given not in ({"count"}, {"total", "step"}):
        yield at, "must have either count, or total and step"
        return
    for name, amount in amounts.items():
        if amount is None:
            continue
        if amount.whole is None:
            yield f"{at}.{name}", f"{amount}: {INTEGER_RULE}"
        elif amount.whole < 1:
            yield f"{at}.{name}", f"{amount}: must be at least 1"
        elif name == "count" and amount.whole > MAX_NODE_DEVICES:
            yield f"{at}.{name}", f"{amount}: must be at most {MAX_NODE_DEVICES}"
    total, step = resource.total, resource.step
    if total and step and step.nano > 0:
        if total.nano % step.nano:
            yield f"{at}.total", f"{total}: must be a multiple of step ({step})"
        elif total == step:
            yield f"{at}.step", f"{step}: must be less than total: use count for one"


def make_devices(resource: CountedDevices) -> Iterator[Device]:
    """Make the devices of a resource, or its one device that is shared."""
    attributes = {
        "kind": make_attribute(resource.name),
        **{key: make_attribute(value) for key, value in resource.attributes.items()},
    }
    if resource.total is not None and resource.step is not None:
        policy = CapacityRequestPolicy(
            default=resource.step,
            valid_range=CapacityRequestPolicyRange(
                min=resource.step, max=resource.total, step=resource.step
            ),
        )
        yield Device(
            name=DeviceName(resource.name),
            attributes=attributes,
            capacity={
                resource.capacity: DeviceCapacity(
                    value=resource.total, request_policy=policy
                )
            },
            allow_multiple_allocations=True,
        )
    elif resource.count is not None:
        for index in range(resource.count.whole or 0):
            name = DeviceName(f"{resource.name}-{index}")
            yield Device(name=name, attributes=attributes)


class CountedSource:
    """Devices that are there because the file says so; they are always good."""

    def __init__(self, spec: CountedSpec, node: NodeName) -> None:
        self._node = node
        pool = ResourcePool(
            driver=spec.driver,
            name=spec.pool_of(node),
            devices=tuple(d for one in spec.resources for d in make_devices(one)),
        )
        self._devices = NodeDevices(node=node, pools=(pool,))
        self._ids = frozenset(self._devices.device_ids)
        self.drivers: tuple[DriverName, ...] = (spec.driver,)

    @property
    def nodes(self) -> tuple[NodeName, ...]:
        """The one node."""
        return (self._node,)

    async def discover(self, node: NodeName) -> NodeDevices:
        """Return what the file says.

        Raises:
            SourceError: it says so of another node.
        """
        if node != self._node:
            raise SourceError("counted", f"the node is {self._node!r}, not {node!r}")
        return self._devices

    async def read(self, now_s: float) -> Readings:  # noqa: ARG002 # nothing changes
        """Return that all is good."""
        return Readings()

    async def edits(self, device: DeviceID) -> ContainerEdits:
        """Give an environment variable that names the device.

        Raises:
            SourceError: the file has no such device.
        """
        if device not in self._ids:
            raise SourceError("counted", f"{device} is not here")
        return name_device(device)

    async def describe(self, device: DeviceID) -> DeviceDescription:  # noqa: ARG002
        """Return nothing: a name and a number are all that is known."""
        return DeviceDescription()

    def find_hooks(self, device: DeviceID) -> PartitionHooks | None:  # noqa: ARG002
        """Return None: there is nothing to set up."""
        return None
