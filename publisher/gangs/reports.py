"""What the authors of pods are told where several plans say the same. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from contracts.allocation import Reason
from contracts.gang import GangPhase
from contracts.messages import (
    MAX_REASON,
    AllocationLost,
    AllocationRefused,
    GangPending,
    GangRejected,
)
from contracts.workload import Pod
from publisher.gangs.context import StatusReport
from publisher.gangs.records import PodGangRecord


def report_undecided(record: PodGangRecord, pods: Iterable[Pod]) -> StatusReport:
    """Tell pods why their gang waits for a decision, or was rejected."""
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
    return StatusReport(
        phase=GangPhase.REJECTED if is_rejected else GangPhase.PENDING,
        reason=reason,
        message=message[:MAX_REASON],
        pods=tuple(pods),
    )


def report_cancelled(pods: Iterable[Pod]) -> StatusReport:
    """Tell pods that somebody gave their gang up."""
    return StatusReport(
        phase=GangPhase.CANCELLED,
        reason="Cancelled",
        message="the gang was cancelled; delete its pods to try again",
        pods=tuple(pods),
    )
