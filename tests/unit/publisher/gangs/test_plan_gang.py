"""When a gang is whole, and what is put right beside all gangs."""

from __future__ import annotations

from msgspec.structs import replace

from contracts.claim import ResourceClaim
from contracts.ids import ClusterName, DeviceName, DriverName, PoolID, PoolName
from contracts.messages import CancelGang, PodRef, SubmitGang
from contracts.meta import OwnerReference
from contracts.reports import WAITING
from contracts.workload import Pod
from publisher.gangs.context import GroupPlan, PlanContext
from publisher.gangs.offered_devices import OfferedSlice
from publisher.gangs.patches import Purpose
from publisher.gangs.plan_gang import plan_gang
from publisher.gangs.plan_repairs import (
    FINISHED,
    HELD_TWICE,
    REMOVED,
    plan_repairs,
    plan_sweep,
)
from publisher.gangs.records import PodGangRecord
from publisher.gangs.reservation_flips import ENDLESS
from publisher.gangs.view import GroupKey, View
from tests import builders
from tests.builders.plans import NOW, context_of, record_of, submission_of, view_of
from tests.builders.pods import real_claim, waiting_pod

NS = builders.NAMESPACE


def of_job(pod: Pod, job: str, uid: str = "") -> Pod:
    """Give a pod its Job."""
    owner = OwnerReference(
        api_version="batch/v1",
        kind="Job",
        name=job,
        uid=uid or f"uid-{job}",
        controller=True,
    )
    return replace(pod, metadata=replace(pod.metadata, owner_references=(owner,)))


def waits(name: str) -> Pod:
    return waiting_pod(name, gang="red", size=2)


def ran(name: str, phase: str) -> Pod:
    return waiting_pod(
        name, gang="red", size=2, opened_by="uid-red", node="node-1", phase=phase
    )


def submitted(*pods: Pod) -> list[int]:
    """Say of how many pods each gang is that is asked for now."""
    view = View()
    for pod in pods:
        view.apply_pod(f"{NS}/{pod.metadata.name}", pod)
    situation = PlanContext(
        cluster=ClusterName("east"),
        group=GroupKey(NS, "red"),
        view=view,
        records=(),
        owns=lambda _: True,
        now="2026-11-20T12:00:00Z",
    )
    plan = plan_gang(situation)
    return [
        sum(member.count for member in message.gang.spec.members)
        for message in plan.messages
        if isinstance(message, SubmitGang)
    ]


def test_a_pod_that_replaces_another_is_asked_for_alone() -> None:
    """The others run on; a pod of a failed run waits for all of them."""
    again = of_job(waits("c"), "one")
    assert submitted(of_job(ran("a", "Running"), "one"), again) == [1]
    assert submitted(of_job(ran("a", "Succeeded"), "one"), again) == [1]
    assert submitted(ran("a", "Succeeded"), waits("c")) == []
    assert submitted(of_job(ran("a", "Failed"), "one"), again) == []


def test_the_next_job_of_a_cron_job_is_a_whole_gang_again() -> None:
    """Pods of the last run do not count for the next one."""
    before = [of_job(ran(name, "Succeeded"), "red-1") for name in ("a", "b")]
    first, second = (of_job(waits(name), "red-2") for name in ("c", "d"))
    assert submitted(*before, first) == []
    assert submitted(*before, first, second) == [2]


def test_pods_of_a_job_that_was_made_anew_do_not_count() -> None:
    """They are deleted, though not at once."""
    before = [of_job(ran(name, "Running"), "red", "uid-1") for name in ("a", "b")]
    first, second = (of_job(waits(name), "red", "uid-2") for name in ("c", "d"))
    assert submitted(*before, first) == []
    assert submitted(*before, first, second) == [2]


