"""Requests, in claims and templates, exact and as alternatives."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from contracts.claim import (
    DerivedAttribute,
    DeviceSelector,
    DeviceToleration,
    ExactDeviceRequest,
)
from tests.builders import claim, claim_template, request, sub_request, toleration
from tests.builders.violations import assert_broken


@pytest.mark.parametrize(
    ("fields", "beginning"),
    [
        ({"device_class": ""}, "deviceClassName: Required value"),
        ({"device_class": "A"}, "deviceClassName: Invalid value"),
        ({"mode": ""}, "allocationMode: Unsupported value"),
        ({"mode": "Some"}, "allocationMode: Unsupported value"),
        ({"count": 0}, "count: Invalid value: 0: must be greater than zero"),
        ({"mode": "All", "count": 1}, "count: Invalid value: 1: must not be specified"),
        ({"select": ("true",) * 33}, "selectors: Too many: 33"),
        ({"select": ("",)}, "selectors[0].cel.expression: Required value"),
        ({"select": ("x" * 10_241,)}, "selectors[0].cel.expression: Too long"),
        ({"select": ("=1",)}, "selectors[0].cel.expression: Invalid value"),
        ({"selectors": (DeviceSelector(),)}, "selectors[0].cel: Required value"),
        ({"tolerations": (toleration(),) * 17}, "tolerations: Too many: 17"),
        (
            {"tolerations": (DeviceToleration(key="a"),)},
            "tolerations[0].operator: Required value",
        ),
        (
            {"tolerations": (toleration(value="x"),)},
            'tolerations[0].value: Invalid value: "x": must be empty',
        ),
        (
            {"tolerations": (toleration(effect="Soon"),)},
            "tolerations[0].effect: Unsupported value",
        ),
        (
            {"derived_attributes": (DerivedAttribute(name="a/b", expression="1"),)},
            'derivedAttributes[0].name: Invalid value: "a/b"',
        ),
    ],
)
def test_a_broken_request_is_refused_in_both_forms(
    fields: dict[str, Any], beginning: str
) -> None:
    """Exact or as an alternative, in claims and in templates."""
    given = dict(fields)
    whole = given.pop("selectors", None)
    exact, sub = request(**given), sub_request(**given)
    if whole is not None:
        assert isinstance(exact.exactly, ExactDeviceRequest)
        exact = replace(exact, exactly=replace(exact.exactly, selectors=whole))
        sub = replace(sub, selectors=whole)
    path = "spec.devices.requests[0]"

    assert_broken(claim(exact), f"{path}.exactly.{beginning}")
    assert_broken(
        claim(request(first_available=[sub])), f"{path}.firstAvailable[0].{beginning}"
    )
    assert_broken(claim_template(exact), f"spec.{path}.exactly.{beginning}")


def test_requests_are_few_and_have_names_of_their_own() -> None:
    """And are exact or a list, not both."""
    path = "spec.devices.requests"
    many = claim(*(request(f"r{i}") for i in range(33)))
    both = replace(request(), first_available=(sub_request(),))
    subs = claim(request(first_available=[sub_request("a"), sub_request("a")]))
    nine = claim(request(first_available=[sub_request(f"s{i}") for i in range(9)]))

    assert_broken(many, f"{path}: Too many: 33")
    assert_broken(claim(request(), request()), f'{path}[1]: Duplicate value: "gpu"')
    assert_broken(claim(request("GPU")), f"{path}[0].name: Invalid value")
    assert_broken(claim(both), f"{path}[0]: Invalid value")
    assert_broken(subs, f'{path}[0].firstAvailable[1]: Duplicate value: "a"')
    assert_broken(nine, f"{path}[0].firstAvailable: Too many: 9")
