"""A gang that lost a part to others says so until it is whole, or at its end."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from contracts.gang import Gang
from contracts.ids import GangUID
from contracts.messages import CancelGang, Place, PodRef, SubmitGang
from contracts.names import GANG_UID
from contracts.pods.gang_owners import GangOwner, OwnerRole, ScaledNumber
from contracts.pods.membership import OwnerKey
from contracts.workload import Pod
from publisher.gangs.context import PlanContext, StatusReport, SubmittedGang
from publisher.gangs.plan_gang import plan_gang
from publisher.gangs.records import PodGangRecord
from publisher.gangs.running.broken_gangs import describe_end, find_broken
from publisher.gangs.view import View
from tests import builders
from tests.builders.decisions import gang_allocated
from tests.builders.plans import (
    context_about,
    context_of,
    gang_of,
    opened_record_of,
    record_of,
    submission_of,
    view_of,
)
from tests.builders.pods import disrupted, waiting_pod
from tests.builders.values import NAMESPACE
from tests.builders.workloads import (
    job_set_pod_marks,
    job_set_spec,
    made_pod,
    owner_object,
    replicated_job,
    view_of_workloads,
)

NAMES = ("a", "b", "c", "d")


def runner(name: str, gang_uid: str = builders.UID, **fields: Any) -> Pod:
    return waiting_pod(
        name,
        gang="train",
        templates=["gpus"],
        opened_by=gang_uid,
        owner="job",
        phase="Running",
        **fields,
    )


PODS = tuple(runner(name) for name in NAMES)
RECORD = opened_record_of(submission_of(PODS), opened=4)


def end(view: View, *pods: Pod) -> None:
    """Let pods be seen for the last time, and be gone."""
    for pod in pods:
        key = f"{NAMESPACE}/{pod.metadata.name}"
        view.apply_pod(key, pod)
        view.apply_pod(key, None)


def preempted(pod: Pod, **why: str) -> Pod:
    return disrupted(pod, **why)


def finished(pod: Pod, phase: str = "Succeeded") -> Pod:
    meta = replace(pod.metadata, resource_version="2")
    return replace(pod, metadata=meta, status=replace(pod.status, phase=phase))


def deleted(pod: Pod) -> Pod:
    gone = {"deletion_timestamp": "2026-11-20T12:00:00Z", "resource_version": "2"}
    return replace(pod, metadata=replace(pod.metadata, **gone))


def look(view: View, *records: PodGangRecord) -> StatusReport | None:
    """What is said of the first of these gangs."""
    context = context_of(view, *(records or (RECORD,)))
    first = (records or (RECORD,))[0]
    own = [pod for pod in context.running if pod.metadata.uid in first.pods]
    return found(context, gang_of(first, *own))


def found(context: PlanContext, submitted: SubmittedGang) -> StatusReport | None:
    broken = find_broken(context, submitted)
    return None if broken is None else broken.report


def words(report: StatusReport | None) -> str:
    return "" if report is None else f"{report.reason}: {report.message}"


def replacement(name: str, restores: int = 4) -> tuple[Pod, PodGangRecord]:
    """Let a pod run in the place of another, and its submission say so."""
    uid = f"again-{name}"
    pod = runner(name, uid, uid=f"uid-{uid}")
    message = replace(submission_of((pod,)), uid=GangUID(uid), restores=restores)
    return pod, opened_record_of(message, opened=1)


def job_of(count: int) -> GangOwner:
    return GangOwner(
        key=OwnerKey("Job", NAMESPACE, "job"),
        uid="job",
        roles=(OwnerRole(count=count),),
        scale=ScaledNumber(field="parallelism", count=4),
        counts_succeeded=False,
    )


def test_a_preempted_pod_breaks_its_gang_from_when_it_is_being_deleted() -> None:
    view = view_of(PODS)
    assert look(view) is None
    view.apply_pod(f"{NAMESPACE}/c", preempted(PODS[2]))
    during = look(view)
    assert words(during) == (
        "GangBroken: 3 of 4 pods run: c was preempted by kube-scheduler (no room)"
    )
    assert during is not None
    assert (during.phase, during.decision) == ("Running", RECORD.in_force)
    assert [pod.metadata.name for pod in during.pods] == ["a", "b", "d"]
    view.apply_pod(f"{NAMESPACE}/c", None)
    assert words(look(view)) == words(during)


def test_all_ends_are_told_by_their_reasons() -> None:
    view = view_of(PODS)
    end(view, preempted(PODS[0]), preempted(PODS[1]))
    end(view, preempted(PODS[2], reason="EvictionByEvictionAPI", message=""))
    assert words(look(view)) == (
        "GangBroken: 1 of 4 pods run: a, b were preempted by kube-scheduler (no "
        "room); c was evicted (EvictionByEvictionAPI)"
    )


def test_pods_whose_end_nobody_saw_are_missing_as_well() -> None:
    view = view_of((PODS[0], PODS[1]))
    end(view, preempted(PODS[1]))
    assert words(look(view)).startswith("GangBroken: 1 of 4 pods run: b was preempted")


def test_a_reason_that_is_not_known_yet_is_told_all_the_same() -> None:
    view = view_of(PODS)
    end(view, preempted(PODS[0], reason="New", message=""))
    assert words(look(view)).endswith("a was disrupted (New)")


def test_it_is_whole_again_with_others_in_their_place() -> None:
    view = view_of(PODS)
    end(view, preempted(PODS[2]))
    pod, record = replacement("c")
    view.apply_pod(f"{NAMESPACE}/c", pod)
    assert look(view, RECORD, record) is None
    # The one in its place is preempted as well: it is told, by both submissions.
    end(view, preempted(pod, message="again"))
    assert words(look(view, RECORD, record)).endswith("(again)")
    # Of the first nobody is left: the submission of the last says how many there were.
    others = [replacement(name) for name in NAMES]
    view = view_of([other for other, _ in others])
    end(view, preempted(others[0][0]))
    records = [record for _, record in others]
    assert words(look(view, *records[1:])).startswith("GangBroken: 3 of 4")


def test_a_gang_that_comes_to_its_end_is_not_broken() -> None:
    """One of the missing finished by itself."""
    for phase in ("Succeeded", "Failed"):
        view = view_of(PODS)
        end(view, preempted(PODS[0]), finished(PODS[1], phase))
        assert look(view) is None


def test_pods_that_a_person_deleted_break_nothing() -> None:
    view = view_of(PODS)
    end(view, deleted(PODS[0]))
    assert look(view) is None
    # Nor do they once another was preempted and replaced before.
    view = view_of(PODS)
    end(view, preempted(PODS[0]))
    pod, record = replacement("a")
    view.apply_pod(f"{NAMESPACE}/a", pod)
    end(view, deleted(PODS[1]))
    assert look(view, RECORD, record) is None


def test_a_job_says_how_many_it_still_wants() -> None:
    """Pods that have succeeded are not missing, so the one that was preempted is."""
    view = view_of(PODS)
    view.apply_owner(job_of(3).key, job_of(3))
    end(view, preempted(PODS[0]), finished(PODS[1]))
    assert words(look(view)).startswith("GangBroken: 2 of 3 pods run: a was preempted")
    view.apply_owner(job_of(2).key, job_of(2))
    assert look(view) is None


def test_a_maker_of_some_of_the_pods_says_nothing_of_all() -> None:
    other = runner("launcher")
    owner = replace(other.metadata.owner_references[0], name="other", uid="other")
    other = replace(other, metadata=replace(other.metadata, owner_references=(owner,)))
    pods = (*PODS, other)
    view = view_of(pods)
    view.apply_owner(job_of(4).key, job_of(4))
    record = opened_record_of(submission_of(pods), opened=5)
    end(view, preempted(other))
    assert words(look(view, record)).startswith("GangBroken: 4 of 5 pods run: launcher")


def of_job_set(job: str, index: int, gang_uid: str) -> Pod:
    """Let a pod of a JobSet run."""
    marks = job_set_pod_marks("s", job, 0, index)
    marks["annotations"] |= {GANG_UID: gang_uid}
    return made_pod(f"{job}-{index}", marks, gated=False, phase="Running")


def test_a_role_that_was_decided_later_is_missed_as_well() -> None:
    """Its own gang is over then, as none of it runs."""
    workers = [of_job_set("worker", index, builders.UID) for index in range(2)]
    launcher = of_job_set("launcher", 0, "later")
    jobs = (replicated_job("worker", pods=2), replicated_job("launcher"))
    owner = owner_object("JobSet", "s", job_set_spec(*jobs, order="InOrder"))
    view = view_of_workloads((*workers, launcher), owner)
    places = {
        "worker": tuple(
            Place(pods=(PodRef(name=pod.metadata.name, uid=pod.metadata.uid),))
            for pod in workers
        )
    }
    message = replace(submission_of(count=2), places=places)
    record = opened_record_of(message, opened=2)

    def told() -> str:
        about = replace(context_about(view, workers[0]), records=(record,))
        return words(found(about, gang_of(record, *workers)))

    end(view, preempted(launcher))
    assert told() == (
        "GangBroken: 2 of 3 pods run: launcher-0 was preempted by kube-scheduler (no "
        "room)"
    )
    again = of_job_set("launcher", 0, "again")
    again = replace(again, metadata=replace(again.metadata, uid="uid-again"))
    view.apply_pod(f"{NAMESPACE}/launcher-0", again)
    assert told() == ""


def elastic_gang(*members: tuple[str, int, int]) -> Gang:
    made = (
        replace(builders.member(name=name, count=count), min_count=least)
        for name, count, least in members
    )
    return builders.gang(*made, name="train")


def test_an_elastic_gang_is_broken_below_its_least() -> None:
    view = view_of(PODS, gangs=[elastic_gang(("worker", 4, 3))])
    pods = [runner(name, member="worker") for name in NAMES]
    for pod in pods:
        view.apply_pod(f"{NAMESPACE}/{pod.metadata.name}", pod)
    end(view, preempted(pods[0]))
    assert look(view) is None
    end(view, preempted(pods[1]))
    assert words(look(view)).startswith("GangBroken: 2 of 4 pods run: a, b were")


def test_each_member_of_an_elastic_gang_has_a_least() -> None:
    head = runner("a", member="head")
    workers = [runner(name, member="worker") for name in NAMES[1:]]
    gang = elastic_gang(("head", 1, 1), ("worker", 3, 1))
    view = view_of((head, *workers), gangs=[gang])
    end(view, preempted(head))
    assert words(look(view)).startswith("GangBroken: 3 of 4 pods run: a was")


def test_pods_of_a_gang_that_nobody_named_are_counted_by_the_decision() -> None:
    """It was submitted before its pods."""
    record = opened_record_of(submission_of(count=4), opened=4)
    view = view_of(PODS)
    end(view, preempted(PODS[3]))
    context = context_of(view, record)
    report = found(context, gang_of(record, *context.running))
    assert words(report).startswith("GangBroken: 3 of 4 pods run: d was")


def ending(view: View, record: PodGangRecord = RECORD) -> str:
    context: PlanContext = context_of(view, record)
    return describe_end(context, record)


def test_the_end_of_a_gang_of_which_none_runs_is_told() -> None:
    view = view_of(PODS)
    assert ending(view) == ""
    end(view, *map(preempted, PODS))
    assert ending(view) == (
        "GangBroken: no pod runs: a, b, c, d were preempted by kube-scheduler (no room)"
    )


def test_it_is_told_of_a_gang_whose_open_gates_were_not_confirmed_yet() -> None:
    """Its pods ran and were preempted before that was on the bus."""
    message = submission_of(PODS)
    decision = replace(gang_allocated(pods=4), uid=message.uid)
    view = view_of(PODS)
    end(view, *map(preempted, PODS))
    (said,) = plan_gang(context_of(view, record_of(message, decision))).messages
    assert isinstance(said, CancelGang)
    assert "GangBroken: no pod runs: a, b, c, d were preempted" in said.reason


def test_it_has_completed_if_one_finished_by_itself() -> None:
    view = view_of(PODS)
    end(view, *map(preempted, PODS[:3]), finished(PODS[3]))
    assert ending(view) == ""


def test_many_are_counted() -> None:
    pods = [runner(f"p-{number}") for number in range(7)]
    message: SubmitGang = submission_of(pods)
    view = view_of(pods)
    end(view, *map(preempted, pods))
    assert ending(view, opened_record_of(message, opened=7)).startswith(
        "GangBroken: no pod runs: p-0, p-1, p-2, p-3, p-4 and 2 more were preempted"
    )
