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
from contracts.validate.capacity import capacity
from contracts.validate.nodes import node_selector
from contracts.validate.taints import MAX_TAINTS, taint
from contracts.validate.violation import (
    Violations,
    duplicate,
    each,
    each_unique,
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


def device(value: Device, path: str, *, selects_nodes: bool) -> Violations:
    """Require a device that may be in a slice.

    `selects_nodes` is the slice's perDeviceNodeSelection.
    """
    yield from names.dns_label(value.name, f"{path}.name")
    yield from _attributes(value, path)
    is_shareable = value.allow_multiple_allocations is True
    for name, item in value.capacity.items():
        place = f"{path}.capacity[{name}]"
        yield from names.qualified_name(name, f"{path}.capacity")
        yield from capacity(item, is_shareable=is_shareable, path=place)
    yield from each(value.taints, MAX_TAINTS, f"{path}.taints", taint)
    yield from each_unique(
        value.consumes_counters,
        MAX_COUNTER_CONSUMPTIONS,
        f"{path}.consumesCounters",
        _consumption,
        lambda item: item.counter_set,
    )
    yield from _nodes(value, path, selects_nodes=selects_nodes)
    yield from conditions(
        value.binding_conditions or (), value.binding_failure_conditions or (), path
    )


def has_list_attributes(value: Device) -> bool:
    """Whether an attribute is a list, which halves how many devices a slice holds."""
    return any(
        field.endswith("s")
        for attribute in value.attributes.values()
        for field, _ in _set_values(attribute)
    )


def counter_set(value: CounterSet, path: str) -> Violations:
    """Require a named set of 1 to 32 counters."""
    yield from names.dns_label(value.name, f"{path}.name")
    yield from _counters(value.counters, f"{path}.counters")


def conditions(
    binding: tuple[str, ...], failure: tuple[str, ...], path: str
) -> Violations:
    """Require both kinds of binding conditions, or neither (KEP-5007)."""
    both = {"bindingConditions": binding, "bindingFailureConditions": failure}
    for field, items in both.items():
        place = f"{path}.{field}"
        yield from each_unique(items, MAX_CONDITIONS, place, names.label_key, str)
        if not items and any(both.values()):
            message = "bindingConditions and bindingFailureConditions need each other"
            yield invalid(place, "", message)
    for index, item in enumerate(failure):
        if item in binding:
            place = f"{path}.bindingFailureConditions[{index}]"
            yield invalid(place, item, "must not overlap with bindingConditions")


def _attributes(value: Device, path: str) -> Violations:
    entries = len(value.attributes) + len(value.capacity)
    if entries > MAX_ATTRIBUTES_AND_CAPACITIES:
        limit = MAX_ATTRIBUTES_AND_CAPACITIES
        message = (
            f"the total number of attributes and capacities must not exceed {limit}"
        )
        yield invalid(path, entries, message)
    values = sum(_count(attribute) for attribute in value.attributes.values())
    if values > MAX_ATTRIBUTE_VALUES:
        limit = MAX_ATTRIBUTE_VALUES
        message = f"the total number of attribute values must not exceed {limit}"
        yield invalid(path, values, message)
    for name, attribute in value.attributes.items():
        yield from names.qualified_name(name, f"{path}.attributes")
        yield from _attribute(attribute, f"{path}.attributes[{name}]")


def _set_values(
    attribute: DeviceAttribute,
) -> Iterator[tuple[str, tuple[int | bool | str, ...]]]:
    """Yield each field that is set, by its wire name, with its values."""
    scalars: dict[str, int | bool | str | None] = {
        "int": attribute.int_value,
        "bool": attribute.bool_value,
        "string": attribute.string_value,
        "version": attribute.version_value,
    }
    lists: dict[str, tuple[int | bool | str, ...] | None] = {
        "ints": attribute.int_values,
        "bools": attribute.bool_values,
        "strings": attribute.string_values,
        "versions": attribute.version_values,
    }
    for field, scalar in scalars.items():
        if scalar is not None:
            yield field, (scalar,)
    for field, items in lists.items():
        if items is not None:
            yield field, items


def _count(attribute: DeviceAttribute) -> int:
    """Count values; an attribute without a list counts once, whatever it has."""
    lists = [len(items) for field, items in _set_values(attribute) if field[-1] == "s"]
    return sum(lists) or 1


def _attribute(attribute: DeviceAttribute, path: str) -> Violations:
    fields = list(_set_values(attribute))
    for field, values in fields:
        is_list = field.endswith("s")
        if is_list and not values:
            yield invalid(f"{path}.{field}", "[]", "must not be empty if specified")
        for index, item in enumerate(values):
            place = f"{path}.{field}[{index}]" if is_list else f"{path}.{field}"
            yield from _value(field.removesuffix("s"), item, place)
    if len(fields) != 1:
        found = ", ".join(field for field, _ in fields)
        yield invalid(path, found, "exactly one value must be specified")


def _value(kind: str, value: int | bool | str, path: str) -> Violations:
    if isinstance(value, str):
        if kind == "version":
            yield from names.semantic_version(value, path)
        if len(value.encode()) > MAX_VALUE_BYTES:
            yield too_long(path, MAX_VALUE_BYTES)
    elif value not in INT64:
        yield invalid(path, value, "must fit in 64 bits")


def _counters(counters: Mapping[str, Counter], path: str) -> Violations:
    if not counters:
        yield required(path)
    elif len(counters) > MAX_COUNTERS:
        yield too_many(path, len(counters), MAX_COUNTERS)
    else:
        for name in counters:
            yield from names.dns_label(name, path)


def _consumption(value: DeviceCounterConsumption, path: str) -> Violations:
    yield from names.dns_label(value.counter_set, f"{path}.counterSet")
    yield from _counters(value.counters, f"{path}.counters")
    groups = value.compatibility_groups or ()
    for index, group in enumerate(groups):
        if group in groups[:index]:
            yield duplicate(f"{path}.compatibilityGroups[{index}]", group)


def _nodes(value: Device, path: str, *, selects_nodes: bool) -> Violations:
    fields = {
        "nodeName": value.node_name,
        "nodeSelector": value.node_selector,
        "allNodes": value.all_nodes,
    }
    given = [f"`{field}`" for field, item in fields.items() if item is not None]
    if not selects_nodes:
        if given:
            message = "only allowed if `perDeviceNodeSelection` of the slice is true"
            yield invalid(path, ", ".join(given), message)
        return
    rule = (
        "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when "
        "`perDeviceNodeSelection` is set to true in the ResourceSlice spec"
    )
    if not given:
        yield required(path, rule)
    elif len(given) > 1:
        yield invalid(path, ", ".join(given), rule)
    if value.node_name is not None:
        yield from names.dns_subdomain(value.node_name, f"{path}.nodeName")
    if value.node_selector is not None:
        yield from node_selector(value.node_selector, f"{path}.nodeSelector")
    if value.all_nodes is False:
        message = "must be either unset or set to true"
        yield invalid(f"{path}.allNodes", value.all_nodes, message)
