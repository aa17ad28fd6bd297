"""A gang is made anew for failures that its author lists, with pauses and a limit."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from contracts.avoidance import NodesAvoided
from contracts.claim import ResourceClaim
from contracts.ids import GangUID, Namespace
from contracts.messages import CancelGang
from contracts.names import GANG_UID
from contracts.workload import Pod
from publisher.gangs.context import NextSteps, PlanContext, StatusReport
from publisher.gangs.plan_gang import plan_gang
from publisher.gangs.running.device_failures import find_failed_devices
from tests import builders
from tests.builders.decisions import CLUSTER
from tests.builders.plans import (
    NOW,
    context_of,
    gang_of,
    opened_record_of,
    submission_of,
    view_of,
)
from tests.builders.pods import disrupted, real_claim, waiting_pod

LATER = "2026-11-20T12:02:00Z"
DEVICE = f"{builders.DRIVER}/{builders.NODE}/gpu-0"
XID = "Xid79: fell off the bus"
TAINTED = "DeletionByDeviceTaintManager"


def runner(name: str) -> Pod:
    return waiting_pod(
        name,
        gang="train",
        size=2,
        templates=["gpus"],
        opened_by=builders.UID,
        node=builders.NODE,
        phase="Running",
        owner="job",
    )


PODS = (runner("a"), runner("b"))


def holding(
    name: str, message: str = "", reason: str = "Unhealthy", status: str = "False"
) -> ResourceClaim:
    """Make the claim of a pod; `message`: its device is not ready."""
    result = builders.result("gpu-0" if name == "a" else "gpu-1")
    claim = real_claim(
        f"{name}-gpus", allocated=builders.allocation(result), reserved=[name]
    )
    names = {"driver": result.driver, "pool": result.pool, "device": result.device}
    condition = {
        "type": "Ready",
        "status": status,
        "reason": reason,
        "message": message,
    }
    assert claim.status is not None
    said = ({**names, "conditions": [condition]},) if message else ()
    return replace(claim, status=replace(claim.status, devices=said))


def situation(
    *claims: ResourceClaim,
    recovery: str = "Recreate",
    listed: tuple[str, ...] = ("Xid79",),
    limit: int | None = None,
    made_anew: int = 0,
    now: str = NOW,
) -> PlanContext:
    """Let two pods run; they were made anew so many times, the last time now."""
    message = submission_of(PODS)
    spec = replace(
        message.gang.spec,
        recovery=recovery,
        on_device_failure=listed,
        max_recreations=limit,
    )
    message = replace(message, gang=replace(message.gang, spec=spec))
    said = NodesAvoided(
        cluster=CLUSTER,
        namespace=Namespace(builders.NAMESPACE),
        name="train",
        recreations=made_anew,
        recreated_at=NOW,
    )
    view = view_of(PODS, claims or (holding("a", XID), holding("b")))
    record = opened_record_of(message, opened=2)
    return replace(context_of(view, record), avoided=lambda _: said, now=now)


def told(plan: NextSteps) -> list[str]:
    return [f"{each.reason}: {each.message}" for each in plan.reports if each.reason]


def is_made_anew(plan: NextSteps) -> bool:
    return any(isinstance(each, CancelGang) and each.recreate for each in plan.messages)


def look(listed: tuple[str, ...], *claims: ResourceClaim) -> StatusReport | None:
    context = situation(*claims)
    return find_failed_devices(context, gang_of(context.records[0], *PODS), listed)


def test_a_reason_is_the_condition_s_or_the_agent_s_code() -> None:
    claims = holding("a", XID), holding("b")
    for listed in (("Unhealthy",), ("Xid79", "LinkDown")):
        report = look(listed, *claims)
        assert report is not None
        assert report.message == f"device {DEVICE} of pod a: Unhealthy: {XID}"
        assert report.pods == PODS[:1]
    for other in ("LinkDown", "Healthy", "fell"):
        assert look((other,), *claims) is None
    silent = holding("a", "no reading", reason="HealthUnknown", status="Unknown")
    assert look(("Unhealthy",), silent) is None
    assert look(("HealthUnknown",), silent) is not None
    again = holding("a", "The device is healthy again.", "Healthy", status="True")
    assert look(("Healthy",), again) is None


def test_all_pods_are_made_anew_at_once_and_it_is_counted() -> None:
    plan = plan_gang(situation())
    counted, command = plan.messages
    assert isinstance(counted, NodesAvoided)
    assert (counted.recreations, counted.recreated_at) == (1, NOW)
    assert isinstance(command, CancelGang)
    assert command.recreate
    assert command.reason.startswith(f"publisher: DeviceFailed: device {DEVICE} of pod")
    assert plan.leaving == {"uid-a", "uid-b"}


def test_a_gang_goes_as_a_whole_with_a_pod_that_replaced_another() -> None:
    """Each was decided by itself; it counts once."""
    context = situation(holding("a"))
    (record,) = context.records
    third = replace(runner("c"), metadata=replace(runner("c").metadata, uid="uid-c"))
    third.metadata.annotations[GANG_UID] = "again"
    again = replace(submission_of((third,)), uid=GangUID("again"), restores=2)
    assert record.submission is not None
    again = replace(
        again,
        gang=replace(
            again.gang,
            spec=replace(record.submission.gang.spec, members=again.gang.spec.members),
        ),
    )
    for key, pod in (("b", None), ("c", third)):
        context.view.apply_pod(f"{builders.NAMESPACE}/{key}", pod)
    context.view.apply_claim(f"{builders.NAMESPACE}/c-gpus", holding("c", XID))
    records = (record, opened_record_of(again, opened=1))
    plan = plan_gang(replace(context, records=records))
    assert plan.leaving == {"uid-a", "uid-c"}
    commands = [each for each in plan.messages if isinstance(each, CancelGang)]
    assert {each.uid for each in commands} == {builders.UID, "again"}
    (counted,) = (each for each in plan.messages if isinstance(each, NodesAvoided))
    assert counted.recreations == 1


def test_nothing_happens_by_default_or_if_its_author_wants_a_report() -> None:
    for context in (situation(listed=()), situation(recovery="Report")):
        plan = plan_gang(context)
        assert told(plan) == []
        assert plan.messages == ()


def test_it_waits_for_a_pause_that_grows() -> None:
    plan = plan_gang(situation(made_anew=2))
    assert not is_made_anew(plan)
    assert plan.look_again_s == 120
    (text,) = told(plan)
    assert text.endswith("and will be again after a pause")
    assert is_made_anew(plan_gang(situation(made_anew=2, now=LATER)))


def test_after_the_limit_it_stays_as_it_is_and_says_so() -> None:
    assert is_made_anew(plan_gang(situation(made_anew=1, limit=2, now=LATER)))
    plan = plan_gang(situation(made_anew=2, limit=2, now=LATER))
    assert not is_made_anew(plan)
    assert plan.look_again_s is None
    failed, exhausted = told(plan)
    assert failed == f"DeviceFailed: device {DEVICE} of pod a: Unhealthy: {XID}"
    assert exhausted == (
        "RecreationsExhausted: its pods were recreated 2 times, as often as its "
        f"maxRecreations says, and are not again: {failed}"
    )
    assert {report.recreations for report in plan.reports} == {2}


def test_what_a_taint_ended_is_paused_and_limited_too() -> None:
    """Nobody joins the rest in a pause; after the limit it is replaced."""

    def after(**how: Any) -> NextSteps:
        context = situation(holding("a"), **how)
        key = f"{builders.NAMESPACE}/b"
        context.view.apply_pod(key, disrupted(PODS[1], reason=TAINTED))
        context.view.apply_pod(key, None)
        again = waiting_pod(
            "b", gang="train", templates=["gpus"], uid="new", size=2, owner="job"
        )
        context.view.apply_pod(key, again)
        context.view.apply_claim(
            f"{builders.NAMESPACE}/b-gpus", real_claim("b-gpus", reserved=[])
        )
        return plan_gang(context)

    first = after()
    assert is_made_anew(first)
    assert any(isinstance(each, NodesAvoided) for each in first.messages)
    paused = after(made_anew=1)
    assert paused.messages == ()
    assert paused.look_again_s == 60
    assert any(text.startswith("GangBroken: 1 of 2") for text in told(paused))
    ended = after(made_anew=1, limit=1, now=LATER)
    assert not is_made_anew(ended)
    assert len(ended.messages) == 1
