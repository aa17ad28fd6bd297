"""Gangs of which others than a Gang object say with how many pods they begin."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from contracts.gang import GangPhase
from contracts.messages import CancelGang, SubmitGang
from contracts.names import GANG_SIZE, GANG_UID, MEMBER
from contracts.reports import WAITING
from contracts.workload import Pod
from publisher.gangs.context import NextSteps
from publisher.gangs.plan_gang import plan_gang
from publisher.gangs.records import PodGangRecord
from publisher.gangs.running.growth import GROWING
from publisher.gangs.sizes import read_sizes
from tests.builders.decisions import gang_allocated, gang_pending
from tests.builders.plans import context_about, opened_record_of, record_of
from tests.builders.values import NODE
from tests.builders.workloads import (
    OWNER_UID,
    Json,
    coscheduling_pod_marks,
    job,
    jobs_pods,
    made_pod,
    owner_object,
    pod_group_of_coscheduling,
    ray_cluster_pod_marks,
    view_of_workloads,
    volcano_pod_marks,
)

Asked = list[list[tuple[str, int, int | None]]]


def tasks_pods(task: str, count: int) -> list[Pod]:
    marks = volcano_pod_marks("vj", task, uid=OWNER_UID)
    return [made_pod(f"vj-{task}-{number}", marks) for number in range(count)]


def volcano_job(minimum: int, **tasks: int) -> Json:
    made = [{"name": name, "replicas": count} for name, count in tasks.items()]
    return owner_object("VolcanoJob", "vj", {"minAvailable": minimum, "tasks": made})


def planned(pods: list[Pod], owner: Json, *records: PodGangRecord) -> NextSteps:
    context = context_about(view_of_workloads(pods, owner), pods[0])
    return plan_gang(replace(context, records=records))


def submitted(plan: NextSteps) -> list[SubmitGang]:
    return [message for message in plan.messages if isinstance(message, SubmitGang)]


def asked(plan: NextSteps) -> Asked:
    """Return the members of each gang that is asked for: name, pods, enough."""
    return [
        [(m.name, m.count, m.min_count) for m in message.gang.spec.members]
        for message in submitted(plan)
    ]


def told(plan: NextSteps, name: str) -> tuple[str, str]:
    """Return the phase and reason that a pod's author is told."""
    (found,) = (
        (report.phase, report.reason)
        for report in plan.reports
        for pod in report.pods
        if pod.metadata.name == name
    )
    return found


def running(pod: Pod, uid: str) -> Pod:
    """Return a pod that runs for a gang."""
    notes = {GANG_UID: uid, **pod.metadata.annotations}
    return replace(
        pod,
        metadata=replace(pod.metadata, annotations=notes),
        spec=replace(pod.spec, scheduling_gates=(), node_name=NODE),
        status=replace(pod.status, phase="Running"),
    )


def test_a_volcano_job_begins_with_its_minimum() -> None:
    """The other pods may grow it; of several tasks the largest gives way."""
    one_task = volcano_job(2, w=4)
    assert asked(planned(tasks_pods("w", 1), one_task)) == []
    assert asked(planned(tasks_pods("w", 4), one_task)) == [[("w", 4, 2)]]
    two_tasks, workers = volcano_job(3, ps=1, w=4), tasks_pods("w", 4)
    both = planned([*tasks_pods("ps", 1), *workers], two_tasks)
    assert asked(both) == [[("ps", 1, None), ("w", 4, 2)]]
    assert asked(planned(workers, two_tasks)) == []


def test_the_rest_of_a_volcano_job_grows_it() -> None:
    """One is enough; while the first are not decided it waits for them."""
    pods, owner = tasks_pods("w", 4), volcano_job(2, w=4)
    (first,) = submitted(planned(pods[:2], owner))
    plan = planned(pods, owner, record_of(first, gang_pending(first.uid)))
    assert asked(plan) == []
    assert told(plan, "vj-w-3") == (WAITING, "PodsMissing")
    run = [running(pod, first.uid) for pod in pods[:2]]
    plan = planned([*run, *pods[2:]], owner, opened_record_of(first, opened=2))
    assert asked(plan) == [[("w", 2, 1)]]
    assert told(plan, "vj-w-3") == (GangPhase.RUNNING, GROWING)


