"""Pods that kube-scheduler refuses on the nodes that they are pinned to.

Their gates cannot be closed again, nor their pins moved: whatever is in the way must
go. A refusal does not count while it may pass by itself: kube-scheduler makes room for
the pod (preemption), or is about to bind it. Pure.
"""

from __future__ import annotations

from contracts.names import GANG_UID
from contracts.workload import Pod, PodCondition
from publisher.gangs.view import is_over

SCHEDULER_REFUSED = "SchedulerRefused"
"""The reason that people read."""
_SCHEDULED = "PodScheduled"
_GATED = "SchedulingGated"


def find_refusal(pod: Pod) -> PodCondition | None:
    """Return why kube-scheduler refuses a pod of ours; None: it does not.

    Sources: core/v1 `PodScheduled`, whose reasons are Unschedulable, SchedulerError and
    those of other schedulers; `status.nominatedNodeName` (KEP-5278).
    """
    spec, status = pod.spec, pod.status
    opened = GANG_UID in pod.metadata.annotations and not spec.scheduling_gates
    if not opened or is_over(pod) or spec.node_name or status.nominated_node_name:
        return None
    for condition in status.conditions:
        if condition.type == _SCHEDULED and condition.reason != _GATED:
            return condition if condition.status == "False" else None
    return None


class SeenRefusals:
    """Remembers since when pods are refused, as this publisher saw it.

    No object says it: `PodScheduled` is False from the beginning, because of the gate,
    and keeps that time. After a restart the grace of a refusal begins anew.
    """

    def __init__(self) -> None:
        self._since: dict[str, str] = {}

    def apply(self, uid: str, pod: Pod | None, now: str) -> None:
        """Look at a pod as it is now (None: it is gone); `now` is RFC 3339."""
        if pod is None or find_refusal(pod) is None:
            self._since.pop(uid, None)
        else:
            self._since.setdefault(uid, now)

    def since(self, uid: str) -> str:
        """Return since when a pod is refused; empty: it is not."""
        return self._since.get(uid, "")