def test_what_has_succeeded_counts_while_the_gang_runs_on() -> None:
    """Also for pods of another Job: roles of one gang may have one each."""
    launcher = of_job(ran("launcher", "Succeeded"), "launcher")
    worker = of_job(ran("worker-0", "Running"), "workers")
    again = of_job(waits("worker-1"), "workers")
    three = [
        replace(
            pod,
            metadata=replace(
                pod.metadata,
                annotations=pod.metadata.annotations | {"moorings.dev/gang-size": "3"},
            ),
        )
        for pod in (launcher, worker, again)
    ]
    assert submitted(*three) == [1]


def of_train(name: str, size: int = 3) -> Pod:
    return waiting_pod(name, gang="train", size=size, templates=["gpus"])


def runs(name: str) -> Pod:
    return waiting_pod(
        name,
        gang="train",
        size=3,
        templates=["gpus"],
        opened_by="g",
        node="node-1",
        phase="Running",
    )


def plan_of(*pods: Pod, asked: PodGangRecord) -> GroupPlan:
    """Plan for the gang `train`, for some of whose pods something was submitted."""
    claims = (real_claim(f"{pod.metadata.name}-gpus") for pod in pods)
    return plan_gang(context_of(view_of(pods, claims), asked))


def test_a_pod_replaced_in_one_look_waits_for_those_that_were_submitted() -> None:
    """Their gang is cancelled in the same plan: beside it nobody is whole."""
    a, b, c, d = map(of_train, "abcd")
    plan = plan_of(a, b, d, asked=record_of(submission_of((a, b, c))))
    assert [type(message) for message in plan.messages] == [CancelGang]
    told = {p.metadata.name: r for r in plan.reports for p in r.pods if r.reason}
    assert (told["d"].phase, told["d"].reason) == (WAITING, "PodsMissing")
    assert told["d"].message.startswith("1 of 3 pods are there")


def test_a_pod_more_waits_until_the_gang_runs_that_waits() -> None:
    """Else it might run, and the gang that was there before it not."""
    a, b, c, d = map(of_train, "abcd")
    plan = plan_of(a, b, c, d, asked=record_of(submission_of((a, b, c))))
    assert plan.messages == []
    (told,) = (report for report in plan.reports if report.pods == (d,))
    text = "1 of 3 pods are there (3 more wait already, and none of the gang runs)"
    assert told.message == text


def test_as_many_more_as_the_gang_has_are_no_second_gang() -> None:
    """Each by itself would keep the rules of the gang, and both together not."""
    a, b, c, d, e, f = map(of_train, "abcdef")
    plan = plan_of(a, b, c, d, e, f, asked=record_of(submission_of((a, b, c))))
    assert plan.messages == []
    (told,) = (report for report in plan.reports if report.pods == (d, e, f))
    assert told.message == "3 more wait already, and none of the gang runs"


def test_who_was_to_join_others_is_asked_for_anew_once_none_of_them_runs() -> None:
    a, b, c = map(of_train, "abc")
    alone = record_of(submission_of((a,)))
    assert plan_of(a, runs("d"), asked=alone).messages == []
    plan = plan_of(a, b, c, asked=alone)
    assert [type(message) for message in plan.messages] == [CancelGang]


def test_who_was_to_join_others_stays_while_one_of_them_runs() -> None:
    """A second one beside it is decided by itself."""
    a, b = map(of_train, "ab")
    plan = plan_of(a, b, runs("d"), runs("e"), asked=record_of(submission_of((a,))))
    (message,) = plan.messages
    assert isinstance(message, SubmitGang)
    assert [ref.name for ref in pods_of(message)] == ["b"]


def pods_of(message: SubmitGang) -> list[PodRef]:
    places = (place for places in message.places.values() for place in places)
    return [ref for place in places for ref in place.pods]


HELD = builders.allocation()


def runner(name: str, phase: str = "Running", claim: str = "one") -> Pod:
    return waiting_pod(
        name, shared={"gpus": claim}, opened_by="g", node=builders.NODE, phase=phase
    )


def repaired(view: View, *pods: Pod) -> GroupPlan:
    plan = GroupPlan()
    plan_repairs(pods, view, plan)
    return plan


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
    assert repaired(view, of_job).removals == [of_job]


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
