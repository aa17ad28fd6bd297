"""Devices of a slice: every rule, broken one at a time."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from contracts.device import Device, DeviceAttribute
from tests.builders import Version, device, resource_slice, taint
from tests.builders.violations import assert_broken


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
