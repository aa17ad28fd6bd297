"""One device of a ResourceSlice: its names, attributes, counters and conditions.

Source: semantics of resource.k8s.io/v1 Device; limits in k8s.io/api/resource/v1.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from contracts.device import (
    Counter,
    CounterSet,
    Device,
    DeviceAttribute,
    DeviceCounterConsumption,
)
from contracts.validate import names
from contracts.validate.capacity import check_capacity
from contracts.validate.nodes import check_node_selector
from contracts.validate.taints import MAX_TAINTS, check_taint
from contracts.validate.violation import (
    Violations,
    check_each,
    check_each_unique,
    duplicate,
    invalid,
    required,
    too_long,
    too_many,
)

MAX_ATTRIBUTES_AND_CAPACITIES = 32
MAX_ATTRIBUTE_VALUES = 48
MAX_VALUE_BYTES = 64
MAX_COUNTERS = 32
MAX_COUNTER_CONSUMPTIONS = 2
MAX_CONDITIONS = 4
INT64 = range(-(2**63), 2**63)


def check_device(value: Device, path: str, *, selects_nodes: bool) -> Violations:
    """Require a device that may be in a slice.

    `selects_nodes` is the slice's perDeviceNodeSelection.
    """
    yield from names.check_dns_label(value.name, f"{path}.name")
    yield from _check_attributes(value, path)
    is_shareable = value.allow_multiple_allocations is True
    for name, device_capacity in value.capacity.items():
        capacity_path = f"{path}.capacity[{name}]"
        yield from names.check_qualified_name(name, f"{path}.capacity")
        yield from check_capacity(
            device_capacity, is_shareable=is_shareable, path=capacity_path
        )
    yield from check_each(value.taints, MAX_TAINTS, f"{path}.taints", check_taint)
    yield from check_each_unique(
        value.consumes_counters,
        MAX_COUNTER_CONSUMPTIONS,
        f"{path}.consumesCounters",
        _check_consumption,
        lambda consumption: consumption.counter_set,
    )
    yield from _check_nodes(value, path, selects_nodes=selects_nodes)
    yield from check_conditions(
        value.binding_conditions or (), value.binding_failure_conditions or (), path
    )


def has_list_attributes(value: Device) -> bool:
    """True if an attribute is a list, which halves how many devices fit in a slice."""
    return any(
        field.endswith("s")
        for attribute in value.attributes.values()
        for field, _ in _list_set_fields(attribute)
    )


def check_counter_set(value: CounterSet, path: str) -> Violations:
    """Require a named set of 1 to 32 counters."""
    yield from names.check_dns_label(value.name, f"{path}.name")
    yield from _check_counters(value.counters, f"{path}.counters")


def check_conditions(
    binding: tuple[str, ...], failure: tuple[str, ...], path: str
) -> Violations:
    """Require both kinds of binding conditions, or neither (KEP-5007)."""
    both = {"bindingConditions": binding, "bindingFailureConditions": failure}
    for field, conditions in both.items():
        place = f"{path}.{field}"
        yield from check_each_unique(
            conditions, MAX_CONDITIONS, place, names.check_label_key, str
        )
        if not conditions and any(both.values()):
            message = "bindingConditions and bindingFailureConditions need each other"
            yield invalid(place, "", message)
    for index, condition in enumerate(failure):
        if condition in binding:
            place = f"{path}.bindingFailureConditions[{index}]"
            yield invalid(place, condition, "must not overlap with bindingConditions")


def _check_attributes(value: Device, path: str) -> Violations:
    entries = len(value.attributes) + len(value.capacity)
    if entries > MAX_ATTRIBUTES_AND_CAPACITIES:
        limit = MAX_ATTRIBUTES_AND_CAPACITIES
        message = (
            f"the total number of attributes and capacities must not exceed {limit}"
        )
        yield invalid(path, entries, message)
    values = sum(_count_values(attribute) for attribute in value.attributes.values())
    if values > MAX_ATTRIBUTE_VALUES:
        limit = MAX_ATTRIBUTE_VALUES
        message = f"the total number of attribute values must not exceed {limit}"
        yield invalid(path, values, message)
    for name, attribute in value.attributes.items():
        yield from names.check_qualified_name(name, f"{path}.attributes")
        yield from _check_attribute(attribute, f"{path}.attributes[{name}]")


def _list_set_fields(
    attribute: DeviceAttribute,
) -> Iterator[tuple[str, tuple[int | bool | str, ...]]]:
    """Yield each field that is set, by its wire name, with its values."""
    for field, scalar in (
        ("int", attribute.int_value),
        ("bool", attribute.bool_value),
        ("string", attribute.string_value),
        ("version", attribute.version_value),
    ):
        if scalar is not None:
            yield field, (scalar,)
    for field, values in (
        ("ints", attribute.int_values),
        ("bools", attribute.bool_values),
        ("strings", attribute.string_values),
        ("versions", attribute.version_values),
    ):
        if values is not None:
            yield field, values


def _count_values(attribute: DeviceAttribute) -> int:
    """Count values; an attribute without a list counts once, whatever it has."""
    return (
        len(attribute.int_values or ())
        + len(attribute.bool_values or ())
        + len(attribute.string_values or ())
        + len(attribute.version_values or ())
    ) or 1


def _check_attribute(attribute: DeviceAttribute, path: str) -> Violations:
    fields = list(_list_set_fields(attribute))
    for field, values in fields:
        is_list = field.endswith("s")
        if is_list and not values:
            yield invalid(f"{path}.{field}", "[]", "must not be empty if specified")
        for index, value in enumerate(values):
            place = f"{path}.{field}[{index}]" if is_list else f"{path}.{field}"
            yield from _check_value(field.removesuffix("s"), value, place)
    if len(fields) != 1:
        set_fields = ", ".join(field for field, _ in fields)
        yield invalid(path, set_fields, "exactly one value must be specified")


def _check_value(kind: str, value: int | bool | str, path: str) -> Violations:
    if isinstance(value, str):
        if kind == "version":
            yield from names.check_semantic_version(value, path)
        if len(value.encode()) > MAX_VALUE_BYTES:
            yield too_long(path, MAX_VALUE_BYTES)
    elif value not in INT64:
        yield invalid(path, value, "must fit in 64 bits")


def _check_counters(counters: Mapping[str, Counter], path: str) -> Violations:
    if not counters:
        yield required(path)
    elif len(counters) > MAX_COUNTERS:
        yield too_many(path, len(counters), MAX_COUNTERS)
    else:
        for name in counters:
            yield from names.check_dns_label(name, path)


def _check_consumption(value: DeviceCounterConsumption, path: str) -> Violations:
    yield from names.check_dns_label(value.counter_set, f"{path}.counterSet")
    yield from _check_counters(value.counters, f"{path}.counters")
    groups = value.compatibility_groups or ()
    for index, group in enumerate(groups):
        if group in groups[:index]:
            yield duplicate(f"{path}.compatibilityGroups[{index}]", group)


def _check_nodes(value: Device, path: str, *, selects_nodes: bool) -> Violations:
    fields = {
        "nodeName": value.node_name,
        "nodeSelector": value.node_selector,
        "allNodes": value.all_nodes,
    }
    set_fields = [
        f"`{field}`" for field, choice in fields.items() if choice is not None
    ]
    if not selects_nodes:
        if set_fields:
            message = "only allowed if `perDeviceNodeSelection` of the slice is true"
            yield invalid(path, ", ".join(set_fields), message)
        return
    rule = (
        "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when "
        "`perDeviceNodeSelection` is set to true in the ResourceSlice spec"
    )
    if not set_fields:
        yield required(path, rule)
    elif len(set_fields) > 1:
        yield invalid(path, ", ".join(set_fields), rule)
    if value.node_name is not None:
        yield from names.check_dns_subdomain(value.node_name, f"{path}.nodeName")
    if value.node_selector is not None:
        yield from check_node_selector(value.node_selector, f"{path}.nodeSelector")
    if value.all_nodes is False:
        message = "must be either unset or set to true"
        yield invalid(f"{path}.allNodes", value.all_nodes, message)
