"""Pods whose gates are open are watched over until all of them are over."""

from __future__ import annotations

from msgspec.structs import replace

from contracts.avoidance import GRACE_S
from contracts.lifecycle import is_by_publisher
from contracts.messages import CancelGang, GatesOpened, ReleaseGang, SubmitGang
from contracts.workload import Pod
from publisher.gangs.context import NextSteps
from publisher.gangs.running.plan_running import (
    find_refused,
    plan_running,
    report_misplaced,
)
from publisher.gangs.view import View
from tests import builders
from tests.builders.decisions import gang_allocated
from tests.builders.plans import (
    NOW,
    context_of,
    gang_of,
    record_of,
    submission_of,
    view_of,
)
from tests.builders.pods import disrupted, real_claim, refused_pod, waiting_pod

DECISION = gang_allocated()
OPENED = GatesOpened(
    cluster=DECISION.cluster,
    namespace=DECISION.namespace,
    uid=DECISION.uid,
    attempt=1,
    state=1,
)
LONG_AGO = "2026-11-20T11:00:00Z"
HELD = real_claim("a-gpus", allocated=builders.allocation(), reserved=["a"])


def runner(phase: str = "Running", node: str = builders.NODE, owner: str = "") -> Pod:
    return waiting_pod(
        "a",
        gang="train",
        templates=["gpus"],
        opened_by=builders.UID,
        node=node,
        phase=phase,
        owner=owner,
    )


def planned(
    view: View, pod: Pod, submission: SubmitGang | None = None
) -> tuple[NextSteps, frozenset[str]]:
    record = record_of(submission or submission_of((pod,)), DECISION, OPENED)
    plan = plan_running(context_of(view, record), gang_of(record, pod))
    return plan, plan.kept


def test_a_pod_with_its_devices_is_left_alone() -> None:
    pod = runner()
    plan, kept = planned(view_of([pod], [HELD]), pod)
    assert [(report.phase, report.reason) for report in plan.reports] == [
        ("Running", "")
    ]
    nothing = NextSteps(reports=plan.reports, kept=kept)
    assert plan == nothing
    assert kept == {"uid-a"}


def test_a_gang_is_released_when_all_its_pods_are_over() -> None:
    pod = runner("Succeeded")
    plan, _ = planned(view_of([pod], [HELD]), pod)
    (message,) = plan.messages
    assert isinstance(message, ReleaseGang)
    assert is_by_publisher(message)


def test_lost_devices_are_looked_at_again_and_told() -> None:
    pod = runner()
    plan, kept = planned(view_of([pod], [real_claim("a-gpus")]), pod)
    (report,) = plan.reports
    assert report.reason == "PlacementLost"
    assert report.message == "somebody took the devices of 1 of 1 pod: a"
    assert plan.doubted == (pod,)
    assert kept == {"uid-a"}


def test_a_pod_that_lost_them_before_it_was_bound_may_be_asked_for_again() -> None:
    pod = runner("Pending", node="")
    plan, kept = planned(view_of([pod], [real_claim("a-gpus")]), pod)
    assert plan.doubted == (pod,)
    assert not kept


def recreated(*pods: Pod) -> SubmitGang:
    message = submission_of(pods)
    spec = replace(message.gang.spec, recovery="Recreate")
    return replace(message, gang=replace(message.gang, spec=spec))


def test_pods_are_made_anew_where_their_author_wants_it() -> None:
    """It is said before the first is deleted, so that whoever goes on deletes all."""
    pod = runner(owner="job")
    view = view_of([pod], [real_claim("a-gpus")])
    plan, kept = planned(view, pod, recreated(pod))
    (command,) = plan.messages
    assert isinstance(command, CancelGang)
    assert command.recreate
    assert plan.removals == ()
    assert kept == {"uid-a"}


def test_pods_that_nobody_makes_anew_are_left() -> None:
    pod = runner()
    plan, _ = planned(view_of([pod], [real_claim("a-gpus")]), pod, recreated(pod))
    assert plan.messages == ()
    (report,) = plan.reports
    assert report.message.endswith("nobody would recreate pod a, so none is deleted")


def refused(owner: str = "") -> Pod:
    return refused_pod(
        "a", builders.NODE, gang="train", templates=["gpus"], owner=owner
    )


