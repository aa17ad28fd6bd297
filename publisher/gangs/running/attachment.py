"""Pods whose devices cannot be attached to the nodes they are pinned to (KEP-5007).

kube-scheduler waits for the binding conditions of a pod's devices. Once a failure
condition is true it frees the claim within seconds, and what the driver said of the
device is gone with it, while the pod stays pinned. So it is remembered with the node,
which the gang avoids from then on, and told until the pod is bound. Pure.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence

from msgspec.structs import replace

from contracts.gang import GangPhase
from contracts.messages import MAX_REASON, GangAllocated
from contracts.workload import Pod
from publisher.gangs.context import PlanContext, StatusReport
from publisher.gangs.running.avoidance import (
    describe_refusal,
    find_failure,
    recall_failure,
)

DEVICE_NOT_ATTACHED = "DeviceNotAttached"
"""The reason that people read."""
_NAMED = 5
"""So many devices are named in a text."""
_ADVICE = (
    "; a pod stays pinned to its node: delete it, and its replacement avoids the node "
    "(recovery: Recreate does so by itself)"
)


def find_unattached(
    context: PlanContext, pods: Iterable[Pod], refused: Container[str] = ()
) -> tuple[Pod, ...]:
    """Return the pods that have a device which cannot be attached, or had one.

    It counts only while it holds if kube-scheduler has refused the pod since
    (`refused`: uids).
    """
    return tuple(
        pod
        for pod in pods
        if find_failure(context, pod)
        or (pod.metadata.uid not in refused and recall_failure(context, pod))
    )


def report_unattached(
    context: PlanContext, pods: Sequence[Pod], decision: GangAllocated | None = None
) -> StatusReport:
    """Report pods of `find_unattached`, with the words of the drivers."""
    failures = (
        describe_refusal(context, pod)
        if find_failure(context, pod)
        else recall_failure(context, pod)
        for pod in pods[:_NAMED]
    )
    texts = (
        f"device {failed.device} of pod {failed.pod} could not be attached to node "
        f"{failed.node} ({failed.message})"
        for failed in failures
        if failed is not None
    )
    return StatusReport(
        phase=GangPhase.RUNNING,
        reason=DEVICE_NOT_ATTACHED,
        message="; ".join(texts)[:MAX_REASON],
        pods=tuple(pods),
        decision=decision,
    )


def advise_deletion(report: StatusReport) -> StatusReport:
    """Tell authors what to do about pods that nobody makes anew for them."""
    room = MAX_REASON - len(_ADVICE)
    return replace(report, message=f"{report.message[:room]}{_ADVICE}")
