"""What a claim says: for whom it is, and what it holds."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from contracts.claim import ResourceClaim, ResourceClaimStatus
from contracts.messages import PodRef
from contracts.meta import OwnerReference
from publisher.gangs.claims import (
    FailedDevice,
    devices_of,
    find_awaited_device,
    find_failed_device,
    is_prepared,
    is_reserved,
    is_same_allocation,
    list_consumers,
    list_missing,
    reserved_uids,
)
from tests import builders
from tests.builders.pods import real_claim, uid_of


def test_a_claim_without_a_status_is_reserved_for_nobody() -> None:
    """Else it is for those whom its status names."""
    fresh = replace(real_claim(), status=None)
    assert reserved_uids(fresh) == frozenset()
    assert reserved_uids(real_claim(reserved=["a", "b"])) == {uid_of("a"), uid_of("b")}


def test_a_finalizer_alone_is_not_ours() -> None:
    """kube-scheduler sets the same one; the annotation says that we did."""
    ours = real_claim()
    assert is_prepared(ours)
    theirs = replace(ours, metadata=replace(ours.metadata, annotations={}))
    assert not is_prepared(theirs)
    begun = replace(ours, metadata=replace(ours.metadata, finalizers=()))
    assert not is_prepared(begun)


def test_allocations_are_the_same_whatever_the_server_made_of_them() -> None:
    """Order and the fields of features do not count; who has which device does."""
    one, two = builders.result("gpu-0"), builders.result("gpu-1")
    both = builders.allocation(one, two)
    dropped = builders.allocation(two, replace(one, share_id="x"), node=None)
    assert is_same_allocation(both, dropped)
    assert not is_same_allocation(both, builders.allocation(one))
    other = builders.allocation(one, replace(two, request="nic"))
    assert not is_same_allocation(both, other)


def test_devices_are_listed_with_the_request_they_are_for() -> None:
    """In a fixed order, so that lists can be compared."""
    held = builders.allocation(builders.result("b"), builders.result("a"))
    names = [(request, device) for request, _, _, device in devices_of(held)]
    assert names == [("gpu", "a"), ("gpu", "b")]


GROUP = OwnerReference(
    api_version="scheduling.k8s.io/v1beta1", kind="PodGroup", name="pg", uid="uid-pg"
)


def test_a_claim_of_a_pod_group_is_reserved_for_the_group() -> None:
    """Once, however many pods use it; kube-scheduler strips other reservations."""
    pods = [PodRef(name=name, uid=uid_of(name)) for name in ("a", "b")]
    own = real_claim()
    assert [user.name for user in list_consumers(own, pods)] == ["a", "b"]
    shared = replace(own, metadata=replace(own.metadata, owner_references=(GROUP,)))
    (user,) = list_consumers(shared, pods)
    assert (user.api_group, user.resource) == ("scheduling.k8s.io", "podgroups")
    assert (user.name, user.uid) == ("pg", "uid-pg")
    assert list_missing(shared, pods) == [user]
    status = ResourceClaimStatus(reserved_for=(user,))
    held = replace(shared, status=status)
    assert list_missing(held, pods) == []
    assert reserved_uids(held) == frozenset()
    assert is_reserved(held)


BOUND: dict[str, Any] = {
    "binding_conditions": ("attached",),
    "binding_failure_conditions": ("failed",),
}


def said_of(device: str, kind: str, status: str = "True") -> dict[str, Any]:
    names = {"driver": builders.DRIVER, "pool": builders.NODE, "device": device}
    condition = {"type": kind, "status": status, "reason": "Tried", "message": "no"}
    return {**names, "conditions": [condition]}


def claim_of(*said: dict[str, Any]) -> ResourceClaim:
    results = [builders.result(name, **BOUND) for name in ("gpu-0", "gpu-1")]
    claim = real_claim(allocated=builders.allocation(*results))
    assert claim.status is not None
    return replace(claim, status=replace(claim.status, devices=said))


def failed_of(*said: dict[str, Any]) -> FailedDevice | None:
    return find_failed_device(claim_of(*said))


def test_a_device_has_failed_if_one_of_its_failure_conditions_is_true() -> None:
    failed = failed_of(said_of("gpu-0", "attached"), said_of("gpu-1", "failed"))
    assert failed is not None
    assert failed.device.device == "gpu-1"
    assert failed.message == "condition failed: Tried: no"


def test_a_device_has_not_failed_by_other_conditions() -> None:
    assert failed_of() is None
    assert failed_of(said_of("gpu-0", "Ready")) is None
    assert failed_of(said_of("gpu-0", "failed", "False")) is None
    assert failed_of({"driver": "d", "pool": "p", "device": "gpu-0"}) is None
    assert find_failed_device(None) is None
    assert find_failed_device(real_claim()) is None


def test_a_device_is_awaited_until_all_of_its_conditions_are_true() -> None:
    attached = said_of("gpu-0", "attached")
    for claim, device in (
        (claim_of(), "gpu-0"),
        (claim_of(said_of("gpu-0", "attached", "False")), "gpu-0"),
        (claim_of(attached), "gpu-1"),
    ):
        awaited = find_awaited_device(claim)
        assert awaited is not None
        assert awaited.device == device
    assert find_awaited_device(claim_of(attached, said_of("gpu-1", "attached"))) is None
    assert find_awaited_device(real_claim(allocated=builders.allocation())) is None
