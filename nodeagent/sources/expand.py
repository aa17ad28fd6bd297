"""Makes nodes and their devices of a fleet file, one node at a time.

Lazy on purpose: a fleet of thousands of nodes costs their names until a node is asked
for. Same file, same nodes, same uuids. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from uuid import NAMESPACE_DNS, uuid5

from msgspec import Struct

from contracts import names
from contracts.device import Device, DeviceAttribute, DeviceCapacity, ResourcePool
from contracts.ids import DeviceID, DeviceName, DriverName, NodeName, PoolName
from nodeagent.errors import SettingsError
from nodeagent.inventory import NodeDevices
from nodeagent.sources.attributes import make_attribute
from nodeagent.sources.fleet import DeviceSpec, Fleet, NodeShapeSpec
from nodeagent.sources.fleet_rules import (
    MAX_TEXT,
    check_fleet,
    is_label_value,
    is_subdomain,
)
from nodeagent.sources.template import fill

_UUIDS = uuid5(NAMESPACE_DNS, "devices.moorings.dev")


class FleetNode(Struct, frozen=True):
    """A node of a fleet: its shape, and which of them it is."""

    shape: NodeShapeSpec
    index: int
    """In its shape."""
    position: int
    """In the fleet."""


class Nodes(Struct, frozen=True):
    """The nodes of a fleet by name, and how to make each."""

    fleet: Fleet
    by_name: Mapping[NodeName, FleetNode]

    def make_devices(self, node: NodeName) -> NodeDevices:
        """Return all devices of a node."""
        fleet_node = self.by_name[node]
        pools: dict[tuple[DriverName, PoolName], list[Device]] = {}
        for spec in fleet_node.shape.devices:
            key = (DriverName(spec.driver), PoolName(fill(spec.pool, {"node": node})))
            pools.setdefault(key, []).extend(_make_devices(spec, node, key[1]))
        return NodeDevices(
            node=node,
            labels=_make_labels(self.fleet, fleet_node),
            resources=fleet_node.shape.resources,
            pools=tuple(
                ResourcePool(driver=driver, name=name, devices=tuple(devices))
                for (driver, name), devices in pools.items()
            ),
        )

    def list_device_ids(self, node: NodeName) -> tuple[DeviceID, ...]:
        """List the ids of a node's devices, without their attributes."""
        return tuple(
            DeviceID(
                DriverName(spec.driver),
                PoolName(fill(spec.pool, {"node": node})),
                _name_of_device(spec, node, index),
            )
            for spec in self.by_name[node].shape.devices
            for index in range(spec.count)
        )


def expand(fleet: Fleet, file: str, own: NodeName | None = None) -> Nodes:
    """Name all nodes of a fleet, in its order; `own` is the node of an agent.

    Raises:
        SettingsError: the fleet breaks a rule, or a name that it makes does; it names
            `{node}` where there is no `own`.
    """
    check_fleet(fleet, file)
    nodes_by_name: dict[NodeName, FleetNode] = {}
    for number, shape in enumerate(fleet.nodes):
        field = f"nodes[{number}].name"
        for index in range(shape.count):
            node = FleetNode(shape, index, len(nodes_by_name))
            values = _values_of_node(node) | ({"node": own} if own else {})
            if "{node}" in shape.name and not own:
                raise SettingsError(
                    file, field, "has {node}, and no agent's node is it"
                )
            name = NodeName(fill(shape.name, values))
            if not is_subdomain(name):
                raise SettingsError(
                    file, field, f"makes {name!r}, which is not a node name"
                )
            if name in nodes_by_name:
                raise SettingsError(file, field, f"makes {name!r} a second time")
            nodes_by_name[name] = node
    nodes = Nodes(fleet, nodes_by_name)
    _check_shapes(nodes, file)
    return nodes


