"""What is done for a gang that was submitted, until its gates are open."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from contracts.claim import ResourceClaim
from contracts.ids import NodeName
from contracts.joined import JoinedGang, JoinedPod
from contracts.lifecycle import LifecycleMessage, is_by_publisher
from contracts.messages import (
    AllocationLost,
    AllocationRefused,
    AllocationWritten,
    CancelGang,
    GatesOpened,
    SubmitGang,
)
from contracts.names import ATTEMPT, VOID
from contracts.workload import Pod
from publisher.gangs.carry_out.plan_submitted import (
    plan_closed_again,
    plan_submitted,
)
from publisher.gangs.context import NextSteps
from publisher.gangs.patches import Purpose
from tests import builders
from tests.builders.decisions import gang_allocated
from tests.builders.plans import context_of, gang_of, record_of, submission_of, view_of
from tests.builders.pods import real_claim, waiting_pod

POD = waiting_pod("a", gang="train", templates=["gpus"])
SUBMITTED = submission_of((POD,))
DECISION = gang_allocated()
IDS: dict[str, Any] = {
    "cluster": DECISION.cluster,
    "namespace": DECISION.namespace,
    "uid": DECISION.uid,
}
WRITTEN = AllocationWritten(**IDS, attempt=1)
FREE = real_claim("a-gpus")
OURS = real_claim("a-gpus", allocated=builders.allocation(), reserved=["a"])
OPEN = waiting_pod(
    "a",
    gang="train",
    templates=["gpus"],
    opened_by=builders.UID,
    annotations={ATTEMPT: "1"},
)


def planned(
    claim: ResourceClaim | None,
    *said: LifecycleMessage,
    pod: Pod = POD,
    asked: SubmitGang = SUBMITTED,
) -> NextSteps:
    """Plan what comes next of a gang of one pod, of which this was said."""
    record = record_of(asked, *said)
    context = context_of(view_of([pod], [claim] if claim else []), record)
    return plan_submitted(context, gang_of(record, pod))


def purposes(plan: NextSteps) -> list[Purpose]:
    """Name what is written."""
    return [patch.purpose for patch in plan.patches]


def test_claims_are_written_confirmed_and_then_the_gates_open() -> None:
    """One of these at a time, each only after the one before it."""
    plan = planned(FREE, DECISION)
    assert (purposes(plan), plan.messages) == ([Purpose.ALLOCATE], ())
    plan = planned(OURS, DECISION)
    (confirmed,) = plan.messages
    assert isinstance(confirmed, AllocationWritten)
    assert [(pod.pod, pod.claims) for pod in confirmed.pods] == [
        ("a", {"gpus": "a-gpus"})
    ]
    assert purposes(plan) == []
    plan = planned(OURS, DECISION, WRITTEN)
    assert (purposes(plan), plan.messages) == ([Purpose.OPEN], ())


def planned_closed_again(claim: ResourceClaim) -> NextSteps:
    """Plan for a pod that waits, of a gang whose gates were open."""
    opened = GatesOpened(**IDS, attempt=1, state=1, pods=1)
    record = record_of(SUBMITTED, DECISION, opened)
    return plan_closed_again(
        context_of(view_of([POD], [claim]), record), gang_of(record, POD)
    )


def test_a_gang_whose_gates_were_forgotten_goes_on_with_its_devices() -> None:
    """As after a restored backup; the solver knows of them by the claims."""
    plan = planned_closed_again(OURS)
    assert (purposes(plan), plan.messages) == ([Purpose.OPEN], ())
    assert plan.kept == {"uid-a"}


def test_a_gang_whose_gates_and_claims_were_forgotten_is_asked_for_anew() -> None:
    """Its devices may be others' by now: a gang that runs has those of its claims."""
    plan = planned_closed_again(FREE)
    assert (purposes(plan), plan.messages) == ([Purpose.WITHDRAW], ())
    assert plan.given_up == {DECISION.uid}


def test_writes_say_whose_decision_they_carry_out() -> None:
    """So that a refusal of the API server is one of that attempt."""
    (patch,) = planned(FREE, DECISION).patches
    assert (patch.gang, patch.attempt) == (DECISION.uid, 1)


def test_once_the_last_gate_is_open_that_is_confirmed() -> None:
    """Nothing is left to write."""
    plan = planned(OURS, DECISION, WRITTEN, pod=OPEN)
    (message,) = plan.messages
    assert isinstance(message, GatesOpened)
    assert plan.patches == ()


def test_a_fault_ends_the_gang_and_not_before_all_is_taken_back() -> None:
    """A claim that is gone is a fault; the publisher gives up for its own reason."""
    plan = planned(None)
    (message,) = plan.messages
    assert isinstance(message, CancelGang)
    assert is_by_publisher(message)
    plan = planned(None, DECISION, WRITTEN)
    assert (purposes(plan), plan.messages) == ([Purpose.WITHDRAW], ())


