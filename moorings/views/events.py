"""Messages about gangs, in a few words."""

from __future__ import annotations

from contracts.counts import counted
from contracts.messages import (
    AllocationLost,
    AllocationRefused,
    AllocationWritten,
    ClaimsReleased,
    ConfirmationMessage,
    DecisionMessage,
    GangAllocated,
    GangPending,
    GangRejected,
    GangReleased,
    GatesOpened,
    PodWritten,
)

MOST_PODS = 3
"""Pods that are named on a line."""


def describe(message: DecisionMessage | ConfirmationMessage) -> str:
    """Return in a few words what a message says of its gang."""
    match message:
        case GangAllocated():
            pods, nodes = len(message.members), {pod.node for pod in message.members}
            text = f"{counted(pods, 'pod')} on {counted(len(nodes), 'node')}"
            new = pods - sum(message.kept.values())
            return f"{text}, {new} new" if message.kept else text
        case GangPending(reasons=reasons) | GangRejected(reasons=reasons):
            return str(reasons[0]) if reasons else ""
        case GangReleased():
            return str(message.outcome)
        case AllocationWritten(pods=pods):
            hidden = len(pods) - MOST_PODS
            words = [*map(_describe_pod, pods[:MOST_PODS])]
            return "; ".join([*words, f"and {hidden} more"] if hidden > 0 else words)
        case AllocationRefused(reason=reason, keeps=True):
            return f"unchanged: {reason}"
        case AllocationRefused(reason=reason) | AllocationLost(reason=reason):
            return reason
        case GatesOpened() | ClaimsReleased():
            return ""


def _describe_pod(pod: PodWritten) -> str:
    """Name a pod and its claims as kubectl does."""
    claims = " ".join(f"resourceclaim/{name}" for name in pod.claims.values())
    return f"pod/{pod.pod} {claims}".rstrip()