def _check_shapes(nodes: Nodes, file: str) -> None:
    """Refuse what a shape makes; its nodes differ by numbers alone, so one will do."""
    for name, node in nodes.by_name.items():
        if node.index:
            continue
        at = f"nodes[{nodes.fleet.nodes.index(node.shape)}]"
        for key, value in _make_labels(nodes.fleet, node).items():
            if not is_label_value(value):
                rule = f"makes {value!r} of {key}, no value for a label"
                raise SettingsError(file, f"{at}.labels", rule)
        for rule in _find_device_violations(nodes.make_devices(name)):
            raise SettingsError(file, f"{at}.devices", rule)


def _find_device_violations(devices: NodeDevices) -> Iterator[str]:
    for pool in devices.pools:
        if not is_subdomain(pool.name):
            yield f"makes {pool.name!r}, which is not a pool name"
        for device in pool.devices:
            if "." in device.name or not is_subdomain(device.name):
                yield f"makes {device.name!r}, which is not a device name"
            for key, value in device.attributes.items():
                text = value.string_value or value.version_value or ""
                if len(text) > MAX_TEXT:
                    yield f"makes {text!r} of {key}, over {MAX_TEXT} characters"
    device_ids = devices.device_ids
    if len(set(device_ids)) != len(device_ids):
        yield "makes two devices of one driver, pool and name"


def _values_of_node(node: FleetNode) -> dict[str, str | int]:
    return {
        "shape": node.shape.shape,
        "index": node.index,
        "position": node.position,
    }


def _make_labels(fleet: Fleet, node: FleetNode) -> dict[str, str]:
    labels = {}
    for rule in fleet.topology:
        group = (
            node.position // rule.nodes if rule.nodes else node.position % rule.groups
        )
        labels[rule.label] = fill(rule.value, {"index": group})
    values = _values_of_node(node)
    for key, value in node.shape.labels.items():
        labels[key] = fill(value, values)
    return labels


def _make_devices(spec: DeviceSpec, node: NodeName, pool: PoolName) -> list[Device]:
    capacity = {
        name: DeviceCapacity(value=total) for name, total in spec.capacity.items()
    }
    return [
        Device(
            name=_name_of_device(spec, node, index),
            attributes=_make_attributes(spec, node, pool, index),
            capacity=capacity,
        )
        for index in range(spec.count)
    ]


def _name_of_device(spec: DeviceSpec, node: NodeName, index: int) -> DeviceName:
    return DeviceName(fill(spec.name, _values_of_device(spec, node, index)))


def _values_of_device(
    spec: DeviceSpec, node: NodeName, index: int
) -> dict[str, str | int]:
    return {
        "node": node,
        "index": index,
        "numa": _group_of(index, spec.numa_nodes, spec.count),
        "root": _group_of(index, spec.pcie_roots, spec.count),
        "rail": _group_of(index, spec.rails, spec.count),
    }


def _group_of(index: int, groups: int, count: int) -> int:
    return index * groups // count


def _make_attributes(
    spec: DeviceSpec, node: NodeName, pool: PoolName, index: int
) -> dict[str, DeviceAttribute]:
    values = _values_of_device(spec, node, index)
    name = _name_of_device(spec, node, index)
    attributes = {
        key: make_attribute(fill(value, values) if isinstance(value, str) else value)
        for key, value in spec.attributes.items()
    }
    uuid = uuid5(_UUIDS, f"{node}/{spec.driver}/{pool}/{name}")
    attributes[names.SIMULATED] = make_attribute(True)
    attributes["uuid"] = DeviceAttribute(string_value=f"{spec.uuid_prefix}-{uuid}")
    if spec.numa_nodes:
        attributes["resource.kubernetes.io/numaNode"] = make_attribute(
            int(values["numa"])
        )
    if spec.pcie_roots:
        root = f"pci0000:{values['root']:02x}"
        attributes["resource.kubernetes.io/pcieRoot"] = make_attribute(root)
    if spec.rails:
        attributes[names.RAIL] = make_attribute(int(values["rail"]))
    return attributes