def refused_plan(
    pod: Pod, message: SubmitGang, *, seen: str = LONG_AGO, claims: bool = True
) -> NextSteps:
    view = view_of([pod], [HELD if claims else real_claim("a-gpus")])
    record = record_of(message, DECISION, OPENED)
    context = replace(context_of(view, record), refused_since=lambda _: seen)
    look_again_s = find_refused(context, (pod,)).look_again_s
    steps = plan_running(context, gang_of(record, pod))
    return steps + NextSteps(look_again_s=look_again_s)


def test_a_refused_pin_is_told_in_kube_schedulers_words() -> None:
    pod = refused()
    plan = refused_plan(pod, submission_of((pod,)))
    (report,) = plan.reports
    assert (report.reason, report.pods) == ("SchedulerRefused", (pod,))
    assert report.message == (
        "kube-scheduler refuses 1 of 1 pod on the nodes that they are pinned to, "
        f"which have their devices: a on {builders.NODE}: Unschedulable: 0/2 nodes are "
        "available"
    )
    assert plan.doubted == (pod,)
    assert plan.messages == ()


def test_a_refusal_may_pass_for_a_while() -> None:
    pod = refused()
    plan = refused_plan(pod, submission_of((pod,)), seen=NOW)
    assert [report.reason for report in plan.reports] == [""]
    assert plan.look_again_s == GRACE_S


def test_lost_devices_are_the_reason_when_kube_scheduler_refuses_too() -> None:
    pod = refused()
    plan = refused_plan(pod, submission_of((pod,)), claims=False)
    assert [report.reason for report in plan.reports] == ["PlacementLost"]


def test_a_gang_with_a_refused_pod_is_made_anew_where_its_author_wants_it() -> None:
    pod = refused(owner="job")
    plan = refused_plan(pod, recreated(pod))
    assert plan.recreations == 1
    (command,) = plan.messages
    assert isinstance(command, CancelGang)
    assert command.recreate
    assert "Unschedulable: 0/2 nodes" in command.reason


def broken(*, lost: bool = False, wanted: bool = False) -> NextSteps:
    """Look at two pods of which the second is preempted; `lost`: the first lost all."""
    pods = [runner(owner="job"), runner_of("b")]
    view = view_of(pods, [real_claim("a-gpus") if lost else HELD])
    view.apply_pod(f"{builders.NAMESPACE}/b", disrupted(pods[1]))
    message = recreated(*pods) if wanted else submission_of(pods)
    decision = gang_allocated(pods=2)
    record = record_of(message, decision, replace(OPENED, pods=2))
    return plan_running(context_of(view, record), gang_of(record, *pods[:1]))


def runner_of(name: str) -> Pod:
    return waiting_pod(
        name,
        gang="train",
        templates=["gpus"],
        opened_by=builders.UID,
        node=builders.NODE,
        phase="Running",
        owner="job",
    )


def test_a_gang_that_lost_a_pod_to_another_is_told() -> None:
    plan = broken()
    (report,) = plan.reports
    assert (report.phase, report.reason) == ("Running", "GangBroken")
    assert plan.messages == ()
    # What is wrong with those that run is told besides.
    reasons = {report.reason for report in broken(lost=True).reports}
    assert reasons == {"GangBroken", "PlacementLost"}


def test_its_rest_is_made_anew_without_a_pause() -> None:
    """kube-scheduler does not refuse it, so nothing says that it would again."""
    plan = broken(wanted=True)
    assert plan.recreations == 0
    assert plan.leaving == {"uid-a"}
    (command,) = plan.messages
    assert isinstance(command, CancelGang)
    assert command.recreate
    assert command.reason.startswith("publisher: GangBroken: 1 of 2 pods run: b was")


def test_a_gang_of_which_all_was_preempted_has_not_completed() -> None:
    pod = runner()
    view = view_of([pod], [HELD])
    view.apply_pod(f"{builders.NAMESPACE}/a", disrupted(pod))
    plan, _ = planned(view, disrupted(pod))
    (command,) = plan.messages
    assert isinstance(command, CancelGang)
    assert not command.recreate
    assert command.reason == (
        "publisher: GangBroken: no pod runs: a was preempted by kube-scheduler "
        "(no room)"
    )


def test_a_pinned_pod_of_no_gang_is_told_where_its_devices_are_not() -> None:
    pod = runner("Pending", node="")
    context = context_of(view_of([pod], [HELD], nodes=()))
    (report,) = report_misplaced(context, [pod])
    assert report.message.endswith("which it is pinned to, is gone")
