"""What is written of each device that a pod gets."""

from __future__ import annotations

from uuid import UUID, uuid5

import pytest
from msgspec import structs

from contracts.claim import DeviceConfiguration, OpaqueDeviceConfiguration
from contracts.gang import MemberClaim
from contracts.ids import DriverName, GangUID
from contracts.messages import ClaimAllocated
from solver.allocate import allocate
from solver.results import NAMESPACE, derive_uuid
from tests.builders import (
    DEVICE_CLASS,
    DRIVER,
    claim,
    claim_spec,
    device_class,
    devices,
    gang,
    member,
    member_claim,
    pool,
    request,
    sub_request,
)
from tests.builders.problems import observe, problem_of, snapshot_of


def opaque(mode: str) -> OpaqueDeviceConfiguration:
    """Make a configuration that says its own name."""
    return OpaqueDeviceConfiguration(
        driver=DriverName(DRIVER), parameters={"mode": mode}
    )


def claims_of(*claims: MemberClaim, pods: int = 1) -> list[ClaimAllocated]:
    """Allocate pods with these claims on a node of four devices."""
    asking = gang(member(*claims, count=pods), namespace="ns")
    snapshot = snapshot_of({"n": [pool(*devices(4), name="n")]}, [asking])
    snapshot = observe(
        snapshot, "ns/there", claim(name="there", namespace="ns", uid="uid-1")
    )
    configured = device_class(
        DEVICE_CLASS, "true", config=(DeviceConfiguration(opaque=opaque("class")),)
    )
    snapshot = observe(snapshot, DEVICE_CLASS, configured)
    decision = allocate(problem_of(snapshot))
    return [made for pod in decision.gangs[0].members for made in pod.claims]


def test_a_claim_that_does_not_exist_yet_gets_a_name_and_a_uid_of_its_own() -> None:
    """Both follow from the gang, so that a second answer names the same claim."""
    first, second = claims_of(member_claim(), pods=2)
    assert (first.ref.name, second.ref.name) == (
        "train-worker-0-gpus",
        "train-worker-1-gpus",
    )
    assert UUID(first.ref.uid) != UUID(second.ref.uid)
    assert claims_of(member_claim(), pods=2)[0].ref == first.ref


def test_a_claim_that_exists_keeps_name_and_uid() -> None:
    """It is Kubernetes' object, not ours."""
    (made,) = claims_of(member_claim(claim="there"))
    assert (made.ref.name, made.ref.uid) == ("there", "uid-1")


def test_a_result_names_the_alternative_that_was_taken() -> None:
    """The driver reads from it what it has to prepare."""
    either = request(first_available=[sub_request("many", count=9), sub_request("one")])
    (made,) = claims_of(member_claim(either))
    (result,) = made.allocation.devices.results
    assert result.request == "gpu/one"


def test_configuration_of_classes_comes_before_that_of_the_claim() -> None:
    """An entry of the claim goes with the requests it names, if any of them is met."""
    config = (
        DeviceConfiguration(requests=("a",), opaque=opaque("first")),
        DeviceConfiguration(requests=("b/many",), opaque=opaque("never")),
        DeviceConfiguration(opaque=opaque("all")),
    )
    either = [sub_request("many", count=9), sub_request("one")]
    requests = (request("a"), request("b", first_available=either))
    spec = claim_spec(*requests, config=config)
    (made,) = claims_of(structs.replace(member_claim(), spec=spec))
    assert [
        (item.source, item.requests, item.opaque.parameters["mode"])
        for item in made.allocation.devices.config
    ] == [
        ("FromClass", (), "class"),
        ("FromClaim", ("a",), "first"),
        ("FromClaim", (), "all"),
    ]


@pytest.mark.parametrize(
    "uid", ["00000000-0000-4000-8000-000000000001", "no uuid", "", "Gäng"]
)
def test_names_that_nobody_gave_are_uuids_of_version_5(uid: str) -> None:
    """What the standard library derives from the same uid and text."""
    try:
        namespace = UUID(uid)
    except ValueError:
        namespace = uuid5(NAMESPACE, uid)
    for text in ("", "team/role/0/gpus", "ü" * 100, *map(str, range(64))):
        assert derive_uuid(GangUID(uid), text) == str(uuid5(namespace, text))
