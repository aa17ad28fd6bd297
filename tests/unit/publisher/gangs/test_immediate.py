"""What comes next for a claim that is allocated without a pod, and kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from contracts.claim import ResourceClaim
from contracts.gang import GangPhase
from contracts.ids import DeviceName, DriverName, GangUID, PoolID, PoolName
from contracts.lifecycle import LifecycleMessage
from contracts.messages import (
    AllocationLost,
    AllocationRefused,
    AllocationWritten,
    CancelGang,
    ClaimsReleased,
    GangRejected,
    ReleaseGang,
    ReleaseOutcome,
    SubmitGang,
)
from contracts.names import FINALIZER, IMMEDIATE, OF_CLAIM, WORKLOAD
from contracts.reports import WAITING
from publisher.gangs.claim_users import ENDLESS
from publisher.gangs.context import NextSteps, PlanContext
from publisher.gangs.offered_devices import OfferedSlice
from publisher.gangs.patches import Purpose
from publisher.gangs.plan_gang import plan_gang
from publisher.gangs.records import PodGangRecord
from publisher.gangs.view import GroupKey, View
from tests import builders
from tests.builders.decisions import (
    gang_allocated,
    gang_pending,
    gang_released,
    member_allocated,
)
from tests.builders.plans import context_of, record_of, view_of
from tests.builders.pods import real_claim, uid_of, waiting_pod

NS = builders.NAMESPACE
KEY = f"{NS}/data"
GROUP = GroupKey(NS, "data", api=OF_CLAIM)
GIVEN = member_allocated(gang="data", member="claim", claim="claim", name="data")
HELD = GIVEN.claims[0].allocation
OTHER = builders.allocation(builders.result("gpu-7"))


def claim(*, label: str | None = IMMEDIATE, **fields: Any) -> ResourceClaim:
    made = real_claim("data", **fields)
    return made if label is None else builders.labelled(made, label)


def look(view: View, *records: PodGangRecord, **fields: Any) -> PlanContext:
    return replace(context_of(view, *records), group=GROUP, **fields)


def plan(*claims: ResourceClaim, record: PodGangRecord | None = None) -> NextSteps:
    records = () if record is None else (record,)
    return plan_gang(look(view_of(claims=claims), *records))


def submit(made: ResourceClaim | None = None) -> SubmitGang:
    """Give what is submitted for a claim."""
    (message,) = plan(made or claim()).messages
    assert isinstance(message, SubmitGang)
    return message


UID = submit().uid
IDS: dict[str, Any] = {"cluster": submit().cluster, "namespace": NS, "uid": UID}
DECIDED = gang_allocated(GIVEN, name="data", uid=UID)
WRITTEN = AllocationWritten(**IDS, attempt=1)
FREED = ClaimsReleased(**IDS)
ENDED = gang_released(UID)


def submitted(*messages: LifecycleMessage) -> PodGangRecord:
    return record_of(submit(), *messages)


def purposes(steps: NextSteps) -> list[Purpose]:
    return [patch.purpose for patch in steps.patches]


def said(steps: NextSteps) -> list[type]:
    return list(map(type, steps.messages))


# --- until it is decided --------------------------------------------------------------


def test_a_claim_with_the_label_is_a_gang_of_one_without_pods() -> None:
    message = submit()
    (member,) = message.gang.spec.members
    assert (member.count, message.places) == (1, {})
    (asked,) = member.claims
    assert (asked.claim_name, asked.spec) == ("data", claim().spec)
    assert message.gang.metadata.annotations == {WORKLOAD: f"{OF_CLAIM}/data"}
    assert record_of(message).group == GROUP


def test_two_publishers_submit_the_same_and_another_claim_is_another_gang() -> None:
    assert submit() == submit()
    assert submit(claim(uid="another")).uid != UID
    name = "long." * 40 + "name"
    context = replace(look(view_of()), group=GroupKey(NS, name, api=OF_CLAIM))
    made = claim()
    made = replace(made, metadata=replace(made.metadata, name=name))
    context.view.apply_claim(f"{NS}/{name}", made)
    (message,) = plan_gang(context).messages
    assert isinstance(message, SubmitGang)
    assert len(message.gang.metadata.name) <= 63
    assert record_of(message).group == context.group


@pytest.mark.parametrize(
    "made",
    [
        claim(label=None),
        claim(label="immediate"),
        claim(deleting=True),
        claim(allocated=OTHER),
    ],
    ids=["without", "misspelt", "deleted", "allocated"],
)
def test_others_are_not_asked_for(made: ResourceClaim) -> None:
    assert plan(made) == NextSteps()


def test_a_claim_that_is_not_ours_is_left_to_kube_scheduler() -> None:
    context = look(view_of(claims=[claim()]), owns=lambda _: False)
    assert plan_gang(context) == NextSteps()


def test_what_somebody_else_allocated_is_left_alone_and_told() -> None:
    steps = plan(claim(allocated=OTHER, managed=False))
    assert (steps.patches, steps.messages) == ((), ())
    assert [(r.phase, r.reason) for r in steps.reports] == [(WAITING, "ClaimsTaken")]


def test_its_finalizer_comes_ahead_of_the_decision_and_the_reason_is_told() -> None:
    record = submitted(replace(gang_pending(UID), name="data"))
    steps = plan(claim(managed=False), record=record)
    assert purposes(steps) == [Purpose.PREPARE]
    assert [report.phase for report in steps.reports] == [GangPhase.PENDING]


def test_who_allocates_it_first_ends_the_submission() -> None:
    steps = plan(claim(allocated=OTHER), record=submitted())
    assert said(steps) == [CancelGang]
    steps = plan(claim(allocated=OTHER), record=submitted(DECIDED, WRITTEN))
    assert said(steps) == [CancelGang]
    assert not steps.patches


# --- what is decided is written, as often as it is lost -------------------------------


def test_finalizer_then_allocation_then_its_confirmation() -> None:
    record = submitted(DECIDED)
    assert purposes(plan(claim(managed=False), record=record)) == [Purpose.PREPARE]
    (patch,) = plan(claim(), record=record).patches
    assert patch.purpose is Purpose.ALLOCATE
    assert (patch.gang, patch.attempt) == (UID, 1)
    status = patch.body["status"]
    assert status["reservedFor"] == []
    assert status["allocation"]["allocationTimestamp"]
    steps = plan(claim(allocated=HELD), record=record)
    assert (said(steps), steps.patches) == ([AllocationWritten], ())


def test_a_held_claim_is_reported_and_left_as_it_is() -> None:
    steps = plan(claim(allocated=HELD), record=submitted(DECIDED, WRITTEN))
    (report,) = steps.reports
    assert (report.phase, report.reason) == (GangPhase.ALLOCATED, "")
    assert report.decision == DECIDED
    assert (steps.patches, steps.messages) == ((), ())


def test_a_claim_that_was_freed_gets_the_same_devices_again() -> None:
    """kube-controller-manager takes allocation and finalizer with the last user."""
    record = submitted(DECIDED, WRITTEN)
    assert purposes(plan(claim(managed=False), record=record)) == [Purpose.PREPARE]
    (patch,) = plan(claim(), record=record).patches
    results = patch.body["status"]["allocation"]["devices"]["results"]
    assert [item["device"] for item in results] == ["gpu-0"]


def test_a_held_claim_without_the_finalizer_gets_it_back() -> None:
    made = claim(allocated=HELD)
    made = replace(made, metadata=replace(made.metadata, finalizers=()))
    (patch,) = plan(made, record=submitted(DECIDED, WRITTEN)).patches
    assert patch.body["metadata"]["finalizers"] == [FINALIZER]


def without_node(view: View) -> None:
    view.apply_node(builders.NODE, None)


def with_another_holder(view: View) -> None:
    view.apply_claim(f"{NS}/other", real_claim("other", allocated=HELD))


def without_device(view: View) -> None:
    (result,) = HELD.devices.results
    pool = PoolID(DriverName(result.driver), PoolName(result.pool))
    view.offered.apply_slice(
        "s", OfferedSlice(pool, 1, 1, frozenset({DeviceName("gpu-9")}))
    )


@pytest.mark.parametrize(
    ("happen", "words"),
    [
        (without_node, "is gone"),
        (with_another_holder, "is held by ResourceClaim team-a/other"),
        (without_device, "no ResourceSlice offers device"),
    ],
)
def test_what_cannot_be_had_any_more_is_decided_again(
    happen: Callable[[View], None], words: str
) -> None:
    view = view_of(claims=[claim()])
    happen(view)
    (message,) = plan_gang(look(view, submitted(DECIDED))).messages
    assert isinstance(message, AllocationRefused)
    assert words in message.reason
    (message,) = plan_gang(look(view, submitted(DECIDED, WRITTEN))).messages
    assert isinstance(message, AllocationLost)


def test_what_the_api_server_refuses_is_decided_again() -> None:
    view = view_of(claims=[claim()])
    context = look(view, submitted(DECIDED), refused=lambda *_: "no")
    assert said(plan_gang(context)) == [AllocationRefused]


def test_a_device_that_is_withdrawn_is_told_of() -> None:
    view = view_of(claims=[claim(allocated=HELD)])
    without_device(view)
    steps = plan_gang(look(view, submitted(DECIDED, WRITTEN)))
    assert [report.reason for report in steps.reports] == ["DeviceRemoved"]


def test_nothing_is_written_while_a_finished_pod_has_the_claim_freed() -> None:
    """A few times it is no loop; once the pod is gone it is written."""
    view = view_of(claims=[claim()])
    pod = waiting_pod(
        "user", shared={"d": "data"}, opened_by="x", node="n", phase="Succeeded"
    )
    assert GROUP in view.apply_pod(f"{NS}/user", pod)
    context = look(view, submitted(DECIDED, WRITTEN))
    assert purposes(plan_gang(context)) == [Purpose.ALLOCATE]
    for version in range(2, 2 + ENDLESS):
        held = claim(allocated=HELD, reserved=["user"], version=2 * version)
        view.apply_claim(KEY, held)
        view.apply_claim(KEY, claim(version=2 * version + 1))
    steps = plan_gang(context)
    assert not steps.patches
    assert [report.reason for report in steps.reports] == ["FinishedPodInTheWay"]
    assert GROUP in view.apply_pod(f"{NS}/user", None)
    assert purposes(plan_gang(context)) == [Purpose.ALLOCATE]


# --- the end --------------------------------------------------------------------------


def test_a_deleted_claim_is_released_once_kubernetes_has_freed_it() -> None:
    record = submitted(DECIDED, WRITTEN)
    assert plan(claim(allocated=HELD, deleting=True), record=record) == NextSteps()
    assert said(plan(claim(deleting=True), record=record)) == [ReleaseGang]
    assert said(plan(record=record)) == [ReleaseGang]
    other = plan(claim(uid="another"), record=record)
    assert said(other) == [ReleaseGang, SubmitGang]


def test_a_claim_without_the_label_is_one_like_any_other() -> None:
    steps = plan(claim(label=None, allocated=HELD), record=submitted(DECIDED, WRITTEN))
    assert (said(steps), steps.patches) == ([CancelGang], ())


def test_nothing_is_held_then_that_is_said_then_it_is_forgotten() -> None:
    command = ReleaseGang(**IDS)
    record = submitted(DECIDED, WRITTEN, command)
    assert plan(record=record) == NextSteps()
    record = submitted(DECIDED, WRITTEN, ENDED)
    assert plan(record=record) == NextSteps()
    record = submitted(DECIDED, WRITTEN, command, ENDED)
    assert said(plan(record=record)) == [ClaimsReleased]
    record = submitted(DECIDED, WRITTEN, command, ENDED, FREED)
    assert plan(record=record) == NextSteps(forget=(UID,))


def test_a_claim_that_is_back_after_its_end_is_asked_for_again() -> None:
    """As after a restored backup; what a user releases is released."""
    (command,) = plan(record=submitted(DECIDED, WRITTEN)).messages
    assert isinstance(command, ReleaseGang)
    record = submitted(DECIDED, WRITTEN, command, ENDED, FREED)
    assert plan(claim(), record=record) == NextSteps(forget=(UID,))
    record = submitted(DECIDED, WRITTEN, ReleaseGang(**IDS), ENDED, FREED)
    (report,) = plan(claim(), record=record).reports
    assert report.reason == "Cancelled"


def test_a_claim_that_was_given_up_is_asked_for_again() -> None:
    (command,) = plan(claim(allocated=OTHER), record=submitted()).messages
    assert isinstance(command, CancelGang)
    over = replace(ENDED, outcome=ReleaseOutcome.CANCELLED)
    record = submitted(command, over, FREED)
    assert plan(claim(), record=record).forget == (UID,)
    known = {UID: True}
    context = look(view_of(claims=[claim()]), forgotten=known.get)
    (message,) = plan_gang(context).messages
    assert isinstance(message, SubmitGang)
    assert message.uid != UID
    assert message.gang.metadata.generation == 2


def test_a_claim_that_somebody_cancelled_gives_its_devices_back_and_waits() -> None:
    record = submitted(DECIDED, WRITTEN, CancelGang(**IDS), ENDED)
    assert purposes(plan(claim(allocated=HELD), record=record)) == [Purpose.CLEAR]
    used = claim(allocated=HELD, reserved=["user"])
    assert said(plan(used, record=record)) == [ClaimsReleased]
    steps = plan(claim(), record=submitted(DECIDED, CancelGang(**IDS), ENDED, FREED))
    assert [report.reason for report in steps.reports] == ["Cancelled"]
    assert (steps.messages, steps.forget) == ((), ())


def test_a_gang_that_was_cancelled_leaves_its_successor_alone() -> None:
    """The label went and came again, and another publisher had forgotten the first."""
    context = look(view_of(claims=[claim()]), forgotten={UID: False}.get)
    (again,) = plan_gang(context).messages
    assert isinstance(again, SubmitGang)
    first = submitted(DECIDED, CancelGang(**IDS), ENDED, FREED)
    decided = gang_allocated(GIVEN, name="data", uid=again.uid)
    written = AllocationWritten(**{**IDS, "uid": again.uid}, attempt=1)
    second = record_of(again, decided, written)
    view = view_of(claims=[claim(allocated=HELD)])
    steps = plan_gang(look(view, first, second))
    assert (steps.patches, steps.messages, steps.forget) == ((), (), (UID,))


def test_a_claim_that_can_never_fit_is_told_why() -> None:
    record = submitted(GangRejected(**IDS, name="data", epoch=1))
    steps = plan(claim(), record=record)
    assert [report.phase for report in steps.reports] == [GangPhase.REJECTED]
    assert (steps.messages, steps.forget) == ((), ())
    assert plan(record=record).forget == (UID,)


def test_what_others_submit_in_its_name_is_released() -> None:
    foreign = replace(submit(), uid=GangUID("foreign"))
    steps = plan(claim(), record=record_of(foreign))
    assert said(steps) == [ReleaseGang, SubmitGang]
    released = steps.messages[0]
    assert isinstance(released, ReleaseGang)
    assert released.uid == "foreign"


# --- pods that use it -----------------------------------------------------------------


def test_pods_wait_for_it_and_are_bound_to_it_then() -> None:
    """They ask for none of its devices, and free none of them."""
    pod = waiting_pod("user", shared={"d": "data"})
    view = view_of([pod], [claim()])
    lone = view.group_of(pod)
    steps = plan_gang(replace(context_of(view), group=lone))
    assert [report.reason for report in steps.reports] == ["ClaimShared"]
    view.apply_claim(KEY, claim(allocated=HELD, version=2))
    steps = plan_gang(replace(context_of(view), group=lone))
    (message,) = steps.messages
    assert isinstance(message, SubmitGang)
    (member,) = message.gang.spec.members
    assert (member.claims, steps.patches) == ((), ())
    assert builders.NODE in str(member.node)


def test_it_is_a_group_of_the_view_until_it_is_gone() -> None:
    view = view_of()
    seen = [claim(), claim(label=None), claim(), claim(deleting=True)]
    for version, made in enumerate(seen, start=1):
        meta = replace(made.metadata, resource_version=str(version))
        assert GROUP in view.apply_claim(KEY, replace(made, metadata=meta))
    assert list(view.groups()) == [GROUP]
    assert GROUP in view.apply_claim(KEY, None, uid_of("data"))
    assert list(view.groups()) == []
    assert not view.has_group(GROUP)
