"""Claims and classes: every rule, broken one at a time."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from contracts.claim import DeviceConfiguration, OpaqueDeviceConfiguration
from contracts.ids import DriverName
from contracts.meta import ObjectMeta
from contracts.validate import Validated
from tests.builders import DRIVER, claim, constraint, device_class, request, sub_request
from tests.builders.violations import assert_broken


def test_constraints_name_one_attribute_and_existing_requests() -> None:
    """By one of the two ways, and each request once."""
    listed = request("list", first_available=[sub_request("a")])

    def judged(*given: Any) -> Validated:
        return claim(request(), listed, constraints=given)

    both = replace(constraint(), distinct_attribute=constraint().match_attribute)
    neither = replace(constraint(), match_attribute=None)
    path = "spec.devices.constraints"
    assert_broken(judged(constraint(None, "gpu", "list", "list/a")))
    assert_broken(judged(both), f"{path}[0]: Invalid value")
    assert_broken(judged(neither), f"{path}[0]: Required value")
    assert_broken(judged(constraint("bare")), f"{path}[0].matchAttribute: Invalid")
    for unknown in ("nic", "gpu/a", "list/b", "list/a/b"):
        broken = judged(constraint(None, unknown))
        assert_broken(broken, f'{path}[0].requests[0]: Invalid value: "{unknown}"')
    assert_broken(
        judged(constraint(None, "gpu", "gpu")), f"{path}[0].requests[1]: Duplicate"
    )
    assert_broken(judged(*[constraint()] * 33), f"{path}: Too many: 33")


@pytest.mark.parametrize(
    ("driver", "parameters", "beginning"),
    [
        ("", {}, ".driver: Required value"),
        (DRIVER, None, ".parameters: Required value"),
        (DRIVER, [], ".parameters: Invalid value"),
        (DRIVER, {"a": "x" * 10_240}, ".parameters: Too long"),
    ],
)
def test_configuration_needs_a_driver_and_an_object(
    driver: str, parameters: Any, beginning: str
) -> None:
    """In claims and in classes."""
    opaque = OpaqueDeviceConfiguration(driver=DriverName(driver), parameters=parameters)
    config = (DeviceConfiguration(opaque=opaque),)

    assert_broken(claim(config=config), f"spec.devices.config[0].opaque{beginning}")
    assert_broken(device_class(config=config), f"spec.config[0].opaque{beginning}")


@pytest.mark.parametrize(
    "name", ["gpu", "kubernetes.io/gpu", "requests.example.com/gpu", "example.com/a b"]
)
def test_a_name_that_is_no_extended_resource_is_refused(name: str) -> None:
    """Kubernetes' own names are not ours to give."""
    broken = device_class(extended_resource_name=name)

    assert_broken(broken, f'spec.extendedResourceName: Invalid value: "{name}"')


def test_objects_have_names() -> None:
    """Or a stem from which the API server makes one."""
    nameless = replace(claim(), metadata=ObjectMeta())
    generated = replace(claim(), metadata=ObjectMeta(generate_name="gpu-"))

    assert_broken(nameless, "metadata.name: Required value")
    assert_broken(generated)
