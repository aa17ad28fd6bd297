"""What is left to do for pods whose gates are open.

They are watched until all are over. Their authors are told of pods that cannot run
where they were placed: somebody took their devices, their node is gone, a device cannot
be attached to it, or kube-scheduler refuses them there; of a gang that runs on in
parts, as Kubernetes ended some of its pods; and of devices that failed. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from contracts.counts import counted
from contracts.gang import GangPhase
from contracts.lifecycle import PUBLISHER
from contracts.messages import MAX_REASON, CancelGang, GangAllocated, ReleaseGang
from contracts.workload import Pod
from publisher.gangs.context import NextSteps, PlanContext, StatusReport, SubmittedGang
from publisher.gangs.node_affinity import pinned_node_of
from publisher.gangs.records import PodGangRecord
from publisher.gangs.rollback import find_withdrawn, plan_withdrawal
from publisher.gangs.running.attachment import (
    DEVICE_NOT_ATTACHED,
    advise_deletion,
    find_unattached,
    report_unattached,
)
from publisher.gangs.running.avoidance import (
    SCHEDULER_REFUSED,
    find_failure,
    find_refusal,
)
from publisher.gangs.running.broken_gangs import (
    GANG_BROKEN,
    describe_end,
    find_broken,
)
from publisher.gangs.running.device_failures import find_failed_devices
from publisher.gangs.running.overruns import plan_overrun
from publisher.gangs.running.recreation import find_recreation, plan_recreation
from publisher.gangs.view import View, claim_keys, is_gated, is_over, uids_of
from publisher.gangs.void_marks import is_void
from publisher.times import seconds_between

NAMED = 5
"""So many pods are named in a text."""


def plan_running(context: PlanContext, submitted: SubmittedGang) -> NextSteps:
    """Watch over pods whose gates are open; give up those whose devices were lost."""
    record, view = submitted.record, context.view
    # First the pods that still wait, though all gates were said to be open: these were
    # withdrawn, and what they hold is taken back.
    withdrawn = [pod for pod in submitted.waiting if is_void(pod, record.uid)]
    taken_back = plan_withdrawal(submitted, withdrawn, view)
    steps = NextSteps(patches=tuple(taken_back))
    own_uids = uids_of(submitted.pods)
    free = find_withdrawn(submitted, view)
    if not submitted.alive:
        return steps + _plan_end(context, record) + NextSteps(kept=record.pods - free)
    # Then those that it answers for and that cannot run as they were placed.
    own = [pod for pod in submitted.alive if pod.metadata.uid in own_uids]
    refused = find_refused(context, own).pods
    unattached = find_unattached(context, own, uids_of(refused))
    told = uids_of(unattached)
    others = [pod for pod in own if pod.metadata.uid not in told]
    lost = [pod for pod in others if not is_gated(pod) and is_lost(pod, context)]
    steps += NextSteps(doubted=tuple(lost or unattached or refused))
    report = _report_running(context, submitted, lost, unattached, refused)
    may_recur = bool(report.reason) and not lost
    # Then what others took from the gang: it runs on in parts.
    wanted = find_recreation(context, record)
    broken = find_broken(context, submitted)
    if broken is not None and report.reason:
        steps += NextSteps(reports=(broken.report,))
    elif broken is not None:
        report, may_recur = broken.report, broken.by_device
    elif not report.reason and wanted is not None and wanted.on_device_failure:
        failed = find_failed_devices(context, submitted, wanted.on_device_failure)
        if failed is not None:
            report, may_recur = failed, True
    is_paused = False
    if report.reason and wanted is not None:
        again = plan_recreation(
            context,
            submitted,
            report,
            may_recur=may_recur,
            limit=wanted.max_recreations,
        )
        is_paused = again.look_again_s is not None
        if is_paused and report.reason == GANG_BROKEN:
            # Nobody joins the rest meanwhile, as it goes.
            again += NextSteps(leaving=uids_of(submitted.alive))
        if again.leaving:
            return steps + again + NextSteps(kept=record.pods)
        steps += again
    else:
        if report.reason == DEVICE_NOT_ATTACHED:
            report = advise_deletion(report)
        steps += NextSteps(reports=(report,))
    steps += plan_overrun(context, submitted)
    # Pods that were freed before they were bound may be asked for again, unless they
    # are made anew soon.
    if not is_paused:
        free |= uids_of(pod for pod in own if is_displaced(pod, context))
    return steps + NextSteps(kept=(record.pods | own_uids) - free)


def _plan_end(context: PlanContext, record: PodGangRecord) -> NextSteps:
    """Say that a gang is over, of which no pod is left, unless somebody has."""
    if record.ended_by is not None:
        return NextSteps()
    address, end = context.address(record), describe_end(context, record)
    if not end:
        # They wait again if the cluster is restored from a backup, as if never run.
        reason = f"{PUBLISHER}no pod is left"
        return NextSteps(messages=(ReleaseGang(**address, reason=reason),))
    reason = f"{PUBLISHER}{end}"[:MAX_REASON]
    return NextSteps(messages=(CancelGang(**address, reason=reason),))


def _report_running(
    context: PlanContext,
    submitted: SubmittedGang,
    lost: Sequence[Pod],
    unattached: Sequence[Pod],
    refused: Sequence[Pod],
) -> StatusReport:
    """Report the pods of a gang that cannot run as they were placed, if any."""
    decision, alive = submitted.record.in_force, len(submitted.alive)
    if unattached and not lost:
        return report_unattached(context, unattached, decision)
    if refused and not lost:
        return _report_refused(refused, alive, decision=decision)
    return StatusReport(
        phase=GangPhase.RUNNING,
        reason="PlacementLost" if lost else "",
        message=_describe_loss(lost, alive, context.view) if lost else "",
        pods=tuple(lost),
        decision=decision,
    )


def report_misplaced(
    context: PlanContext, pods: Iterable[Pod]
) -> Iterator[StatusReport]:
    """Report running pods of no gang that cannot run where they were placed.

    Their devices are elsewhere or cannot be attached, or kube-scheduler refuses them.
    """
    for pod in pods:
        if is_displaced(pod, context):
            continue
        if is_lost(pod, context):
            node = pinned_node_of(pod)
            text = f"its claims hold no devices of {node}, which it is pinned to"
            if not pod.spec.node_name and node not in context.view.nodes:
                text = f"node {node}, which it is pinned to, is gone"
            yield StatusReport(
                phase=GangPhase.RUNNING,
                reason="PlacementLost",
                message=text,
                pods=(pod,),
            )
        elif find_unattached(context, (pod,)):
            yield advise_deletion(report_unattached(context, (pod,)))
        elif find_refused(context, (pod,)).pods:
            yield _report_refused((pod,), 1)


class RefusedPods(NamedTuple):
    """Pods that kube-scheduler refuses."""

    pods: tuple[Pod, ...]
    """Those that it has refused for longer than the grace."""
    look_again_s: float | None
    """When the grace of the next one ends; None: there is no other."""


def find_refused(context: PlanContext, pods: Iterable[Pod]) -> RefusedPods:
    """Find the pods that kube-scheduler refuses; without devices they are lost."""
    left_s = [(pod, _grace_left_s(context, pod)) for pod in pods]
    return RefusedPods(
        pods=tuple(pod for pod, left in left_s if left is not None and left <= 0),
        look_again_s=min(
            (left for _, left in left_s if left is not None and left > 0), default=None
        ),
    )


def _grace_left_s(context: PlanContext, pod: Pod) -> float | None:
    """Return how long a refusal may still pass by itself; None: there is none."""
    if find_failure(context, pod) is not None:
        return 0.0
    if find_refusal(pod) is None or is_lost(pod, context):
        return None
    since = context.refused_since(pod.metadata.uid) or context.now
    return context.grace_s - seconds_between(since, context.now)


def _lacks_devices(pod: Pod, context: PlanContext) -> bool:
    """True if a pod has a claim that is gone, or one of ours that holds nothing."""
    for key in claim_keys(pod).values():
        claim = context.view.claim(key)
        if claim is None or (claim.allocation is None and context.owns(claim)):
            return True
    return False


def is_lost(pod: Pod, context: PlanContext) -> bool:
    """True if a pod whose gate is open cannot run as it was placed."""
    view = context.view
    if _lacks_devices(pod, context):
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


def is_displaced(pod: Pod, context: PlanContext) -> bool:
    """True if somebody freed the devices of a pod before it was bound."""
    if is_gated(pod) or is_over(pod) or pod.spec.node_name:
        return False
    return _lacks_devices(pod, context)


def _describe_loss(lost: Sequence[Pod], alive: int, view: View) -> str:
    """Describe pods that cannot run as they were placed."""
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
    """Report pods that kube-scheduler refuses, in its own words."""
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
