"""What is valid is accepted, and violations read like the API server."""

from __future__ import annotations

import pytest

from contracts.claim import DeviceRequest
from contracts.validate import Validated
from tests.builders import (
    DRIVER,
    UID,
    Version,
    allocation,
    claim,
    constraint,
    counter_set,
    device,
    device_class,
    devices,
    node_selector,
    request,
    resource_slice,
    result,
    sub_request,
    taint,
    taint_rule,
)
from tests.builders.violations import texts


def test_violations_read_like_the_api_server() -> None:
    """Field, rule and message in its words."""
    many = resource_slice(*devices(129))
    twice = resource_slice(device("a"), device("a"))
    effect = resource_slice(device(taints=(taint(effect="Never"),)))

    assert texts(many) == ["spec.devices: Too many: 129: must have at most 128 items"]
    assert texts(twice) == ['spec.devices[1]: Duplicate value: "a"']
    assert texts(effect) == [
        (
            'spec.devices[0].taints[0].effect: Unsupported value: "Never": '
            'supported values: "NoExecute", "NoSchedule", "None"'
        )
    ]
    assert texts(claim(DeviceRequest(name="gpu"))) == [
        (
            "spec.devices.requests[0]: Required value: "
            "exactly one of `exactly` or `firstAvailable` is required"
        )
    ]


@pytest.mark.parametrize(
    "value",
    [
        resource_slice(*devices(128)),
        resource_slice(*devices(64, taints=(taint(),))),
        resource_slice(all_nodes=True),
        resource_slice(node_selector=node_selector(rack="r1")),
        resource_slice(device(all_nodes=True), per_device_node_selection=True),
        resource_slice(counters=[counter_set("a"), counter_set("b")]),
        resource_slice(pool="rack-1.example.com/part/two"),
        resource_slice(device(attributes={"a.example.com/model": "x", "_b": True})),
        resource_slice(device(attributes={"v": Version("1.0.0-rc.1+build.5")})),
        resource_slice(device(attributes={"s": "x" * 64})),
        resource_slice(device(attributes={f"a{i}": i for i in range(32)})),
        claim(*(request(f"r{i}") for i in range(32))),
        claim(request(mode="All")),
        claim(request(first_available=[sub_request(f"s{i}") for i in range(8)])),
        claim(constraints=[constraint(None, "gpu")]),
        device_class(extended_resource_name="example.com/gpu"),
        taint_rule(driver=DRIVER, pool="a/b", device="gpu-0"),
        allocation(result(share_id=UID)),
    ],
)
def test_what_is_at_the_limit_is_accepted(value: Validated) -> None:
    """Each limit includes its last value."""
    assert texts(value) == []
