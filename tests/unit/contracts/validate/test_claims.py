"""Claims, requests, classes and allocations: every rule, broken one at a time."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from contracts.allocation import DeviceAllocationConfiguration, DeviceAllocationResult
from contracts.claim import (
    DerivedAttribute,
    DeviceConfiguration,
    DeviceSelector,
    DeviceToleration,
    ExactDeviceRequest,
    OpaqueDeviceConfiguration,
    ResourceClaimConsumerReference,
    ResourceClaimStatus,
)
from contracts.ids import DriverName
from contracts.meta import ObjectMeta
from contracts.validate import Validated
from tests.builders import (
    DRIVER,
    UID,
    allocation,
    claim,
    claim_template,
    constraint,
    device_class,
    request,
    result,
    sub_request,
    toleration,
)
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


def test_an_allocation_is_whole() -> None:
    """Every result names request, driver, pool and device."""
    broken = result("X", request="", driver="", pool="", share_id=UID.upper())
    config = DeviceAllocationConfiguration(source="Nowhere")
    whole = DeviceAllocationResult(results=(broken,), config=(config,))
    path = "allocation.devices"

    assert_broken(
        replace(allocation(), devices=whole),
        f"{path}.results[0].request: Required value",
        f"{path}.results[0].driver: Required value",
        f"{path}.results[0].pool: Required value",
        f"{path}.results[0].device: Invalid value",
        f"{path}.results[0].shareID: Invalid value",
        f'{path}.config[0].source: Unsupported value: "Nowhere"',
        f"{path}.config[0].opaque: Required value",
    )
    assert_broken(allocation(*[result()] * 33), f"{path}.results: Too many: 33")


def test_an_allocation_answers_the_requests_of_its_claim() -> None:
    """A request that the claim lacks is refused."""
    path = "status.allocation.devices.results[0].request"

    assert_broken(claim(allocated=allocation()))
    assert_broken(claim(allocated=allocation(result(request="nic"))), path)


def test_reservations_need_an_allocation_and_whole_references() -> None:
    """And there are 256 of them at most."""
    pod = ResourceClaimConsumerReference(resource="pods", name="p", uid=UID)

    def judged(*consumers: ResourceClaimConsumerReference, **fields: Any) -> Validated:
        status = ResourceClaimStatus(reserved_for=consumers, **fields)
        return replace(claim(), status=status)

    many = [replace(pod, uid=str(index)) for index in range(257)]
    path = "status.reservedFor"
    assert_broken(judged(pod, allocation=allocation()))
    assert_broken(judged(pod), f"{path}: Forbidden")
    assert_broken(judged(pod, pod, allocation=allocation()), f"{path}[1]: Duplicate")
    assert_broken(judged(*many, allocation=allocation()), f"{path}: Too many: 257")
    nobody = ResourceClaimConsumerReference(resource="pods")
    assert_broken(
        judged(nobody, allocation=allocation()),
        f"{path}[0].name: Required value",
        f"{path}[0].uid: Required value",
    )


@pytest.mark.parametrize(
    ("fields", "beginnings"),
    [
        ({}, []),
        ({"device": "gpu-9"}, [": Invalid value"]),
        ({"conditions": [{}] * 9}, [".conditions: Too many: 9"]),
        ({"data": {"a": "x" * 10_240}}, [".data: Too long"]),
        ({"networkData": {"ips": ["::1/128"] * 17}}, [".networkData.ips: Too many"]),
        (
            {"networkData": {"interfaceName": "e" * 257}},
            [".networkData.interfaceName: Too long"],
        ),
    ],
)
def test_drivers_report_only_allocated_devices_within_limits(
    fields: dict[str, Any], beginnings: list[str]
) -> None:
    """Each report has its own limits."""
    reported = {"driver": DRIVER, "pool": "node-1", "device": "gpu-0", **fields}
    status = ResourceClaimStatus(allocation=allocation(), devices=(reported,))

    assert_broken(
        replace(claim(), status=status),
        *(f"status.devices[0]{beginning}" for beginning in beginnings),
    )
