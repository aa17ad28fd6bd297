"""Messages about gangs, in a few words, and as rows of a gang's history."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from contracts.codec import to_builtins
from contracts.counts import counted
from contracts.gang import Member, MemberClaim
from contracts.messages import (
    AllocationLost,
    AllocationRefused,
    AllocationWritten,
    CancelGang,
    ClaimsReleased,
    ConfirmationMessage,
    DecisionMessage,
    GangAllocated,
    GangPending,
    GangRejected,
    GangReleased,
    GatesOpened,
    PodWritten,
    SubmitGang,
)
from runtime.wire import Incoming

Row = dict[str, Any]
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


def view_event(incoming: Incoming[Any]) -> Row | None:
    """Return what a message says of its gang, and when; None: nothing."""
    message = incoming.message
    match message:
        case SubmitGang():
            detail = "; ".join(list_members(message))
        case CancelGang(reason=reason):
            detail = reason
        case _ if isinstance(message, DecisionMessage | ConfirmationMessage):
            detail = describe(message)
        case None:
            return None
        case _:
            detail = ""
    reasons = message.reasons if isinstance(message, GangPending | GangRejected) else ()
    at = datetime.fromtimestamp(incoming.time_s, UTC)
    return {
        "at": at.isoformat("T", "milliseconds"),
        "what": type(message).__name__,
        "detail": detail,
        "reasons": [str(reason) for reason in reasons],
        "attempt": getattr(message, "attempt", 0),
        "solve": getattr(message, "solve", ""),
        "uid": message.uid,
    }


def list_members(submission: SubmitGang | None) -> list[str]:
    """List what each member of a gang asks for, in words."""
    if submission is None:
        return []
    return [_describe_member(member) for member in submission.gang.spec.members]


def _describe_member(member: Member) -> str:
    claims = ", ".join(map(_describe_claim, member.claims))
    return f"{member.count} of {member.name}: {claims or 'no devices'}"


def _describe_claim(claim: MemberClaim) -> str:
    if claim.spec is None:
        return f"{claim.name} of {claim.template_name or claim.claim_name}"
    requests = (
        _describe_request(to_builtins(request))
        for request in claim.spec.devices.requests
    )
    return ", ".join(requests)


def _describe_request(request: Mapping[str, Any]) -> str:
    """Describe one request: `8 gpu.example.com`."""
    if alternatives := request.get("firstAvailable"):
        return " or ".join(_describe_request({"exactly": a}) for a in alternatives)
    exactly = request.get("exactly") or {}
    is_all = exactly.get("allocationMode") == "All"
    count = "all" if is_all else exactly.get("count", 1)
    return f"{count} {exactly.get('deviceClassName', '')}".strip()
