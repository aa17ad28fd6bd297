"""A gang that has changed is of no use; its pods are made anew together or not."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec.structs import replace

from contracts.avoidance import NodesAvoided
from contracts.claim import ResourceClaim
from contracts.gang import AvoidedNode, Gang
from contracts.ids import Namespace, NodeName
from contracts.lifecycle import PUBLISHER
from contracts.messages import (
    MAX_REASON,
    CancelGang,
    GangReleased,
    GatesOpened,
    ReleaseOutcome,
    SubmitGang,
)
from contracts.names import VOID
from contracts.workload import Pod
from publisher.gangs.context import GroupPlan, PlanContext, StatusReport
from publisher.gangs.feasibility import find_fault
from publisher.gangs.members import leave_out, pinned_node_of
from publisher.gangs.patches import narrow_affinity
from publisher.gangs.plan_gang import plan_gang
from publisher.gangs.records import PodGangRecord
from publisher.gangs.recreation import plan_recreation, plan_removal, wants_recreation
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
from tests.builders.storage import storage_class, volume, volume_claim, volume_of
from tests.builders.values import NAMESPACE

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
    context: PlanContext, record: PodGangRecord, *pods: Pod, by_scheduler: bool = True
) -> tuple[GroupPlan, bool]:
    plan = GroupPlan()
    done = plan_recreation(
        context, gang_of(record, *pods), REPORT, plan, by_scheduler=by_scheduler
    )
    return plan, done


def test_it_is_the_word_of_the_gang_object_as_it_is_now() -> None:
    """Else that of the pods as they were submitted; and nobody has ended the gang."""
    record = record_of(submitted_of(*PODS), DECISION, OPENED)
    assert wants_recreation(context_of(view_of(PODS)), record)
    gang: Gang = builders.gang(builders.member(count=2), name="train")
    assert not wants_recreation(context_of(view_of(PODS, gangs=[gang])), record)
    ended = record.apply(CancelGang(**ADDRESS), 9)
    assert not wants_recreation(context_of(view_of(PODS)), ended)


def test_it_is_said_with_the_reason_and_counted() -> None:
    record = record_of(submitted_of(*PODS), DECISION, OPENED)
    plan, done = planned(context_of(view_of(PODS)), record, *PODS)
    assert done
    counted, command = plan.messages
    assert isinstance(counted, NodesAvoided)
    assert (counted.recreations, counted.recreated_at) == (1, NOW)
    assert isinstance(command, CancelGang)
    assert command.reason.startswith(f"{PUBLISHER}SchedulerRefused: xxx")
    assert command.reason.endswith("are deleted, as its recovery says")
    assert len(command.reason) == MAX_REASON


def test_lost_devices_are_no_refusal_and_not_counted() -> None:
    record = record_of(submitted_of(*PODS), DECISION, OPENED)
    context = context_of(view_of(PODS))
    plan, _ = planned(context, record, *PODS, by_scheduler=False)
    assert [type(message) for message in plan.messages] == [CancelGang]


def test_one_pod_that_nobody_makes_anew_keeps_all() -> None:
    pods = (runner("a"), runner("b", owner=""))
    record = record_of(submitted_of(*pods), DECISION, OPENED)
    plan, done = planned(context_of(view_of(pods)), record, *pods)
    assert not done
    assert plan.messages == []
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
    assert plan.messages == []
    assert plan.look_again_s == 120
    assert plan.reports[0].message.endswith("and will be again after a pause")


def test_all_pods_are_deleted_once_it_is_said() -> None:
    record = record_of(submitted_of(*PODS), DECISION, OPENED, CANCELLED)
    plan = GroupPlan()
    assert plan_removal(gang_of(record, *PODS), plan)
    assert plan.removals == list(PODS)
    (report,) = plan.reports
    assert (report.reason, report.message) == ("SchedulerRefused", "no room")


def test_a_cancellation_by_others_deletes_nothing() -> None:
    other = replace(CANCELLED, reason="a person")
    record = record_of(submitted_of(*PODS), DECISION, OPENED, other)
    assert not plan_removal(gang_of(record, *PODS), GroupPlan())


def test_the_rest_of_a_gang_goes_too_when_the_publisher_was_killed_in_between() -> None:
    """However far the solver is: one pod is gone, and another waits in its place."""
    again = waiting_pod("a", gang="train", templates=["gpus"], uid="new", size=2)
    claims = [real_claim(f"{name}-gpus") for name in "ab"]
    for said in ((CANCELLED,), (CANCELLED, RELEASED)):
        record = record_of(submitted_of(*PODS), DECISION, OPENED, *said)
        plan = plan_gang(context_of(view_of([again, PODS[1]], claims), record))
        assert plan.removals == [PODS[1]]
        assert not any(isinstance(message, SubmitGang) for message in plan.messages)


A = waiting_pod("a", gang="train", templates=["gpus"])
B = waiting_pod("b", gang="train", templates=["gpus"])


def fault(pods: Iterable[Pod], claims: Iterable[ResourceClaim]) -> str:
    """Find what speaks against a gang of A and B, of which these are there."""
    pods = tuple(pods)
    record = record_of(submission_of((A, B)))
    context = context_of(view_of(pods, claims), record)
    return find_fault(context, gang_of(record, *pods), ())


def test_nothing_has_changed() -> None:
    assert fault((A, B), (real_claim("a-gpus"), real_claim("b-gpus"))) == ""


def test_a_pod_is_gone() -> None:
    claims = (real_claim("a-gpus"), real_claim("b-gpus"))
    assert fault((A,), claims) == "1 of 2 pods are gone"
    ended = waiting_pod("b", gang="train", templates=["gpus"], phase="Failed")
    assert fault((A, ended), claims) == "1 of 2 pods are gone"


def test_a_pod_was_withdrawn() -> None:
    marks = {VOID: record_of(submission_of((A, B))).uid}
    marked = waiting_pod("b", gang="train", templates=["gpus"], annotations=marks)
    claims = (real_claim("a-gpus"), real_claim("b-gpus"))
    assert fault((A, marked), claims) == "the decision was given up"


def test_a_claim_is_gone_or_going() -> None:
    text = f"ResourceClaim {builders.NAMESPACE}/b-gpus is"
    assert fault((A, B), (real_claim("a-gpus"),)) == f"{text} gone"
    going = (real_claim("a-gpus"), real_claim("b-gpus", deleting=True))
    assert fault((A, B), going) == f"{text} being deleted"


def test_a_claim_holds_what_nobody_decided() -> None:
    """What we wrote for the waiting pods ourselves is taken back, and no fault."""
    held = builders.allocation()
    free = real_claim("a-gpus")
    theirs = real_claim("b-gpus", allocated=held, reserved=["other"])
    assert "was allocated by somebody else" in fault((A, B), (free, theirs))
    ours = real_claim("b-gpus", allocated=held, reserved=["b"])
    assert fault((A, B), (free, ours)) == ""


def test_a_claim_was_made_anew_with_another_spec() -> None:
    spec = builders.claim_spec(builders.request("gpu", count=2))
    again = real_claim("b-gpus", spec=spec)
    assert "recreated with other requests" in fault(
        (A, B), (real_claim("a-gpus"), again)
    )


def test_a_claim_that_had_its_devices_has_lost_them() -> None:
    """It was not submitted, so nobody decides it: its pods cannot run."""
    more = waiting_pod("b", gang="train", templates=["gpus"], shared={"nic": "nic"})
    claims = (real_claim("a-gpus"), real_claim("b-gpus"), real_claim("nic"))
    assert "no longer holds devices" in fault((A, more), claims)
    held = real_claim("nic", allocated=builders.allocation(), reserved=["b"])
    assert fault((A, more), (*claims[:2], held)) == ""


def test_a_pin_is_read_where_it_can_be() -> None:
    selector = builders.node_name_selector("node-7")
    pinned = waiting_pod("a", affinity=narrow_affinity({}, selector))
    assert pinned_node_of(pinned) == "node-7"
    assert pinned_node_of(A) == ""


def test_a_volume_that_was_bound_elsewhere_meanwhile_voids_the_gang() -> None:
    """What was asked for is another question now; what has not changed is none."""
    pod = waiting_pod(
        "a", gang="train", size=1, templates=["gpus"], volumes=(volume_of(),)
    )
    view = view_of((pod,), (real_claim("a-gpus"),))
    view.volumes.apply_class("late", storage_class(provisioner="csi", zones=["z"]))
    view.volumes.apply_claim(f"{NAMESPACE}/data", volume_claim())
    context = context_of(view)
    (submission,) = plan_gang(context).messages
    assert isinstance(submission, SubmitGang)
    record = record_of(submission)
    assert find_fault(context, gang_of(record, pod), ()) == ""
    view.volumes.apply_claim(f"{NAMESPACE}/data", volume_claim(bound_to="pv-1"))
    missing = "pod a: PersistentVolume pv-1 of data does not exist"
    assert find_fault(context, gang_of(record, pod), ()) == missing
    view.volumes.apply_volume("pv-1", volume("pv-1", zone="z"))
    moved = "the volumes of a are on other nodes now"
    assert find_fault(context, gang_of(record, pod), ()) == moved


def test_nodes_that_are_avoided_are_no_change_of_volumes() -> None:
    """Or a gang that avoids a node would be asked for again without end."""
    pod = waiting_pod(
        "a", gang="train", size=1, templates=["gpus"], volumes=(volume_of(),)
    )
    view = view_of((pod,), (real_claim("a-gpus"),))
    view.volumes.apply_class("late", storage_class(provisioner="csi", zones=["z"]))
    view.volumes.apply_claim(f"{NAMESPACE}/data", volume_claim())
    context = context_of(view)
    (asked,) = plan_gang(context).messages
    assert isinstance(asked, SubmitGang)
    avoided = (AvoidedNode(node=NodeName("n1"), since=NOW),)
    (member,) = asked.gang.spec.members
    member = replace(member, node=leave_out(member.node, avoided))
    gang = replace(asked.gang, spec=replace(asked.gang.spec, members=(member,)))
    record = record_of(replace(asked, gang=gang, avoided=avoided))
    assert find_fault(context, gang_of(record, pod), ()) == ""
