"""Allocations and what else the status of a claim says."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from contracts.allocation import DeviceAllocationConfiguration, DeviceAllocationResult
from contracts.claim import ResourceClaimConsumerReference, ResourceClaimStatus
from contracts.validate import Validated
from tests.builders import DRIVER, UID, allocation, claim, result
from tests.builders.violations import assert_broken


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
