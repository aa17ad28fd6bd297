"""The pods of a gang that cannot run are made anew together, or not at all."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from contracts.avoidance import NodesAvoided
from contracts.gang import Gang
from contracts.ids import Namespace
from contracts.lifecycle import PUBLISHER
from contracts.messages import (
    MAX_REASON,
    CancelGang,
    GangReleased,
    GatesOpened,
    ReleaseOutcome,
    SubmitGang,
)
from contracts.workload import Pod
from publisher.gangs.context import NextSteps, PlanContext, StatusReport
from publisher.gangs.plan_gang import plan_gang
from publisher.gangs.records import PodGangRecord
from publisher.gangs.running.recreation import (
    find_recreation,
    plan_recreation,
    plan_removal,
)
from tests import builders
from tests.builders.decisions import CLUSTER, gang_allocated
from tests.builders.plans import (
    NOW,
    context_of,
    gang_of,
    record_of,
    submission_of,
    view_of,
)
from tests.builders.pods import real_claim, waiting_pod

DECISION = gang_allocated()
ADDRESS: dict[str, Any] = {
    "cluster": DECISION.cluster,
    "namespace": DECISION.namespace,
    "uid": DECISION.uid,
}
OPENED = GatesOpened(**ADDRESS, attempt=1, state=1)
CANCELLED = CancelGang(
    **ADDRESS, reason=f"{PUBLISHER}SchedulerRefused: no room", recreate=True
)
RELEASED = GangReleased(
    **ADDRESS, name="train", epoch=1, outcome=ReleaseOutcome.CANCELLED
)
REPORT = StatusReport(phase="Running", reason="SchedulerRefused", message="x" * 999)


def runner(name: str = "a", owner: str = "job") -> Pod:
    return waiting_pod(
        name,
        gang="train",
        templates=["gpus"],
        opened_by=builders.UID,
        owner=owner,
        size=2,
    )


PODS = (runner("a"), runner("b"))


def submitted_of(*pods: Pod, recovery: str = "Recreate") -> SubmitGang:
    message = submission_of(pods)
    spec = replace(message.gang.spec, recovery=recovery)
    return replace(message, gang=replace(message.gang, spec=spec))


def planned(
    context: PlanContext,
    record: PodGangRecord,
    *pods: Pod,
    may_recur: bool = True,
    limit: int | None = None,
) -> tuple[NextSteps, bool]:
    plan = plan_recreation(
        context, gang_of(record, *pods), REPORT, may_recur=may_recur, limit=limit
    )
    return plan, bool(plan.leaving)


def test_it_is_the_word_of_the_gang_object_as_it_is_now() -> None:
    """Else that of the pods as they were submitted; and nobody has ended the gang."""
    record = record_of(submitted_of(*PODS), DECISION, OPENED)
    assert find_recreation(context_of(view_of(PODS)), record)
    gang: Gang = builders.gang(builders.member(count=2), name="train")
    assert not find_recreation(context_of(view_of(PODS, gangs=[gang])), record)
    ended = record.apply(CancelGang(**ADDRESS), 9)
    assert not find_recreation(context_of(view_of(PODS)), ended)


def test_it_is_said_with_the_reason_and_counted() -> None:
    record = record_of(submitted_of(*PODS), DECISION, OPENED)
    plan, done = planned(context_of(view_of(PODS)), record, *PODS)
    assert done
    assert plan.recreations == 1
    (command,) = plan.messages
    assert isinstance(command, CancelGang)
    assert command.reason.startswith(f"{PUBLISHER}SchedulerRefused: xxx")
    assert command.reason.endswith("are deleted, as its recovery says")
    assert len(command.reason) == MAX_REASON


def test_lost_devices_are_no_refusal_and_not_counted() -> None:
    record = record_of(submitted_of(*PODS), DECISION, OPENED)
    context = context_of(view_of(PODS))
    plan, _ = planned(context, record, *PODS, may_recur=False)
    assert [type(message) for message in plan.messages] == [CancelGang]
    assert plan.recreations == 0


def test_one_pod_that_nobody_makes_anew_keeps_all() -> None:
    pods = (runner("a"), runner("b", owner=""))
    record = record_of(submitted_of(*pods), DECISION, OPENED)
    plan, done = planned(context_of(view_of(pods)), record, *pods)
    assert not done
    assert plan.messages == ()
    (report,) = plan.reports
    assert report.message.endswith("nobody would recreate pod b, so none is deleted")


def test_what_was_just_made_anew_waits_for_its_pause() -> None:
    record = record_of(submitted_of(*PODS), DECISION, OPENED)
    said = NodesAvoided(
        cluster=CLUSTER,
        namespace=Namespace(builders.NAMESPACE),
        name="train",
        recreations=2,
        recreated_at=NOW,
    )
    context = replace(context_of(view_of(PODS)), avoided=lambda _: said)
    plan, done = planned(context, record, *PODS)
    assert not done
    assert plan.messages == ()
    assert plan.look_again_s == 120
    assert plan.reports[0].message.endswith("and will be again after a pause")


def test_a_limit_counts_only_for_what_may_happen_again() -> None:
    record = record_of(submitted_of(*PODS), DECISION, OPENED)
    plan, done = planned(context_of(view_of(PODS)), record, *PODS, limit=0)
    assert not done
    first, second = plan.reports
    assert first == REPORT
    assert second.reason == "RecreationsExhausted"
    assert second.message.startswith(
        "its pods were recreated 0 times, as often as its maxRecreations says, and are "
        "not again: SchedulerRefused: x"
    )
    others = planned(context_of(view_of(PODS)), record, *PODS, may_recur=False, limit=0)
    assert others[1]


def test_all_pods_are_deleted_once_it_is_said() -> None:
    record = record_of(submitted_of(*PODS), DECISION, OPENED, CANCELLED)
    plan = plan_removal(gang_of(record, *PODS))
    assert plan is not None
    assert plan.removals == PODS
    (report,) = plan.reports
    assert (report.reason, report.message) == ("SchedulerRefused", "no room")


def test_a_cancellation_by_others_deletes_nothing() -> None:
    other = replace(CANCELLED, reason="a person")
    record = record_of(submitted_of(*PODS), DECISION, OPENED, other)
    assert plan_removal(gang_of(record, *PODS)) is None


def test_the_rest_of_a_gang_goes_too_when_the_publisher_was_killed_in_between() -> None:
    """However far the solver is: one pod is gone, and another waits in its place."""
    again = waiting_pod("a", gang="train", templates=["gpus"], uid="new", size=2)
    claims = [real_claim(f"{name}-gpus") for name in "ab"]
    for said in ((CANCELLED,), (CANCELLED, RELEASED)):
        record = record_of(submitted_of(*PODS), DECISION, OPENED, *said)
        plan = plan_gang(context_of(view_of([again, PODS[1]], claims), record))
        assert plan.removals == (PODS[1],)
        assert not any(isinstance(message, SubmitGang) for message in plan.messages)
