"""Slices, their devices, nodes and taints: every rule, broken one at a time."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from contracts.device import (
    CapacityRequestPolicy,
    CapacityRequestPolicyRange,
    Device,
    DeviceAttribute,
    DeviceCapacity,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
)
from contracts.ids import NodeName
from contracts.validate import Validated
from contracts.validate.slices import check_node_selection
from tests.builders import (
    DRIVER,
    Version,
    counter_set,
    device,
    devices,
    quantity,
    resource_slice,
    taint,
    taint_rule,
)
from tests.builders.violations import assert_broken


@pytest.mark.parametrize(
    ("change", "beginning"),
    [
        ({"driver": ""}, "spec.driver: Required value"),
        ({"driver": "a" * 64}, "spec.driver: Too long: may not be more than 63 bytes"),
        ({"driver": "gpu_1"}, 'spec.driver: Invalid value: "gpu_1"'),
        ({"pool": "a//b"}, 'spec.pool.name: Invalid value: ""'),
        ({"pool": "A"}, 'spec.pool.name: Invalid value: "A"'),
        ({"pool": "a/" * 126 + "abc"}, "spec.pool.name: Too long"),
        ({"generation": -1}, "spec.pool.generation: Invalid value: -1"),
        ({"slice_count": 0}, "spec.pool.resourceSliceCount: Invalid value: 0"),
        ({"name": "Slice"}, 'metadata.name: Invalid value: "Slice"'),
        ({"node": "Node_1"}, 'spec.nodeName: Invalid value: "Node_1"'),
        ({"skip_node_operations": ("Sleep",)}, "spec.skipNodeOperations[0]: Unsupp"),
        (
            {"skip_node_operations": ("NodePrepareResources",)},
            "spec.skipNodeOperations: Invalid value",
        ),
        ({"partition_type_attribute": "a/b"}, "spec.partitionTypeAttribute: Invalid"),
    ],
)
def test_a_slice_with_a_broken_field_is_refused(
    change: dict[str, Any], beginning: str
) -> None:
    """By that field."""
    fields: dict[str, Any] = {"pool": "node-1", "name": "slice-1", **change}

    assert_broken(resource_slice(**fields), beginning)


@pytest.mark.parametrize(
    ("places", "beginnings"),
    [
        ({"node_name": None}, ["spec: Required value: exactly one of"]),
        (
            {"node_name": NodeName("a"), "all_nodes": True},
            ['spec: Invalid value: "`nodeName`, `allNodes`": exactly one of'],
        ),
        (
            {"node_name": NodeName("")},
            ["spec.nodeName: Invalid value", "spec: Required value"],
        ),
        (
            {"all_nodes": False},
            ["spec.allNodes: Invalid value: false", "spec: Required value"],
        ),
        (
            {"node_selector": NodeSelector()},
            [
                "spec.nodeSelector.nodeSelectorTerms: Required value",
                "spec.nodeSelector.nodeSelectorTerms: Invalid value: 0",
            ],
        ),
    ],
)
def test_a_slice_says_its_nodes_in_exactly_one_way(
    places: dict[str, Any], beginnings: list[str]
) -> None:
    """An empty name and a false are no way."""
    assert_broken(resource_slice(**places), *beginnings)


def test_devices_say_their_nodes_exactly_if_the_slice_leaves_it_to_them() -> None:
    """And in one way, as slices do."""
    silent = resource_slice(device(), per_device_node_selection=True)
    both = device(node_name=NodeName("a"), all_nodes=True)
    twice = resource_slice(both, per_device_node_selection=True)
    unasked = resource_slice(device(all_nodes=True))

    assert_broken(silent, "spec.devices[0]: Required value")
    assert_broken(twice, "spec.devices[0]: Invalid value")
    assert_broken(unasked, 'spec.devices[0]: Invalid value: "`allNodes`"')


def test_devices_with_features_are_limited_to_64() -> None:
    """Taints, lists and counters make devices large."""
    limit = "spec.devices: Too many: 65: must have at most 64 items"

    assert_broken(resource_slice(*devices(65, taints=(taint(),))), limit)
    assert_broken(resource_slice(*devices(65, attributes={"a": [1]})), limit)
    assert_broken(resource_slice(*devices(65, consumes={"c": {"m": 1}})), limit)


def test_counter_sets_live_in_their_own_slices() -> None:
    """A slice has devices or counter sets."""
    shared = resource_slice(device(), counters=[counter_set()])
    many = resource_slice(counters=[counter_set(f"c{i}") for i in range(9)])
    twice = resource_slice(counters=[counter_set("a"), counter_set("a")])
    counters = {f"c{i}": 1 for i in range(33)}
    big = resource_slice(counters=[counter_set("a", **counters)])
    empty = resource_slice(counters=[replace(counter_set("a"), counters={})])

    assert_broken(shared, 'spec: Invalid value: "": only one of')
    assert_broken(many, "spec.sharedCounters: Too many: 9")
    assert_broken(twice, 'spec.sharedCounters[1]: Duplicate value: "a"')
    assert_broken(big, "spec.sharedCounters[0].counters: Too many: 33")
    assert_broken(empty, "spec.sharedCounters[0].counters: Required value")


def test_a_partition_type_is_a_string_of_each_device_with_counters() -> None:
    """Devices without counters need none."""

    def judged(**attributes: Any) -> Validated:
        part = device("a", consumes={"c": {"m": 1}}, attributes=attributes)
        name = f"{DRIVER}/profile"
        return resource_slice(part, device("b"), partition_type_attribute=name)

    place = f"spec.devices[0].attributes[{DRIVER}/profile]"
    assert_broken(judged(profile="1g"))
    assert_broken(judged(), f"{place}: Required value")
    assert_broken(judged(profile=1), f"{place}: Invalid value")


def selecting(key: str, operator: str, *values: str) -> NodeSelector:
    """Select nodes by a label."""
    label = NodeSelectorRequirement(key=key, operator=operator, values=values)
    term = NodeSelectorTerm(match_expressions=(label,))
    return NodeSelector(node_selector_terms=(term,))


@pytest.mark.parametrize(
    ("selector", "field"),
    [
        (selecting("", "Exists"), "key: Invalid value"),
        (selecting("a", "Is", "b"), "operator: Invalid value"),
        (selecting("a", "In"), "values: Required value"),
        (selecting("a", "Gt", "x"), "values[0]: Invalid value"),
    ],
)
def test_it_is_said_of_which_slices_no_node_can_be_told(
    selector: NodeSelector, field: str
) -> None:
    """In the slice itself or in a device, by field; also what the API server takes."""
    whole = resource_slice(node_selector=selector)
    devices = [device("first"), device("second", node_selector=selector)]
    by_device = resource_slice(*devices, per_device_node_selection=True)
    for value, place in ((whole, "spec"), (by_device, "spec.devices[1]")):
        (text,) = map(str, check_node_selection(value))
        path = f"{place}.nodeSelector.nodeSelectorTerms[0].matchExpressions[0]"
        assert text.startswith(f"{path}.{field}"), text


def test_most_slices_say_clearly_which_nodes_they_are_for() -> None:
    for value in (
        resource_slice(node="n"),
        resource_slice(all_nodes=True),
        resource_slice(node_selector=selecting("a", "Gt", "4")),
        resource_slice(node_selector=selecting("a", "In", "b", "c")),
    ):
        assert not list(check_node_selection(value))


def requirement(key: str, operator: str, *items: str) -> NodeSelectorRequirement:
    return NodeSelectorRequirement(key=key, operator=operator, values=items)


@pytest.mark.parametrize(
    ("term", "beginning"),
    [
        (
            {"match_expressions": (requirement("a", "In"),)},
            "Expressions[0].values: Req",
        ),
        (
            {"match_expressions": (requirement("a", "Exists", "b"),)},
            "Expressions[0].val",
        ),
        (
            {"match_expressions": (requirement("a", "Gt", "1", "2"),)},
            "Expressions[0].v",
        ),
        (
            {"match_expressions": (requirement("a", "Is", "b"),)},
            "Expressions[0].operat",
        ),
        ({"match_expressions": (requirement("a b", "Exists"),)}, "Expressions[0].key"),
        (
            {"match_expressions": (requirement("a", "In", "-"),)},
            "Expressions[0].values[",
        ),
        ({"match_fields": (requirement("a", "In", "b"),)}, "Fields[0].key: Invalid"),
        (
            {"match_fields": (requirement("metadata.name", "In", "a", "b"),)},
            "Fields[0].values: Required",
        ),
        (
            {"match_fields": (requirement("metadata.name", "Exists"),)},
            "Fields[0].operator: Invalid",
        ),
    ],
)
def test_a_node_selector_that_cannot_be_evaluated_is_refused(
    term: dict[str, Any], beginning: str
) -> None:
    """kube-scheduler would fail on it."""
    selector = NodeSelector(node_selector_terms=(NodeSelectorTerm(**term),))
    path = "spec.nodeSelector.nodeSelectorTerms[0].match"

    assert_broken(resource_slice(node_selector=selector), f"{path}{beginning}")


@pytest.mark.parametrize(
    ("broken", "beginning"),
    [
        (device("GPU"), '.name: Invalid value: "GPU"'),
        (device("g" * 64), ".name: Invalid value"),
        (device(""), ".name: Required value"),
        (device(attributes={"a/b/c": 1}), '.attributes: Invalid value: "a/b/c"'),
        (device(attributes={"/b": 1}), '.attributes: Invalid value: "/b"'),
        (device(attributes={"a/": 1}), '.attributes: Invalid value: "a/"'),
        (device(attributes={"a-b": 1}), '.attributes: Invalid value: "a-b"'),
        (device(attributes={"a" * 33: 1}), ".attributes: Too long: may not be more th"),
        (device(attributes={"s": "x" * 65}), ".attributes[s].string: Too long"),
        (device(attributes={"s": "é" * 33}), ".attributes[s].string: Too long"),
        (device(attributes={"v": Version("1.0")}), ".attributes[v].version: Invalid v"),
        (device(attributes={"v": Version("01.0.0")}), ".attributes[v].version: Inv"),
        (device(attributes={"v": [Version("x")]}), ".attributes[v].versions[0]: Inv"),
        (device(attributes={"i": 2**63}), ".attributes[i].int: Invalid value"),
        (device(attributes={f"a{i}": i for i in range(33)}), ": Invalid value: 33"),
        (device(attributes={"a": list(range(49))}), ": Invalid value: 49"),
        (
            device(capacity={f"c{i}": 1 for i in range(33)}),
            ": Invalid value: 33: the total number of attributes and capacities",
        ),
        (device(taints=(taint(),) * 17), ".taints: Too many: 17"),
        (device(taints=(taint(key=""),)), '.taints[0].key: Invalid value: ""'),
        (device(taints=(taint(value="a b"),)), ".taints[0].value: Invalid value"),
        (device(taints=(taint(effect=""),)), ".taints[0].effect: Required value"),
        (
            device(consumes={f"c{i}": {"m": 1} for i in range(3)}),
            ".consumesCounters: Too many: 3",
        ),
        (device(consumes={"c": {}}), ".consumesCounters[0].counters: Required value"),
        (device(consumes={"c": {"M": 1}}), ".consumesCounters[0].counters: Invalid"),
        (device(binding_conditions=("A",)), ".bindingFailureConditions: Invalid value"),
        (
            device(
                binding_conditions=tuple("abcde"), binding_failure_conditions=("F",)
            ),
            ".bindingConditions: Too many: 5",
        ),
        (
            device(binding_conditions=("A",), binding_failure_conditions=("A",)),
            '.bindingFailureConditions[0]: Invalid value: "A": must not overlap',
        ),
    ],
)
def test_a_broken_device_is_refused(broken: Device, beginning: str) -> None:
    """By the one field that breaks a rule."""
    assert_broken(resource_slice(broken), f"spec.devices[0]{beginning}")


@pytest.mark.parametrize(
    ("attribute", "beginning"),
    [
        (DeviceAttribute(), 'x]: Invalid value: "": exactly one value'),
        (DeviceAttribute(int_value=1, bool_value=True), 'x]: Invalid value: "int, boo'),
        (DeviceAttribute(int_values=()), 'x].ints: Invalid value: "[]": must not be'),
    ],
)
def test_an_attribute_has_exactly_one_value(
    attribute: DeviceAttribute, beginning: str
) -> None:
    """Of one type, and never an empty list."""
    broken = replace(device(), attributes={"x": attribute})

    assert_broken(resource_slice(broken), f"spec.devices[0].attributes[{beginning}")


def shared(policy: CapacityRequestPolicy, *, shareable: bool = True) -> Validated:
    memory = DeviceCapacity(value=quantity("10"), request_policy=policy)
    is_shareable = True if shareable else None
    return resource_slice(
        device(capacity={"m": memory}, allow_multiple_allocations=is_shareable)
    )


def values(default: str | None, *options: str) -> CapacityRequestPolicy:
    return CapacityRequestPolicy(
        default=None if default is None else quantity(default),
        valid_values=tuple(quantity(option) for option in options),
    )


def limits(default: str | None, **bounds: str) -> CapacityRequestPolicy:
    amounts = {name: quantity(amount) for name, amount in bounds.items()}
    return CapacityRequestPolicy(
        default=None if default is None else quantity(default),
        valid_range=CapacityRequestPolicyRange(**amounts),
    )


@pytest.mark.parametrize(
    ("policy", "beginning"),
    [
        (values(None, "1"), "default: Required value"),
        (values("1", "2", "1"), 'validValues[1]: Invalid value: "1": values must be s'),
        (values("1", "1", "1000m"), 'validValues[1]: Duplicate value: "1000m"'),
        (values("1", "1", "11"), 'validValues[1]: Invalid value: "11": option is larg'),
        (values("3", "1", "2"), 'validValues: Invalid value: "3": default value is no'),
        (values("1", *(["1"] * 11)), "validValues: Too many: 11"),
        (limits(None, min="1"), "default: Required value"),
        (limits("1", max="5"), "validRange.min: Required value"),
        (limits("20", min="11"), 'validRange.min: Invalid value: "11": min is larger'),
        (limits("1", min="-1"), 'validRange.min: Invalid value: "-1"'),
        (limits("1", min="2"), 'validRange.default: Invalid value: "1": default is le'),
        (limits("1", min="1", max="11"), 'validRange.max: Invalid value: "11"'),
        (limits("6", min="1", max="5"), "validRange.default: Invalid value"),
        (limits("1", min="1", step="0"), 'validRange.step: Invalid value: "0"'),
        (limits("1", min="1", step="10"), 'validRange.step: Invalid value: "10"'),
        (limits("2", min="1", step="2"), 'validRange.step: Invalid value: "2": value'),
        (
            limits("1", min="1", max="4", step="2"),
            'validRange.step: Invalid value: "4": value is not a multiple',
        ),
    ],
)
def test_a_policy_that_contradicts_itself_is_refused(
    policy: CapacityRequestPolicy, beginning: str
) -> None:
    """By the field that contradicts."""
    path = "spec.devices[0].capacity[m].requestPolicy"

    assert_broken(shared(policy), f"{path}.{beginning}")


def test_a_policy_has_one_way_and_a_shareable_device() -> None:
    """Ranges or values, and only where a device is shared."""
    fine = limits("1500m", min="500m", max="2500m", step="500m")
    both = replace(fine, valid_values=(quantity("1"),))
    path = "spec.devices[0].capacity[m].requestPolicy"

    assert_broken(shared(fine))
    assert_broken(shared(fine, shareable=False), f"{path}: Forbidden")
    assert_broken(shared(both), f"{path}: Forbidden")


def test_any_amount_is_a_capacity_or_a_counter() -> None:
    """Negative ones too: any quantity that parses is valid to the API server."""
    negative = DeviceCapacity(value=quantity("-5Gi"))
    assert_broken(resource_slice(device(capacity={"m": negative})))
    shareable = device(capacity={"m": negative}, allow_multiple_allocations=True)
    assert_broken(resource_slice(shareable))
    assert_broken(resource_slice(counters=[counter_set("c", m="-1")]))


def test_a_taint_rule_selects_by_valid_names() -> None:
    """Every part of the selector is checked, and the taint."""
    broken = taint_rule(taint(key="a b"), driver="A B", pool="", device="X")

    assert_broken(
        broken,
        "spec.deviceSelector.driver: Invalid value",
        "spec.deviceSelector.pool: Required value",
        "spec.deviceSelector.device: Invalid value",
        "spec.taint.key: Invalid value",
    )
