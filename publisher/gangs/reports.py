"""Reports that several plans make, and what the bus is told of all reports. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from contracts.allocation import Reason
from contracts.gang import GangPhase
from contracts.ids import GangUID
from contracts.messages import (
    MAX_REASON,
    AllocationLost,
    AllocationRefused,
    GangPending,
    GangRejected,
)
from contracts.names import GANG_UID
from contracts.reports import PodsReport
from contracts.workload import Pod
from publisher.gangs.context import StatusReport
from publisher.gangs.records import PodGangRecord

_KNOWN = (GangPhase.PENDING, GangPhase.REJECTED, GangPhase.CANCELLED)
"""Phases whose reason is on the bus already, by who decided or commanded."""
_MOST_REPORTS = 20
_MOST_NAMES = 20
"""Of one report; the others are counted."""
_TOLD = 3
"""So many avoided nodes are named in a text."""


def report_undecided(
    record: PodGangRecord, pods: Iterable[Pod], note: str = ""
) -> StatusReport:
    """Tell pods why their gang waits for a decision, or was rejected.

    Which nodes it avoids is part of it, or a note why it avoids none any more.
    """
    decision, confirmation = record.decision, record.confirmation
    is_rejected = isinstance(decision, GangRejected)
    reasons: tuple[Reason, ...] = ()
    if isinstance(decision, GangRejected | GangPending):
        reasons = decision.reasons
    if reasons:
        reason, message = str(reasons[0].rule), "; ".join(map(str, reasons))
    elif isinstance(confirmation, AllocationRefused | AllocationLost):
        reason, message = type(confirmation).__name__, confirmation.reason
    else:
        reason, message = "Undecided", "the solver has not decided yet"
    submission = record.submission
    avoided = [note] if note else []
    if submission is not None:
        avoided += [str(node)[:MAX_REASON] for node in submission.avoided[:_TOLD]]
    return StatusReport(
        phase=GangPhase.REJECTED if is_rejected else GangPhase.PENDING,
        reason=reason,
        message="; ".join((message[:MAX_REASON], *avoided)),
        pods=tuple(pods),
        expected=decision.expected if isinstance(decision, GangPending) else None,
        lacks=decision.lacks if isinstance(decision, GangPending) else (),
    )


def report_cancelled(pods: Iterable[Pod]) -> StatusReport:
    """Tell pods that somebody gave their gang up."""
    return StatusReport(
        phase=GangPhase.CANCELLED,
        reason="Cancelled",
        message="the gang was cancelled; delete its pods to try again",
        pods=tuple(pods),
    )


def report_on_bus(reports: Iterable[StatusReport]) -> tuple[PodsReport, ...]:
    """Return what those who read the bus cannot know otherwise; pods are counted.

    What is said of several pods in the same words is said once.
    """
    pods: dict[tuple[str, str, str, GangUID], list[Pod]] = {}
    for report in reports:
        if report.reason and report.phase not in _KNOWN:
            message = report.message[:MAX_REASON]
            key = (report.phase, report.reason, message, _gang_of(report))
            pods.setdefault(key, []).extend(report.pods)
    return tuple(
        PodsReport(
            phase=phase,
            reason=reason,
            message=message,
            pods=len(theirs),
            names=tuple(pod.metadata.name for pod in theirs[:_MOST_NAMES]),
            gang_uid=uid,
        )
        for (phase, reason, message, uid), theirs in list(pods.items())[:_MOST_REPORTS]
    )


def _gang_of(report: StatusReport) -> GangUID:
    """Return the gang by whose decision these pods run, or will; empty: none."""
    if report.decision is not None:
        return report.decision.uid
    uids = {pod.metadata.annotations.get(GANG_UID, "") for pod in report.pods}
    return GangUID(uids.pop() if len(uids) == 1 else "")
