"""Pods that were bound without us: asked for where they are, or told why they wait.

kubelet tries again and again to start a pod whose claims hold nothing, so devices that
are allocated later still reach it. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from contracts.counts import counted
from contracts.gang import GangPhase
from contracts.names import GATE
from contracts.workload import Pod
from publisher.gangs.context import PlanContext, StatusReport
from publisher.gangs.view import is_bypassed, is_over

NODE_NAMED = "NodeNamed"
_REMEDY = (
    "create it again without nodeName and with the scheduling gate "
    f"{GATE}, and select the node by its label, such as nodeSelector: "
    "{kubernetes.io/hostname: NODE}"
)


class SortedBypassed(Struct, frozen=True, kw_only=True):
    """Pods that were bound without us and lack devices, by what becomes of them."""

    asked: tuple[Pod, ...] = ()
    """They get devices of their nodes, each by itself."""
    reports: tuple[StatusReport, ...] = ()
    """Why nobody allocates the claims of the others."""


def sort_bypassed(pods: Iterable[Pod], context: PlanContext) -> SortedBypassed:
    """Sort those of these pods that were bound without us and lack devices."""
    asked: list[Pod] = []
    reports: list[StatusReport] = []
    for pod in filter(is_bypassed, pods):
        lacking = list(context.list_unallocated(pod))
        if not lacking:
            continue
        others = _count_sharing(pod, lacking, context)
        if context.allocates_bound and not others:
            asked.append(pod)
        else:
            reports.append(_report(pod, lacking[0], others))
    return SortedBypassed(asked=tuple(asked), reports=tuple(reports))


def _count_sharing(pod: Pod, claims: Iterable[str], context: PlanContext) -> int:
    """Count the other pods of ours that wait for the same claims."""
    return len(
        {
            user.metadata.uid
            for key in claims
            for user in context.view.users(key)
            if user.metadata.uid != pod.metadata.uid and not is_over(user)
        }
    )


def _report(pod: Pod, claim: str, others: int) -> StatusReport:
    why = (
        "schedulers ignore pods that are created with spec.nodeName, so nobody "
        f"allocates ResourceClaim {claim}"
    )
    if others:
        wait = counted(others, "other pod waits", "other pods wait")
        why = f"{why}, for which {wait}, too"
    return StatusReport(
        phase=GangPhase.RUNNING,
        reason=NODE_NAMED,
        message=f"it is on node {pod.spec.node_name} and does not start: {why}; "
        f"{_REMEDY}",
        pods=(pod,),
    )
