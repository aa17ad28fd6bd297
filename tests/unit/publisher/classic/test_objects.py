"""Objects of both versions of classic DRA, and what is written to them."""

from __future__ import annotations

import json

import pytest
from msgspec.structs import replace

from contracts.allocation import DeviceAllocationConfiguration
from contracts.messages import PodRef
from publisher.classic.objects import (
    V1ALPHA2,
    V1ALPHA3,
    ClassicClaim,
    kinds_of,
    read_allocation,
    read_context,
    write_allocation,
    write_deallocation,
    write_unsuitable,
)
from tests.builders.claims import allocation, result
from tests.builders.classic import CONTROLLER, context

CLAIM = ClassicClaim(
    key="ns/c", uid="u", resource_version="1", controller=CONTROLLER, is_shareable=False
)
GIVEN = allocation(result("gpu-0"), node="a")
POD = PodRef(name="pod", uid="uid-pod")


@pytest.mark.parametrize("version", [V1ALPHA2, V1ALPHA3])
def test_what_is_written_can_be_read_again(version: str) -> None:
    """After a restart the claims are all that says which devices are held."""
    body = write_allocation(version, CLAIM, GIVEN, POD)
    (user,) = body["status"]["reservedFor"]
    assert user == {"resource": "pods", "name": "pod", "uid": "uid-pod"}
    found = read_allocation(version, body)
    assert found is not None
    (device,) = found["devices"]["results"]
    assert device["device"] == "gpu-0"
    (term,) = found["nodeSelector"]["nodeSelectorTerms"]
    assert term["matchFields"][0]["values"] == ["a"]


def test_v1alpha3_names_the_controller_and_nothing_that_it_does_not_know() -> None:
    """What v1 has beyond that would be refused."""
    written = write_allocation(V1ALPHA3, CLAIM, GIVEN, None)["status"]
    assert "reservedFor" not in written
    assert written["allocation"]["controller"] == CONTROLLER
    (device,) = written["allocation"]["devices"]["results"]
    assert device.keys() == {"request", "driver", "pool", "device"}


def test_v1alpha2_hands_each_driver_its_devices() -> None:
    """The data is JSON of a claim's allocation in v1."""
    written = write_allocation(V1ALPHA2, CLAIM, GIVEN, POD)["status"]
    assert written["driverName"] == CONTROLLER
    assert written["allocation"]["shareable"] is False
    (handle,) = written["allocation"]["resourceHandles"]
    (device,) = json.loads(handle["data"])["devices"]["results"]
    assert handle["driverName"] == device["driver"]


def test_parameters_that_are_too_long_are_left_out_of_the_data() -> None:
    """A handle takes 16 KiB."""
    opaque = {"parameters": "x" * 20_000}
    config = DeviceAllocationConfiguration(source="FromClaim", opaque=opaque)
    given = replace(GIVEN, devices=replace(GIVEN.devices, config=(config,)))
    written = write_allocation(V1ALPHA2, CLAIM, given, None)["status"]
    (handle,) = written["allocation"]["resourceHandles"]
    assert "config" not in json.loads(handle["data"])["devices"]


@pytest.mark.parametrize("data", ["", "{}", "opaque to us", '{"devices": 3}'])
def test_others_handles_say_nothing(data: str) -> None:
    """Only their writer knows what they mean."""
    handle = {"driverName": "d", "data": data}
    status = {"allocation": {"resourceHandles": [handle]}}
    assert read_allocation(V1ALPHA2, {"status": status}) is None
    assert read_allocation(V1ALPHA2, {}) is None


def test_a_deallocated_claim_has_neither_driver_nor_request() -> None:
    """The API server takes all of it at once, or refuses."""
    assert write_deallocation(V1ALPHA3)["status"] == {
        "allocation": None,
        "deallocationRequested": None,
    }
    assert write_deallocation(V1ALPHA2)["status"]["driverName"] is None


def test_entries_of_others_stay_in_a_context() -> None:
    """A pod may have claims of several controllers."""
    read = read_context(context("pod", ["a"], "b", {"x": ["y"], "d": []}), "ns/pod")
    assert (read.asked, read.pod_uid) == (("a", "b"), "uid-pod")
    assert (read.unsuitable("d"), read.unsuitable("z")) == ((), None)
    entries = write_unsuitable(read, {"d": ("a",)})["status"]["resourceClaims"]
    assert entries == [
        {"name": "x", "unsuitableNodes": ["y"]},
        {"name": "d", "unsuitableNodes": ["a"]},
    ]


def test_each_version_has_its_kinds() -> None:
    """Parameters and ResourceClasses are of v1alpha2 alone."""
    assert "ResourceClass" in kinds_of(V1ALPHA2)
    assert "DeviceClass" not in kinds_of(V1ALPHA2)
    kinds = kinds_of(V1ALPHA3)
    assert kinds["PodSchedulingContext"].api_version == "resource.k8s.io/v1alpha3"
    assert kinds["Pod"].api_version == "v1"
