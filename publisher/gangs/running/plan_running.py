"""What is left to do for pods whose gates are open.

Watches over them until all are over, and tells of those that cannot run as they were
placed: somebody took their devices, their node is gone, or kube-scheduler refuses them
there. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec.structs import replace

from contracts.counts import counted
from contracts.gang import GangPhase
from contracts.messages import MAX_REASON, GangAllocated, ReleaseGang
from contracts.workload import Pod
from publisher.gangs.context import GroupPlan, PlanContext, StatusReport, SubmittedGang
from publisher.gangs.members import Owns
from publisher.gangs.node_affinity import pinned_node_of
from publisher.gangs.rollback import find_withdrawn, plan_withdrawal
from publisher.gangs.running.recreation import plan_recreation, wants_recreation
from publisher.gangs.running.refusals import SCHEDULER_REFUSED, find_refusal
from publisher.gangs.view import View, claim_keys, is_gated, is_over, uids_of
from publisher.gangs.void_marks import is_void
from publisher.times import seconds_between

NAMED = 5
"""So many pods are named in a text."""


def plan_running(
    context: PlanContext, submitted: SubmittedGang, plan: GroupPlan
) -> frozenset[str]:
    """Watch over pods whose gates are open; give up those whose devices were lost.

    Returns the uids of the pods that stay with the gang.
    """
    record, view, owns = submitted.record, context.view, context.owns
    # First the pods that still wait, though all gates were said to be open: these were
    # withdrawn, and what they hold is taken back.
    withdrawn = [pod for pod in submitted.waiting if is_void(pod, record.uid)]
    plan.patches += plan_withdrawal(submitted, withdrawn, view)
    alive = submitted.alive
    if not alive:
        if record.command is None:
            plan.messages.append(ReleaseGang(**context.address(record)))
        return record.pods - find_withdrawn(submitted, view)
    # Then those that it answers for and that cannot run as they were placed.
    own_uids = uids_of(submitted.pods)
    lost = [
        pod
        for pod in alive
        if pod.metadata.uid in own_uids
        and not is_gated(pod)
        and is_lost(pod, view, owns)
    ]
    own = (pod for pod in alive if pod.metadata.uid in own_uids)
    refused = find_refused(context, own, plan)
    report = StatusReport(phase=GangPhase.RUNNING, decision=record.in_force)
    plan.doubted += lost or refused
    if lost:
        message = _describe_loss(lost, len(alive), view)
        report = replace(report, reason="PlacementLost", message=message)
    elif refused:
        report = _report_refused(refused, len(alive), decision=record.in_force)
    report = replace(report, pods=tuple(lost or refused))
    if report.reason and wants_recreation(context, record):
        if plan_recreation(context, submitted, report, plan, by_scheduler=not lost):
            return record.pods
    else:
        plan.reports.append(report)
    # Pods that were freed before they were bound may be asked for again.
    freed = uids_of(pod for pod in lost if is_displaced(pod, view, owns))
    return (record.pods | own_uids) - freed - find_withdrawn(submitted, view)


def report_misplaced(
    context: PlanContext, pods: Iterable[Pod], plan: GroupPlan
) -> Iterator[StatusReport]:
    """Tell of pods that no gang answers for and that cannot run where they were placed.

    Their devices are elsewhere, or kube-scheduler refuses them.
    """
    view, owns = context.view, context.owns
    for pod in pods:
        if is_gated(pod) or is_displaced(pod, view, owns):
            continue
        if is_lost(pod, view, owns):
            node = pinned_node_of(pod)
            text = f"its claims hold no devices of {node}, which it is pinned to"
            if not pod.spec.node_name and node not in view.nodes:
                text = f"node {node}, which it is pinned to, is gone"
            yield StatusReport(
                phase=GangPhase.RUNNING,
                reason="PlacementLost",
                message=text,
                pods=(pod,),
            )
        elif find_refused(context, (pod,), plan):
            yield _report_refused((pod,), 1)


def find_refused(
    context: PlanContext, pods: Iterable[Pod], plan: GroupPlan
) -> list[Pod]:
    """Return the pods that kube-scheduler has refused for longer than may pass.

    Others are looked at again in time. Where their devices are gone that is the reason.
    """
    refused = []
    for pod in pods:
        if find_refusal(pod) is None or is_lost(pod, context.view, context.owns):
            continue
        since = context.refused_since(pod.metadata.uid)
        left_s = context.grace_s - seconds_between(since or context.now, context.now)
        if left_s > 0:
            plan.look_again_in(left_s)
        else:
            refused.append(pod)
    return refused


def lacks_devices(pod: Pod, view: View, owns: Owns) -> bool:
    """Whether a pod has a claim that is gone, or one of ours that holds nothing."""
    for key in claim_keys(pod).values():
        claim = view.claim(key)
        if claim is None or (claim.allocation is None and owns(claim)):
            return True
    return False


def is_lost(pod: Pod, view: View, owns: Owns) -> bool:
    """Whether a pod whose gate is open cannot run as it was placed."""
    if lacks_devices(pod, view, owns):
        return True
    if pod.spec.node_name:
        return False
    node = pinned_node_of(pod)
    if node not in view.nodes:
        return True
    claims = (view.claim(key) for key in claim_keys(pod).values())
    allocations = (None if claim is None else claim.allocation for claim in claims)
    nodes = {held.only_node for held in allocations if held is not None}
    return not nodes <= {"", node}


def is_displaced(pod: Pod, view: View, owns: Owns) -> bool:
    """Whether somebody freed the devices of a pod before it was bound."""
    if is_gated(pod) or is_over(pod) or pod.spec.node_name:
        return False
    return lacks_devices(pod, view, owns)


def _describe_loss(lost: Sequence[Pod], alive: int, view: View) -> str:
    """Say what became of pods that cannot run as they were placed."""
    unbound = [pod for pod in lost if not pod.spec.node_name]
    gone = sorted(
        node for node in set(map(pinned_node_of, unbound)) if node not in view.nodes
    )
    names = ", ".join(pod.metadata.name for pod in lost[:NAMED])
    if not gone:
        those = f"{len(lost)} of {counted(alive, 'pod')}"
        return f"somebody took the devices of {those}: {names}"
    return (
        f"{len(lost)} of {counted(alive, 'pod')} cannot run where they were placed: "
        f"{names}; gone are the nodes {', '.join(gone[:NAMED])}"
    )


def _report_refused(
    refused: Sequence[Pod], alive: int, decision: GangAllocated | None = None
) -> StatusReport:
    """Tell of pods that kube-scheduler refuses, with its own words."""
    said: dict[str, list[str]] = {}
    for pod in refused:
        refusal = find_refusal(pod)
        words = "" if refusal is None else f"{refusal.reason}: {refusal.message}"
        where = f"{pod.metadata.name} on {pinned_node_of(pod)}"
        said.setdefault(words, []).append(where)
    texts = (f"{', '.join(where[:NAMED])}: {words}" for words, where in said.items())
    head = (
        f"kube-scheduler refuses {len(refused)} of {counted(alive, 'pod')} on the "
        "nodes that they are pinned to, which have their devices: "
    )
    return StatusReport(
        phase=GangPhase.RUNNING,
        reason=SCHEDULER_REFUSED,
        message=f"{head}{'; '.join(texts)}"[:MAX_REASON],
        pods=tuple(refused),
        decision=decision,
    )