def test_pods_that_were_to_grow_a_job_do_not_begin_it_without_those_that_ran() -> None:
    """One was enough to grow by; a gang begins with its minimum."""
    pods, owner = tasks_pods("w", 4), volcano_job(2, w=4)
    (first,) = submitted(planned(pods[:2], owner))
    run = [running(pod, first.uid) for pod in pods[:2]]
    plan = planned([*run, *pods[2:]], owner, opened_record_of(first, opened=2))
    (more,) = submitted(plan)
    alone = planned(pods[2:], owner, record_of(more, gang_pending(more.uid)))
    assert any(isinstance(message, CancelGang) for message in alone.messages)
    (whole,) = submitted(planned(pods, owner))
    again = planned(pods, owner, record_of(whole, gang_pending(whole.uid)))
    assert again.messages == ()


def test_a_decision_for_the_minimum_is_the_gang() -> None:
    pods, owner = tasks_pods("w", 4), volcano_job(2, w=4)
    (first,) = submitted(planned(pods, owner))
    decision = replace(gang_allocated(pods=2), uid=first.uid)
    decision = replace(
        decision, members=tuple(replace(m, member="w") for m in decision.members)
    )
    plan = planned(pods, owner, record_of(first, decision))
    assert asked(plan) == []
    assert told(plan, "vj-w-3") == (GangPhase.DECIDED, GROWING)


@pytest.mark.parametrize("members", [1, 2])
def test_pods_beyond_a_pod_groups_minimum_grow_it(members: int) -> None:
    """Those of several members are shared out as tasks of Volcano are."""
    labels = coscheduling_pod_marks("team")["labels"]
    head = {MEMBER: "head"} if members == 2 else {}
    pods = [
        made_pod(f"team-{number}", {"labels": labels | (head if not number else {})})
        for number in range(5)
    ]
    group = pod_group_of_coscheduling("team", 3)
    expected = [("pod", 5, 3)] if members == 1 else [("head", 1, None), ("pod", 4, 2)]
    assert asked(planned(pods, group)) == [expected]
    assert [least for _, _, least in asked(planned(pods[:3], group))[0]][-1] is None
    assert asked(planned(pods[:2], group)) == []


def test_unequal_pods_of_a_role_are_all_needed() -> None:
    """Nothing tells which of them the minimum is about; the gang is not given up."""
    pods, owner = tasks_pods("w", 3), volcano_job(2, w=3)
    spec = replace(pods[2].spec, node_selector={"rack": "a"})
    pods[2] = replace(pods[2], spec=spec)
    plan = planned(pods, owner)
    assert asked(plan) == [[("w", 2, None), ("w-2", 1, None)]]
    (whole,) = submitted(plan)
    assert planned(pods, owner, record_of(whole, gang_pending())).messages == ()


def test_an_annotation_with_the_size_wins() -> None:
    """And a Job has no minimum."""
    pods = tasks_pods("w", 3)
    for pod in pods:
        pod.metadata.annotations[GANG_SIZE] = "3"
    view = view_of_workloads(pods, volcano_job(2, w=3))
    assert read_sizes(context_about(view, pods[0]), pods[0]) is None
    of_job = jobs_pods(0, 1)
    sizes = read_sizes(
        context_about(view_of_workloads(of_job, job(2)), of_job[0]), of_job[0]
    )
    assert sizes is not None
    assert not sizes.is_elastic


def test_a_group_that_ray_scales_up_grows_pod_by_pod() -> None:
    """With room for one of two more pods, one of them runs."""
    groups = [{"groupName": "gpu", "replicas": 3, "minReplicas": 1}]
    spec = {"workerGroupSpecs": groups, "enableInTreeAutoscaling": True}
    owner = owner_object("RayCluster", "ray", spec)
    head = made_pod("ray-head", ray_cluster_pod_marks("ray", "head"), gated=False)
    pods = [made_pod(f"ray-{n}", ray_cluster_pod_marks("ray", "gpu")) for n in range(3)]
    (first,) = submitted(planned([*pods, head], owner))
    assert [(m.count, m.min_count) for m in first.gang.spec.members] == [(3, 1)]
    (alone,) = submitted(planned([pods[0], head], owner))
    run = running(pods[0], alone.uid)
    record = opened_record_of(alone, opened=1)
    assert asked(planned([run, *pods[1:], head], owner, record)) == [[("gpu", 2, 1)]]
