"""When a gang is whole, and what becomes of pods that come later."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from contracts.ids import ClusterName
from contracts.messages import CancelGang, PodRef, SubmitGang
from contracts.meta import OwnerReference
from contracts.names import GANG_SIZE, GANG_UID
from contracts.reports import WAITING
from contracts.workload import Pod
from publisher.gangs.context import NextSteps, PlanContext
from publisher.gangs.plan_gang import plan_gang
from publisher.gangs.records import PodGangRecord
from publisher.gangs.view import GroupKey, View
from tests import builders
from tests.builders.plans import (
    context_of,
    opened_record_of,
    record_of,
    submission_of,
    view_of,
)
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


def plan_of(*pods: Pod, asked: PodGangRecord) -> NextSteps:
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
    assert plan.messages == ()
    (told,) = (report for report in plan.reports if report.pods == (d,))
    text = "1 of 3 pods are there (3 more wait already, and none of the gang runs)"
    assert told.message == text


def test_as_many_more_as_the_gang_has_are_no_second_gang() -> None:
    """Each by itself would keep the rules of the gang, and both together not."""
    a, b, c, d, e, f = map(of_train, "abcdef")
    plan = plan_of(a, b, c, d, e, f, asked=record_of(submission_of((a, b, c))))
    assert plan.messages == ()
    (told,) = (report for report in plan.reports if report.pods == (d, e, f))
    assert told.message == "3 more wait already, and none of the gang runs"


def test_who_was_to_join_others_is_asked_for_anew_once_none_of_them_runs() -> None:
    a, b, c = map(of_train, "abc")
    alone = record_of(submission_of((a,)))
    assert plan_of(a, runs("d"), asked=alone).messages == ()
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


def test_a_pod_in_the_place_of_a_lost_one_says_what_its_gang_has_again() -> None:
    """A pod by which the gang grows does not, nor does one of two."""

    def asked(*pods: Pod) -> list[tuple[list[str], int]]:
        before = [runs(name) for name in "abc"]
        begun = opened_record_of(submission_of(before), opened=3)
        marked = [
            replace(
                pod,
                metadata=replace(
                    pod.metadata,
                    annotations=pod.metadata.annotations | {GANG_UID: begun.uid},
                ),
            )
            if pod.metadata.name in "abc"
            else pod
            for pod in pods
        ]
        plan = plan_of(*marked, asked=begun)
        return [
            ([ref.name for ref in pods_of(message)], message.restores)
            for message in plan.messages
            if isinstance(message, SubmitGang)
        ]

    a, b, c = map(runs, "abc")
    d, e = map(of_train, "de")
    assert asked(a, b, c, d) == [(["d"], 0)]
    assert asked(a, b, d) == [(["d"], 3)]
    assert asked(a, b, d, e) == [(["d", "e"], 0)]
    assert asked(a, d, e) == [(["d", "e"], 3)]


@pytest.mark.parametrize(
    ("maker", "siblings", "size", "is_told"),
    [
        ("example.com/v1 FooJob", 2, "", True),
        # One is alone anyway, and whoever says so wants it so.
        ("example.com/v1 FooJob", 1, "", False),
        ("example.com/v1 FooJob", 2, "1", False),
        ("apps/v1 ReplicaSet", 2, "", False),
        ("batch/v1 Job", 2, "", False),
        ("batch.volcano.sh/v1alpha1 Job", 2, "", False),
    ],
)
def test_pods_of_an_unknown_kind_are_told_that_they_are_alone(
    maker: str, siblings: int, size: str, is_told: bool
) -> None:
    api_version, kind = maker.split()
    owner = OwnerReference(
        api_version=api_version, kind=kind, name="foo", uid="f", controller=True
    )
    view = View()
    for number in range(siblings):
        pod = waiting_pod(f"foo-{number}")
        notes = {GANG_SIZE: size} if size else {}
        meta = replace(pod.metadata, owner_references=(owner,), annotations=notes)
        view.apply_pod(f"{NS}/foo-{number}", replace(pod, metadata=meta))
    context = context_of(view)
    steps = plan_gang(replace(context, group=GroupKey(NS, "foo-0", lone=True)))
    assert [type(message) for message in steps.messages] == [SubmitGang]
    told = [report.reason for report in steps.reports if report.reason]
    assert told == (["DecidedAlone"] if is_told else [])


def test_siblings_are_counted_while_they_are_there() -> None:
    view, pod = View(), of_job(waits("a"), "one")
    for name in ("a", "b"):
        own = of_job(waits(name), "one")
        view.apply_pod(f"{NS}/{name}", own)
    assert view.count_siblings(pod) == 2
    view.apply_pod(f"{NS}/b", None)
    assert view.count_siblings(pod) == 1