def test_a_gang_whose_priority_was_changed_is_asked_for_anew() -> None:
    """While it waits, and by its Gang object: pods cannot be changed."""
    asked = builders.gang(builders.member(count=1), name="train")
    for priority, undecided in ((0, True), (7, True), (7, False)):
        record = record_of(SUBMITTED, *(() if undecided else (DECISION,)))
        changed = replace(asked, spec=replace(asked.spec, priority=priority))
        view = view_of([POD], [FREE], gangs=[changed])
        plan = plan_submitted(context_of(view, record), gang_of(record, POD))
        reasons = [m.reason for m in plan.messages if isinstance(m, CancelGang)]
        told = ["publisher: its priority is 7 now"] if undecided and priority else []
        assert reasons == told


def test_an_attempt_that_is_taken_back_is_decided_again() -> None:
    """Refused before it was confirmed to be written, lost afterwards."""
    for said, kind in (((), AllocationRefused), ((WRITTEN,), AllocationLost)):
        marks = {VOID: f"{builders.UID}/1"}
        marked = waiting_pod("a", gang="train", templates=["gpus"], annotations=marks)
        plan = planned(FREE, DECISION, *said, pod=marked)
        (message,) = plan.messages
        assert isinstance(message, kind)
        assert plan.patches == ()


def test_without_a_decision_nothing_is_left_of_the_one_before() -> None:
    """What is held is freed, and finalizers are set ahead of the next."""
    assert purposes(planned(OURS)) == [Purpose.WITHDRAW]
    unprepared = real_claim("a-gpus", managed=False)
    plan = planned(unprepared)
    assert purposes(plan) == [Purpose.PREPARE]
    assert [report.reason for report in plan.reports] == ["Undecided"]


def test_who_was_to_join_a_pod_that_is_gone_is_asked_for_anew() -> None:
    """As long as nothing is decided; what is decided goes on."""
    gone = JoinedPod(member="worker", name="b", uid="b", node=NodeName("n"))
    joining = replace(SUBMITTED, joins=JoinedGang(pods=(gone,)))
    (message,) = planned(FREE, asked=joining).messages
    assert isinstance(message, CancelGang)
    assert message.reason.endswith("pod b, which these would join, is gone")
    assert planned(FREE, DECISION, asked=joining).messages == ()


def test_pods_that_run_by_an_older_attempt_end_the_gang() -> None:
    """Its gates were opened for what does not count any more."""
    older = waiting_pod(
        "a",
        gang="train",
        templates=["gpus"],
        opened_by=builders.UID,
        annotations={ATTEMPT: "0"},
    )
    (message,) = planned(OURS, DECISION, WRITTEN, pod=older).messages
    assert isinstance(message, CancelGang)
    assert message.reason.endswith("its pods run by another attempt")


# --- once a gate is open --------------------------------------------------------------

B = waiting_pod("b", gang="train", templates=["gpus"])
B_OURS = real_claim(
    "b-gpus", allocated=builders.allocation(builders.result("gpu-1")), reserved=["b"]
)


def half_open(*claims: ResourceClaim) -> NextSteps:
    """Plan what comes next of two pods: `a` runs, `b` is still at its gate."""
    said = (submission_of((OPEN, B)), gang_allocated(pods=2), WRITTEN)
    record = record_of(*said)
    context = context_of(view_of([OPEN, B], claims), record)
    return plan_submitted(context, gang_of(record, OPEN, B))


def test_the_gates_that_are_left_are_opened() -> None:
    """Nothing is lost, so nobody is told of it."""
    plan = half_open(OURS, B_OURS)
    assert [(patch.purpose, patch.name) for patch in plan.patches] == [
        (Purpose.OPEN, "b")
    ]
    assert [(report.reason, report.pods) for report in plan.reports] == [("", ())]


def test_a_pod_that_cannot_get_its_devices_any_more_stays_at_its_gate() -> None:
    """It is withdrawn, and asked for anew; who runs goes on."""
    plan = half_open(OURS)
    assert [(patch.purpose, patch.name) for patch in plan.patches] == [
        (Purpose.WITHDRAW, "b")
    ]
    assert [(report.reason, report.pods) for report in plan.reports] == [("", ())]


def test_a_pod_that_runs_and_has_lost_its_devices_is_told() -> None:
    """There is no way back for it; the other gate is opened all the same."""
    plan = half_open(B_OURS)
    assert [(patch.purpose, patch.name) for patch in plan.patches] == [
        (Purpose.OPEN, "b")
    ]
    (report,) = plan.reports
    assert (report.reason, report.pods) == ("PlacementLost", (OPEN,))
