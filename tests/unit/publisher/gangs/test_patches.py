"""Writes say only what they change."""

from __future__ import annotations

from msgspec.structs import replace

from contracts.ids import NodeName
from contracts.messages import PodRef
from contracts.names import FINALIZER, GATE, MANAGED, VOID
from contracts.workload import PodSchedulingGate
from publisher.gangs import patches
from tests import builders
from tests.builders.pods import real_claim, waiting_pod

A = PodRef(name="a", uid="uid-a")
B = PodRef(name="b", uid="uid-b")
NOW = "2026-11-20T12:00:00Z"


def test_every_patch_is_only_for_the_object_as_it_was_seen() -> None:
    """Its uid and version travel; one that changed answers with a conflict."""
    claim, pod = real_claim("c", version=7), waiting_pod("a", version=8)
    for patch, version in (
        (patches.prepare(claim), "7"),
        (patches.allocate(claim, builders.allocation(), [A], NOW), "7"),
        (patches.reserve(claim, [A]), "7"),
        (patches.clear(claim), "7"),
        (patches.withdraw(pod, "uid-gang"), "8"),
        (patches.open_gate(pod, NodeName("n"), {}), "8"),
    ):
        assert patch.body["metadata"]["resourceVersion"] == version
        assert patch.uid == patch.body["metadata"]["uid"]
        assert patch.uid == f"uid-{patch.name}"
        assert patch.key == f"{builders.NAMESPACE}/{patch.name}"


def test_a_finalizer_is_set_once_beside_those_of_others() -> None:
    """A merge patch replaces the whole list."""
    claim = real_claim()
    finalizers = ("example.com/other", FINALIZER)
    held = replace(claim, metadata=replace(claim.metadata, finalizers=finalizers))
    metadata = patches.prepare(held).body["metadata"]
    assert metadata["finalizers"] == ["example.com/other", FINALIZER]
    assert metadata["annotations"] == {MANAGED: "true"}


def test_a_reservation_keeps_those_that_are_there() -> None:
    """And names nobody twice."""
    claim = real_claim(allocated=builders.allocation(), reserved=["a"])
    status = patches.reserve(claim, [A, B]).body["status"]
    assert [user["uid"] for user in status["reservedFor"]] == ["uid-a", "uid-b"]
    assert set(status) == {"reservedFor"}


def test_what_is_given_back_goes_with_its_reservations() -> None:
    """In one write: a reservation without an allocation is refused."""
    patch = patches.clear(real_claim(allocated=builders.allocation()))
    gone = {"allocation": None, "reservedFor": None, "devices": None}
    assert (patch.subresource, patch.body["status"]) == ("status", gone)


def test_only_our_gate_is_opened() -> None:
    """Gates of others stay, and the pod is pinned in the same write."""
    gates = (PodSchedulingGate(name="example.com/quota"), PodSchedulingGate(name=GATE))
    pod = waiting_pod()
    pod = replace(pod, spec=replace(pod.spec, scheduling_gates=gates))
    patch = patches.open_gate(pod, NodeName("node-7"), {"x": "y"})
    spec = patch.body["spec"]
    assert spec["schedulingGates"] == [{"name": "example.com/quota"}]
    assert "node-7" in str(spec["affinity"])
    assert patch.body["metadata"]["annotations"] == {"x": "y"}
    assert VOID not in patch.body["metadata"]["annotations"]


def test_the_time_of_an_allocation_is_left_out_where_it_is_not_known() -> None:
    """An API server of before 1.34 refuses it, and nothing else of the write."""
    claim = real_claim("c", version=7)
    patch = patches.allocate(claim, builders.allocation(), [A], NOW)
    body = patches.without_allocation_time(patch)
    assert "allocationTimestamp" not in body["status"]["allocation"]
    body["status"]["allocation"]["allocationTimestamp"] = NOW
    assert body == patch.body
    other = patches.clear(claim)
    assert patches.without_allocation_time(other) == other.body
