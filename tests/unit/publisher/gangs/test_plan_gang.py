"""When a gang is whole: which pods of its label count beside those that wait."""

from __future__ import annotations

from msgspec.structs import replace

from contracts.ids import ClusterName
from contracts.messages import SubmitGang
from contracts.meta import OwnerReference
from contracts.workload import Pod
from publisher.gangs.context import PlanContext
from publisher.gangs.plan_gang import plan_gang
from publisher.gangs.view import GroupKey, View
from tests import builders
from tests.builders.pods import waiting_pod

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
    assert submitted(ran("a", "Succeeded"), waits("c")) == [1]
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
