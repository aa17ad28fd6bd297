"""Slices: every rule, broken one at a time."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from contracts.device import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from contracts.ids import NodeName
from contracts.validate import Validated
from contracts.validate.slices import check_node_selection
from tests.builders import DRIVER, counter_set, device, devices, resource_slice, taint
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
