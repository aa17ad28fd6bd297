"""Authors are told of devices that cannot be attached, also once they are freed."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from contracts.avoidance import NodesAvoided
from contracts.claim import ResourceClaim
from contracts.ids import Namespace
from contracts.messages import (
    MAX_REASON,
    CancelGang,
    GatesOpened,
    SubmitGang,
)
from contracts.workload import Pod
from publisher.gangs.context import NextSteps, PlanContext
from publisher.gangs.plan_gang import plan_gang
from publisher.gangs.running.attachment import (
    advise_deletion,
    find_unattached,
    report_unattached,
)
from publisher.gangs.running.avoidance import find_avoidance
from tests import builders
from tests.builders.decisions import CLUSTER, gang_allocated, gang_pending
from tests.builders.plans import (
    NOW,
    context_of,
    record_of,
    submission_of,
    view_of,
)
from tests.builders.pods import real_claim, refused_pod

DECISION = gang_allocated()
OPENED = GatesOpened(
    cluster=DECISION.cluster,
    namespace=DECISION.namespace,
    uid=DECISION.uid,
    attempt=1,
    state=1,
)
LATER = "2026-11-20T12:10:00Z"
DEVICE = f"{builders.DRIVER}/{builders.NODE}/gpu-0"
WORDS = f"device {DEVICE} of pod a could not be attached to node {builders.NODE}"
FREED = real_claim("a-gpus")


def pinned(owner: str = "", reason: str = "SchedulingGated", **fields: Any) -> Pod:
    return refused_pod(
        "a",
        builders.NODE,
        reason=reason,
        gang="train",
        size=1,
        templates=["gpus"],
        owner=owner,
        **fields,
    )


def failing(message: str = "no path", *, is_said: bool = True) -> ResourceClaim:
    result = builders.result(
        binding_conditions=("attached",), binding_failure_conditions=("failed",)
    )
    claim = real_claim("a-gpus", allocated=builders.allocation(result), reserved=["a"])
    condition = {"type": "failed", "status": "True", "message": message}
    names = {"driver": result.driver, "pool": result.pool, "device": result.device}
    said = ({**names, "conditions": [condition]},)
    assert claim.status is not None
    status = replace(claim.status, devices=said if is_said else ())
    return replace(claim, status=status)


def situation(
    pod: Pod,
    claim: ResourceClaim,
    *known: NodesAvoided,
    recovery: str = "Report",
    now: str = NOW,
) -> PlanContext:
    message = submission_of((pod,))
    spec = replace(message.gang.spec, recovery=recovery)
    message = replace(message, gang=replace(message.gang, spec=spec))
    view = view_of([pod], [claim], nodes=(builders.NODE, "other"))
    by_name = {said.name: said for said in known}
    record = record_of(message, DECISION, OPENED)
    return replace(context_of(view, record), avoided=by_name.get, now=now)


def remembered(pod: Pod, **fields: Any) -> NodesAvoided:
    (said,) = (
        message
        for message in plan_gang(situation(pod, failing())).messages
        if isinstance(message, NodesAvoided)
    )
    return replace(said, **fields)


def reports(plan: NextSteps) -> list[tuple[str, str]]:
    return [(report.reason, report.message) for report in plan.reports if report.reason]


def test_the_author_is_told_at_once_what_to_do() -> None:
    pod = pinned()
    ((reason, message),) = reports(plan_gang(situation(pod, failing())))
    assert reason == "DeviceNotAttached"
    assert message.startswith(f"{WORDS} (condition failed: no path); ")
    assert "delete it, and its replacement avoids the node" in message


def test_advice_is_never_cut_off() -> None:
    pod = pinned()
    context = situation(pod, failing("x" * 1000))
    report = advise_deletion(report_unattached(context, [pod]))
    assert len(report.message) == MAX_REASON
    assert report.message.endswith("(recovery: Recreate does so by itself)")


def test_the_gang_avoids_the_node() -> None:
    pod = pinned()
    said = remembered(pod)
    (node,) = said.nodes
    assert (node.node, node.device, node.pod_uid) == (builders.NODE, DEVICE, "uid-a")
    assert find_avoidance(situation(pod, FREED, said), (pod,)).nodes == (node,)
    assert str(node) == (
        f"node {builders.NODE} avoided: device {DEVICE} could not be attached to it "
        "for pod a: condition failed: no path"
    )


def test_it_is_remembered_when_kube_scheduler_refuses_the_node_as_well() -> None:
    """Beside what was said of the node before."""
    pod = pinned()
    (node,) = remembered(pod).nodes
    before = replace(node, device="", message="0/2 nodes")
    known = remembered(pod, nodes=(before,))
    plan = plan_gang(situation(pod, failing(), known))
    assert remembered(pod, nodes=(before, node)) in plan.messages
    plan = plan_gang(situation(pod, failing(), remembered(pod)))
    assert not any(isinstance(message, NodesAvoided) for message in plan.messages)


def test_two_pods_with_such_devices_on_one_node_are_both_remembered() -> None:
    """And not in turns: each plan would have news."""
    pod, other = (
        pinned(),
        refused_pod("b", builders.NODE, gang="train", templates=["gpus"]),
    )
    claim = failing()
    second = replace(claim, metadata=replace(claim.metadata, name="b-gpus"))
    context = situation(pod, claim)
    context.view.apply_claim(f"{builders.NAMESPACE}/b-gpus", second)
    context.view.apply_pod(f"{builders.NAMESPACE}/b", other)
    context = replace(context, records=())
    (said,) = plan_gang(context).messages
    assert isinstance(said, NodesAvoided)
    assert [node.pod for node in said.nodes] == ["a", "b"]
    again = replace(context, avoided={"train": said}.get)
    assert plan_gang(again).messages == ()
    assert len(find_unattached(again, again.pods)) == 2


def test_pods_are_made_anew_where_their_author_wants_that() -> None:
    pod = pinned(owner="job")
    plan = plan_gang(situation(pod, failing(), recovery="Recreate"))
    avoided, command = plan.messages
    assert isinstance(avoided, NodesAvoided)
    assert avoided.recreations == 1
    assert isinstance(command, CancelGang)
    assert command.recreate
    assert WORDS in command.reason


def test_a_pod_that_was_freed_is_asked_for_again_on_its_node() -> None:
    """As another device there may do; its author is told meanwhile."""
    pod = pinned()
    plan = plan_gang(situation(pod, FREED, remembered(pod)))
    ((reason, message),) = reports(plan)
    assert (reason, message.startswith(WORDS)) == ("DeviceNotAttached", True)
    (asked,) = plan.messages
    assert isinstance(asked, SubmitGang)
    assert asked.avoided == ()


def test_a_failure_counts_though_the_claim_was_freed_before_anybody_looked() -> None:
    """On a busy machine both changes are taken in together."""
    pod = pinned()
    context = situation(pod, failing())
    context.view.apply_claim(f"{builders.NAMESPACE}/a-gpus", FREED)
    plan = plan_gang(context)
    ((reason, message),) = reports(plan)
    assert (reason, message.startswith(WORDS)) == ("DeviceNotAttached", True)
    assert remembered(pod) in plan.messages
    again = plan_gang(replace(context, avoided=lambda _name: remembered(pod)))
    assert not any(isinstance(message, NodesAvoided) for message in again.messages)


def test_the_author_is_told_while_it_waits_for_another_device() -> None:
    pod = pinned(opened_by="the-gang-before")
    context = situation(pod, FREED, remembered(pod))
    record = record_of(submission_of((pod,)), gang_pending())
    plan = plan_gang(replace(context, records=(record,)))
    assert [reason for reason, _ in reports(plan)] == ["Undecided", "DeviceNotAttached"]


def test_a_pod_that_was_freed_waits_for_the_pause_before_it_is_made_anew() -> None:
    """Its node would be asked for again otherwise."""
    pod = pinned(owner="job")
    said = remembered(pod, recreations=1, recreated_at=NOW)
    plan = plan_gang(situation(pod, FREED, said, recovery="Recreate"))
    ((reason, message),) = reports(plan)
    assert reason == "DeviceNotAttached"
    assert message.endswith("and will be again after a pause")
    assert not plan.messages
    assert plan.kept == {"uid-a"}
    after = plan_gang(situation(pod, FREED, said, recovery="Recreate", now=LATER))
    assert any(isinstance(message, CancelGang) for message in after.messages)


def test_kube_scheduler_waits_only_for_so_long() -> None:
    words = "running PreBind plugin: device binding timeout: claim=a-gpus"
    pod = pinned(reason="SchedulerError", message=words)
    plan = plan_gang(situation(pod, failing(is_said=False)))
    ((reason, message),) = reports(plan)
    assert reason == "DeviceNotAttached"
    assert message.startswith(f"{WORDS} ({words}); ")


def test_the_author_is_told_until_another_device_is_attached() -> None:
    """Unless kube-scheduler has something else to say by then."""
    pod = pinned()
    held = real_claim("a-gpus", allocated=builders.allocation(), reserved=["a"])
    context = situation(pod, held, remembered(pod))
    assert reports(plan_gang(context)) == reports(plan_gang(situation(pod, failing())))
    bound = pinned(node=builders.NODE)
    assert reports(plan_gang(situation(bound, held, remembered(pod)))) == []
    refused = pinned(reason="Unschedulable")
    plan = plan_gang(replace(situation(refused, held, remembered(pod)), grace_s=0))
    assert [reason for reason, _ in reports(plan)] == ["SchedulerRefused"]


def test_a_pod_that_is_bound_has_its_device() -> None:
    pod = pinned(node=builders.NODE)
    assert find_unattached(situation(pod, failing()), [pod]) == ()


def test_other_refusals_say_nothing_of_a_device() -> None:
    pod = pinned()
    (node,) = remembered(pod).nodes
    for other in (replace(node, device=""), replace(node, pod_uid="another")):
        said = NodesAvoided(
            cluster=CLUSTER,
            namespace=Namespace(builders.NAMESPACE),
            name="train",
            nodes=(other,),
        )
        assert find_unattached(situation(pod, FREED, said), [pod]) == ()
