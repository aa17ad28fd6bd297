"""What a claim says: for whom it is, and what it holds."""

from __future__ import annotations

from msgspec.structs import replace

from contracts.claim import ResourceClaimStatus
from contracts.messages import PodRef
from contracts.meta import OwnerReference
from publisher.gangs.claims import (
    devices_of,
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
