"""What is done for a gang that was submitted, until it is over or taken back."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from contracts.claim import ResourceClaim
from contracts.ids import NodeName
from contracts.joined import JoinedGang, JoinedPod
from contracts.lifecycle import PUBLISHER, LifecycleMessage, is_by_publisher
from contracts.messages import (
    AllocationLost,
    AllocationRefused,
    AllocationWritten,
    CancelGang,
    ClaimsReleased,
    GangRejected,
    GatesOpened,
    SubmitGang,
)
from contracts.names import ATTEMPT, VOID
from contracts.workload import Pod
from publisher.gangs.context import GroupPlan
from publisher.gangs.patches import Purpose
from publisher.gangs.plan_finished import plan_commanded, plan_finished
from publisher.gangs.plan_submitted import plan_submitted
from publisher.gangs.rollback import (
    find_withdrawn,
    is_leftover,
    plan_undo,
    plan_withdrawal,
)
from tests import builders
from tests.builders.decisions import gang_allocated, gang_released
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
) -> GroupPlan:
    """Plan what comes next of a gang of one pod, of which this was said."""
    record, plan = record_of(asked, *said), GroupPlan()
    context = context_of(view_of([pod], [claim] if claim else []), record)
    plan_submitted(context, gang_of(record, pod), plan)
    return plan


def purposes(plan: GroupPlan) -> list[Purpose]:
    """Name what is written."""
    return [patch.purpose for patch in plan.patches]


def test_claims_are_written_confirmed_and_then_the_gates_open() -> None:
    """One of these at a time, each only after the one before it."""
    plan = planned(FREE, DECISION)
    assert (purposes(plan), plan.messages) == ([Purpose.ALLOCATE], [])
    plan = planned(OURS, DECISION)
    (confirmed,) = plan.messages
    assert isinstance(confirmed, AllocationWritten)
    assert [(pod.pod, pod.claims) for pod in confirmed.pods] == [
        ("a", {"gpus": "a-gpus"})
    ]
    assert purposes(plan) == []
    plan = planned(OURS, DECISION, WRITTEN)
    assert (purposes(plan), plan.messages) == ([Purpose.OPEN], [])


def test_writes_say_whose_decision_they_carry_out() -> None:
    """So that a refusal of the API server is one of that attempt."""
    (patch,) = planned(FREE, DECISION).patches
    assert (patch.gang, patch.attempt) == (DECISION.uid, 1)


def test_once_the_last_gate_is_open_that_is_confirmed() -> None:
    """Nothing is left to write."""
    plan = planned(OURS, DECISION, WRITTEN, pod=OPEN)
    (message,) = plan.messages
    assert isinstance(message, GatesOpened)
    assert plan.patches == []


def test_a_fault_ends_the_gang_and_not_before_all_is_taken_back() -> None:
    """A claim that is gone is a fault; the publisher gives up for its own reason."""
    plan = planned(None)
    (message,) = plan.messages
    assert isinstance(message, CancelGang)
    assert is_by_publisher(message)
    plan = planned(None, DECISION, WRITTEN)
    assert (purposes(plan), plan.messages) == ([Purpose.WITHDRAW], [])


def test_an_attempt_that_is_taken_back_is_decided_again() -> None:
    """Refused before it was confirmed to be written, lost afterwards."""
    for said, kind in (((), AllocationRefused), ((WRITTEN,), AllocationLost)):
        marks = {VOID: f"{builders.UID}/1"}
        marked = waiting_pod("a", gang="train", templates=["gpus"], annotations=marks)
        plan = planned(FREE, DECISION, *said, pod=marked)
        (message,) = plan.messages
        assert isinstance(message, kind)
        assert plan.patches == []


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
    assert planned(FREE, DECISION, asked=joining).messages == []


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


def half_open(*claims: ResourceClaim) -> GroupPlan:
    """Plan what comes next of two pods: `a` runs, `b` is still at its gate."""
    said = (submission_of((OPEN, B)), gang_allocated(pods=2), WRITTEN)
    record, plan = record_of(*said), GroupPlan()
    context = context_of(view_of([OPEN, B], claims), record)
    plan_submitted(context, gang_of(record, OPEN, B), plan)
    return plan


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


CANCELLED = CancelGang(**IDS)
GIVEN_UP = CancelGang(**IDS, reason=f"{PUBLISHER}gone")
FREED = ClaimsReleased(**IDS)


def finished(
    *messages: LifecycleMessage, held: bool = False
) -> tuple[GroupPlan, frozenset[str]]:
    plan = GroupPlan()
    record = record_of(SUBMITTED, *messages)
    view = view_of([POD], [OURS if held else real_claim("a-gpus")])
    act = plan_finished if record.is_over else plan_commanded
    return plan, act(context_of(view, record), gang_of(record, POD), plan)


def test_what_waiting_pods_hold_is_taken_back_before_it_is_said() -> None:
    plan, kept = finished(DECISION, WRITTEN, CANCELLED, held=True)
    assert [patch.purpose for patch in plan.patches] == [Purpose.WITHDRAW]
    plan, kept = finished(DECISION, CANCELLED, gang_released(), held=True)
    assert [patch.purpose for patch in plan.patches] == [Purpose.WITHDRAW]
    assert not plan.messages
    plan, kept = finished(DECISION, CANCELLED, gang_released())
    assert [type(message) for message in plan.messages] == [ClaimsReleased]
    assert kept == {"uid-a"}


def test_pods_of_a_cancelled_gang_wait_and_are_told() -> None:
    plan, kept = finished(DECISION, CANCELLED, gang_released(), FREED)
    assert [report.reason for report in plan.reports] == ["Cancelled"]
    assert kept == {"uid-a"}
    assert not plan.forget


def test_pods_of_a_gang_that_the_publisher_gave_up_are_free() -> None:
    plan, kept = finished(DECISION, GIVEN_UP, gang_released(), FREED)
    assert not plan.reports
    assert not kept


def test_what_ended_a_gang_is_read_before_anything_is_done() -> None:
    plan, kept = finished(DECISION, gang_released(), held=True)
    assert plan == GroupPlan()
    assert kept == {"uid-a"}


def test_pods_of_a_rejected_gang_are_told_why() -> None:
    rejected = GangRejected(**IDS, name="train", epoch=1)
    plan, kept = finished(rejected)
    assert [report.phase for report in plan.reports] == ["Rejected"]
    assert kept == {"uid-a"}


def test_a_gang_without_pods_is_forgotten() -> None:
    record = record_of(SUBMITTED, DECISION, CANCELLED, gang_released(), FREED)
    plan = GroupPlan()
    assert not plan_finished(context_of(view_of(), record), gang_of(record), plan)
    assert plan.forget == [record.uid]


KEY = f"{builders.NAMESPACE}/a-gpus"
MARKED = waiting_pod(
    "a", gang="train", templates=["gpus"], annotations={VOID: builders.UID}
)
RECORD = record_of(submission_of((POD,)))


def test_a_leftover_is_what_we_wrote_for_waiting_pods_alone() -> None:
    """Not what is free, what others wrote, and what is for somebody else as well."""
    waiting = {"uid-a"}
    assert is_leftover(KEY, waiting, view_of([POD], [OURS]))
    assert not is_leftover(KEY, waiting, view_of([POD], [FREE]))
    assert not is_leftover(KEY, waiting, view_of([POD]))
    theirs = real_claim(
        "a-gpus", allocated=builders.allocation(), reserved=["a"], managed=False
    )
    assert not is_leftover(KEY, waiting, view_of([POD], [theirs]))
    shared = real_claim("a-gpus", allocated=builders.allocation(), reserved=["a", "b"])
    assert not is_leftover(KEY, waiting, view_of([POD], [shared]))


def test_a_claim_of_a_pod_beyond_the_gate_is_no_leftover() -> None:
    """Even while its reservation is gone for a moment."""
    bare = real_claim("c", allocated=builders.allocation())
    key = f"{builders.NAMESPACE}/c"
    waiting = waiting_pod("a", shared={"gpus": "c"})
    running = waiting_pod("b", shared={"gpus": "c"}, opened_by="uid-gang")
    assert is_leftover(key, {"uid-a"}, view_of([waiting], [bare]))
    assert not is_leftover(key, {"uid-a"}, view_of([waiting, running], [bare]))


def group_user(name: str, phase: str = "Running", **fields: Any) -> Pod:
    """Make a pod that uses the claim of a PodGroup."""
    return waiting_pod(name, shared={"gpus": "pg"}, phase=phase, **fields)


BOUND: dict[str, Any] = {
    "opened_by": "uid-gang",
    "node": builders.NODE,
    "deleting": True,
}
GROUPS = real_claim("pg", allocated=builders.allocation(), pod_group="pg")


@pytest.mark.parametrize(
    ("other", "frees"),
    [
        (group_user("b", **BOUND), False),
        (group_user("b", "Succeeded", **BOUND), True),
        (group_user("b", "Pending", opened_by="uid-gang", deleting=True), True),
    ],
)
def test_a_claim_of_a_pod_group_is_kept_for_a_pod_in_its_grace_period(
    other: Pod, *, frees: bool
) -> None:
    """No reservation names it: it runs until it has ended."""
    waiting = group_user("a", "Pending")
    view = view_of([waiting, other], [GROUPS])
    assert bool(list(plan_undo([waiting], view))) is frees


def test_a_claim_shared_with_a_pod_in_its_grace_period_is_kept() -> None:
    """Though the gang that asked for it knows the pod as gone."""
    waiting, other = group_user("a", "Pending"), group_user("b", **BOUND)
    shared = real_claim("pg", allocated=builders.allocation(), reserved=["a", "b"])
    view = view_of([waiting, other], [shared])
    assert list(plan_undo([waiting], view, {"uid-b"})) == []


def test_a_claim_of_a_pod_group_is_kept_for_pods_that_are_not_ours() -> None:
    """They never had our gate; when one ends, those that share its claim are told."""
    waiting, stranger = group_user("a", "Pending"), group_user("b", node=builders.NODE)
    stranger = replace(stranger, spec=replace(stranger.spec, scheduling_gates=()))
    view = view_of([waiting, stranger], [GROUPS])
    assert list(plan_undo([waiting], view)) == []
    (group,) = view.groups()
    ended = replace(stranger, status=replace(stranger.status, phase="Failed"))
    assert view.apply_pod(f"{builders.NAMESPACE}/b", ended) == {group}
    assert [patch.name for patch in plan_undo([waiting], view)] == ["pg"]


def test_pods_are_marked_before_their_claims_are_freed() -> None:
    """And claims are freed only once every pod is marked."""
    first = plan_withdrawal(gang_of(RECORD, POD), [POD], view_of([POD], [OURS]))
    assert [patch.purpose for patch in first] == [Purpose.WITHDRAW]
    then = plan_withdrawal(gang_of(RECORD, MARKED), [MARKED], view_of([MARKED], [OURS]))
    assert [(patch.purpose, patch.key) for patch in then] == [(Purpose.CLEAR, KEY)]


def test_where_nothing_was_written_nothing_is_taken_back() -> None:
    """Nobody will open a gate for it."""
    assert plan_withdrawal(gang_of(RECORD, POD), [POD], view_of([POD], [FREE])) == []


def test_what_pods_that_are_gone_shared_is_freed_too() -> None:
    """A reservation for a pod that is no more keeps nothing."""
    both = real_claim("a-gpus", allocated=builders.allocation(), reserved=["a", "b"])
    view = view_of([POD], [both])
    assert list(plan_undo([POD], view)) == []
    assert [patch.key for patch in plan_undo([POD], view, {"uid-b"})] == [KEY]


def is_withdrawn(pod: Pod, claim: ResourceClaim) -> bool:
    """Whether a pod with this claim is no part of its gang any more."""
    return bool(find_withdrawn(gang_of(RECORD, pod), view_of([pod], [claim])))


def test_a_pod_is_withdrawn_once_it_is_marked_and_holds_nothing() -> None:
    """Either alone is not enough: it would be asked for twice."""
    assert is_withdrawn(MARKED, FREE)
    assert not is_withdrawn(MARKED, OURS)
    assert not is_withdrawn(POD, FREE)
