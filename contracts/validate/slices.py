"""ResourceSlices: which nodes they are for, and how much they may hold.

Judges one slice; whether the slices of a pool fit together is for those who hold them
all.
"""

from __future__ import annotations

from contracts.device import ResourceSlice, ResourceSliceSpec, SlicePool
from contracts.validate import names
from contracts.validate.devices import (
    check_counter_set,
    check_device,
    has_list_attributes,
)
from contracts.validate.nodes import check_evaluable, check_node_selector
from contracts.validate.violation import (
    Violations,
    check_each_unique,
    invalid,
    required,
    unsupported,
)

MAX_DEVICES = 128
MAX_DEVICES_WITH_FEATURES = 64
"""When a device has taints, consumes counters or has list attributes."""
MAX_COUNTER_SETS = 8
NODE_OPERATIONS = ("NodePrepareResources", "NodeUnprepareResources", "*")


def check_resource_slice(value: ResourceSlice) -> Violations:
    """Require a slice that the API server would store."""
    spec = value.spec
    yield from names.check_object_name(value.metadata)
    yield from names.check_driver_name(spec.driver, "spec.driver")
    yield from _check_pool(spec.pool, "spec.pool")
    yield from _check_nodes(spec)
    if spec.devices and spec.shared_counters:
        message = "only one of `sharedCounters` or `devices` is allowed"
        yield invalid("spec", "", message)
    selects_nodes = spec.per_device_node_selection is True
    yield from check_each_unique(
        spec.devices,
        count_most_devices(spec),
        "spec.devices",
        lambda device, path: check_device(device, path, selects_nodes=selects_nodes),
        lambda device: device.name,
    )
    yield from check_each_unique(
        spec.shared_counters,
        MAX_COUNTER_SETS,
        "spec.sharedCounters",
        check_counter_set,
        lambda counter_set: counter_set.name,
    )
    if spec.partition_type_attribute is not None:
        yield from _check_partition_type(spec, spec.partition_type_attribute)
    operations = spec.skip_node_operations or ()
    yield from check_skip_node_operations(operations, "spec.skipNodeOperations")


def count_most_devices(spec: ResourceSliceSpec) -> int:
    """Return how many devices a slice may have, given what they are like."""
    has_features = any(
        device.taints or device.consumes_counters or has_list_attributes(device)
        for device in spec.devices
    )
    return MAX_DEVICES_WITH_FEATURES if has_features else MAX_DEVICES


def check_skip_node_operations(operations: tuple[str, ...], path: str) -> Violations:
    """Require known operations; preparing is not skipped without unpreparing."""
    yield from check_each_unique(operations, None, path, _check_operation, str)
    prepare, unprepare, everything = NODE_OPERATIONS
    if prepare in operations and not {unprepare, everything} & set(operations):
        message = f"{prepare} cannot be skipped unless {unprepare} is also skipped"
        yield invalid(path, ", ".join(operations), message)


def _check_operation(operation: str, path: str) -> Violations:
    if operation not in NODE_OPERATIONS:
        yield unsupported(path, operation, NODE_OPERATIONS)


def check_node_selection(value: ResourceSlice) -> Violations:
    """Require that any node can be told whether it sees the slice's devices.

    Else it is an error of every node, as kube-scheduler has it, and no pod of anybody
    gets devices. The API server takes `Gt` and `Lt` of words.
    """
    spec = value.spec
    selectors = {"spec": spec.node_selector}
    if spec.per_device_node_selection:
        for number, device in enumerate(spec.devices):
            selectors[f"spec.devices[{number}]"] = device.node_selector
    for place, selector in selectors.items():
        if selector is not None:
            yield from check_evaluable(selector, f"{place}.nodeSelector")


def _check_pool(pool: SlicePool, path: str) -> Violations:
    yield from names.check_pool_name(pool.name, f"{path}.name")
    count = pool.resource_slice_count
    if count <= 0:
        yield invalid(f"{path}.resourceSliceCount", count, "must be greater than zero")
    if pool.generation < 0:
        message = "must be greater than or equal to zero"
        yield invalid(f"{path}.generation", pool.generation, message)


def _check_nodes(spec: ResourceSliceSpec) -> Violations:
    """Require exactly one way to say which nodes see the slice's devices."""
    set_fields = []
    if spec.node_name == "":
        message = "must be either unset or set to a non-empty string"
        yield invalid("spec.nodeName", "", message)
    elif spec.node_name is not None:
        set_fields.append("`nodeName`")
        yield from names.check_dns_subdomain(spec.node_name, "spec.nodeName")
    if spec.node_selector is not None:
        set_fields.append("`nodeSelector`")
        yield from check_node_selector(spec.node_selector, "spec.nodeSelector")
        terms = len(spec.node_selector.node_selector_terms)
        if terms != 1:
            place = "spec.nodeSelector.nodeSelectorTerms"
            yield invalid(place, terms, "must have exactly one node selector term")
    flags = {
        "allNodes": spec.all_nodes,
        "perDeviceNodeSelection": spec.per_device_node_selection,
    }
    for field, flag in flags.items():
        if flag is False:
            message = "must be either unset or set to true"
            yield invalid(f"spec.{field}", flag, message)
        elif flag:
            set_fields.append(f"`{field}`")
    rule = (
        "exactly one of `nodeName`, `nodeSelector`, `allNodes`, "
        "`perDeviceNodeSelection` is required"
    )
    if not set_fields:
        yield required("spec", rule)
    elif len(set_fields) > 1:
        yield invalid(
            "spec", ", ".join(set_fields), f"{rule}, but multiple fields are set"
        )


def _check_partition_type(spec: ResourceSliceSpec, name: str) -> Violations:
    """Require the attribute, as a string, of each device that consumes counters."""
    path = "spec.partitionTypeAttribute"
    consumers = [
        (index, device)
        for index, device in enumerate(spec.devices)
        if device.consumes_counters
    ]
    if not consumers:
        message = "may only be set on a slice with devices that consume counters"
        yield invalid(path, name, message)
        return
    malformed = list(names.check_fully_qualified_name(name, path))
    yield from malformed
    if malformed:
        return
    bare = name.removeprefix(f"{spec.driver}/")
    for index, device in consumers:
        place = f"spec.devices[{index}].attributes[{name}]"
        attribute = device.attributes.get(name) or device.attributes.get(bare)
        if attribute is None:
            yield required(place, f"`partitionTypeAttribute` is {name}")
        elif attribute.string_value is None:
            yield invalid(place, name, "must be a string: it is the type of partition")
