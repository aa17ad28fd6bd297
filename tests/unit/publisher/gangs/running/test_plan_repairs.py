"""Pods whose gates are open are helped, or their authors told."""

from __future__ import annotations

from msgspec.structs import replace

from contracts.claim import ResourceClaim
from contracts.ids import DeviceName, DriverName, PoolID, PoolName
from contracts.meta import OwnerReference
from contracts.workload import Pod
from publisher.gangs.claim_users import ENDLESS
from publisher.gangs.context import NextSteps
from publisher.gangs.offered_devices import OfferedSlice
from publisher.gangs.patches import Purpose
from publisher.gangs.running.plan_repairs import (
    FINISHED,
    HELD_TWICE,
    REMOVED,
    plan_repairs,
    plan_sweep,
)
from publisher.gangs.view import View
from tests import builders
from tests.builders.plans import NOW, view_of
from tests.builders.pods import real_claim, waiting_pod

HELD = builders.allocation()


def runner(name: str, phase: str = "Running", claim: str = "one") -> Pod:
    return waiting_pod(
        name, shared={"gpus": claim}, opened_by="g", node=builders.NODE, phase=phase
    )


def repaired(view: View, *pods: Pod) -> NextSteps:
    return plan_repairs(pods, view)


def without_finalizer(claim: ResourceClaim) -> ResourceClaim:
    return replace(claim, metadata=replace(claim.metadata, finalizers=()))


def test_a_claim_in_use_gets_its_finalizer_back() -> None:
    pod = runner("a")
    claim = without_finalizer(real_claim("one", allocated=HELD, reserved=["a"]))
    (patch,) = repaired(view_of([pod], [claim]), pod).patches
    assert (patch.purpose, patch.name) == (Purpose.PREPARE, "one")
    free = without_finalizer(real_claim("one"))
    assert not repaired(view_of([pod], [free]), pod).patches


def test_a_device_of_two_claims_is_told() -> None:
    pod = runner("a")
    claims = [
        real_claim(name, allocated=HELD, reserved=["a"]) for name in ("one", "two")
    ]
    (report,) = repaired(view_of([pod], claims), pod).reports
    assert report.reason == HELD_TWICE
    assert report.message.endswith(f"to ResourceClaim {builders.NAMESPACE}/two")
    assert not repaired(view_of([pod], claims[:1]), pod).reports


def test_devices_that_are_offered_no_more_are_told_at_once() -> None:
    """To pods that use them; those that wait or have ended use none."""
    users = [runner("a"), runner("b"), runner("c", claim="two")]
    ended = runner("d", "Succeeded")
    claims = [
        real_claim("one", allocated=HELD),
        real_claim("two", allocated=builders.allocation(builders.result("gpu-7"))),
    ]
    pods = [*users, ended]
    view = view_of(pods, claims)
    pool = PoolID(DriverName(builders.DRIVER), PoolName(builders.NODE))
    offered = OfferedSlice(pool, 1, 1, frozenset({DeviceName("gpu-7")}))
    view.offered.apply_slice("s", offered)
    (report,) = repaired(view, *pods).reports
    assert (report.reason, report.pods) == (REMOVED, tuple(users[:2]))
    device = f"{builders.DRIVER}/{builders.NODE}/gpu-0"
    assert report.message == (
        "2 of 3 pods hold devices that no ResourceSlice offers any longer: "
        f"{device} of pod a, {device} of pod b"
    )


def test_a_pod_that_makes_the_controller_write_without_end_goes_or_is_told() -> None:
    """Its owner must have counted it: a Job does, and a person may not."""
    ended = runner("a", "Succeeded")
    view = view_of([ended, runner("b")])
    versions = [
        real_claim("one", allocated=HELD, reserved=users, version=number)
        for number in range(1, ENDLESS + 2)
        for users in (["b"] if number % 2 else ["a", "b"],)
    ]
    for claim in versions:
        view.apply_claim(f"{builders.NAMESPACE}/one", claim)
    plan = repaired(view, ended)
    assert [report.reason for report in plan.reports] == [FINISHED]
    assert not plan.removals
    job = OwnerReference(
        api_version="batch/v1", kind="Job", name="j", uid="j", controller=True
    )
    of_job = replace(ended, metadata=replace(ended.metadata, owner_references=(job,)))
    assert repaired(view, of_job).removals == (of_job,)


def test_only_what_we_allocated_for_nobody_is_freed() -> None:
    pod = runner("a", claim="used")
    claims = [
        real_claim("orphan", allocated=HELD),
        real_claim("used", allocated=HELD),
        real_claim("reserved", allocated=HELD, reserved=["other"]),
        real_claim("theirs", allocated=HELD, managed=False),
        real_claim("free"),
    ]
    freed = [patch.name for patch in plan_sweep(view_of([pod], claims))]
    assert freed == ["orphan"]


def test_an_immediate_claim_without_a_user_is_no_orphan() -> None:
    """Once it is deleted, or has no label, it is one like any other."""
    made = builders.labelled(real_claim("kept", allocated=HELD))
    assert list(plan_sweep(view_of(claims=[made]))) == []
    meta = replace(made.metadata, deletion_timestamp=NOW)
    deleted = replace(made, metadata=meta)
    assert [p.name for p in plan_sweep(view_of(claims=[deleted]))] == ["kept"]


def test_nothing_is_freed_that_pods_may_use_without_a_reservation() -> None:
    """One in its grace period, and one that never had our gate."""
    going = runner("a", claim="going")
    going = replace(going, metadata=replace(going.metadata, deletion_timestamp=NOW))
    stranger = runner("b", claim="strange")
    stranger = replace(stranger, metadata=replace(stranger.metadata, annotations={}))
    claims = [real_claim(name, allocated=HELD) for name in ("going", "strange")]
    view = view_of([going, stranger], claims)
    assert list(plan_sweep(view)) == []
    for name in "ab":
        view.apply_pod(f"{builders.NAMESPACE}/{name}", None)
    assert [patch.name for patch in plan_sweep(view)] == ["going", "strange"]
