"""Pods whose gates are open are watched over until all of them are over."""

from __future__ import annotations

from msgspec.structs import replace

from contracts.messages import GatesOpened, ReleaseGang, SubmitGang
from contracts.workload import Pod
from publisher.gangs.context import GroupPlan
from publisher.gangs.plan_running import plan_running, report_misplaced
from publisher.gangs.view import View
from tests import builders
from tests.builders.decisions import gang_allocated
from tests.builders.plans import context_of, gang_of, record_of, submission_of, view_of
from tests.builders.pods import real_claim, waiting_pod

DECISION = gang_allocated()
OPENED = GatesOpened(
    cluster=DECISION.cluster,
    namespace=DECISION.namespace,
    uid=DECISION.uid,
    attempt=1,
    state=1,
)
HELD = real_claim("a-gpus", allocated=builders.allocation(), reserved=["a"])


def runner(phase: str = "Running", node: str = builders.NODE) -> Pod:
    return waiting_pod(
        "a",
        gang="train",
        templates=["gpus"],
        opened_by=builders.UID,
        node=node,
        phase=phase,
    )


def planned(
    view: View, pod: Pod, submission: SubmitGang | None = None
) -> tuple[GroupPlan, frozenset[str]]:
    plan = GroupPlan()
    record = record_of(submission or submission_of((pod,)), DECISION, OPENED)
    kept = plan_running(context_of(view, record), gang_of(record, pod), plan)
    return plan, kept


def test_a_pod_with_its_devices_is_left_alone() -> None:
    pod = runner()
    plan, kept = planned(view_of([pod], [HELD]), pod)
    assert [(report.phase, report.reason) for report in plan.reports] == [
        ("Running", "")
    ]
    nothing = GroupPlan(reports=plan.reports)
    assert plan == nothing
    assert kept == {"uid-a"}


def test_a_gang_is_released_when_all_its_pods_are_over() -> None:
    pod = runner("Succeeded")
    plan, _ = planned(view_of([pod], [HELD]), pod)
    assert [type(message) for message in plan.messages] == [ReleaseGang]


def test_lost_devices_are_looked_at_again_and_told() -> None:
    pod = runner()
    plan, kept = planned(view_of([pod], [real_claim("a-gpus")]), pod)
    (report,) = plan.reports
    assert report.reason == "PlacementLost"
    assert report.message == "somebody took the devices of 1 of 1 pods: a"
    assert plan.doubted == [pod]
    assert kept == {"uid-a"}


def test_a_pod_that_lost_them_before_it_was_bound_may_be_asked_for_again() -> None:
    pod = runner("Pending", node="")
    plan, kept = planned(view_of([pod], [real_claim("a-gpus")]), pod)
    assert plan.doubted == [pod]
    assert not kept


def test_pods_are_made_anew_where_their_author_wants_it() -> None:
    pod = runner()
    message = submission_of((pod,))
    spec = replace(message.gang.spec, recovery="Recreate")
    message = replace(message, gang=replace(message.gang, spec=spec))
    plan, _ = planned(view_of([pod], [real_claim("a-gpus")]), pod, message)
    assert plan.removals == [pod]


def test_a_pinned_pod_of_no_gang_is_told_where_its_devices_are_not() -> None:
    pod = runner("Pending", node="")
    context = context_of(view_of([pod], [HELD], nodes=()))
    (report,) = report_misplaced(context, [pod])
    assert report.message.endswith("which it is pinned to, is gone")
