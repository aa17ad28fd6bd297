"""The status of a Gang object, as people read it.

It speaks to the author of the pods, who knows neither solver nor bus. Times of
conditions change only when the condition does, so an unchanged status is an unchanged
object. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from contracts.gang import Gang, GangPhase
from contracts.lifecycle import PREEMPTED
from contracts.messages import ExpectedStart, NodesLacking
from contracts.reports import PHASES_BY_URGENCY
from contracts.workload import Pod
from publisher.gangs.context import StatusReport
from publisher.gangs.notes import ALLOCATED, DURATION_EXCEEDED
from publisher.gangs.running.attachment import DEVICE_NOT_ATTACHED
from publisher.gangs.running.avoidance import SCHEDULER_REFUSED
from publisher.gangs.running.broken_gangs import GANG_BROKEN
from publisher.gangs.running.device_failures import DEVICE_FAILED
from publisher.gangs.running.recreation import RECREATIONS_EXHAUSTED
from publisher.gangs.view import is_gated, is_over

PLACEMENT_LOST = "PlacementLost"
NOT_STORED = "NotStored"
"""What is to be said of the gang cannot be stored: nobody decides it until then."""
_ALLOCATED_IN = (GangPhase.ALLOCATED, GangPhase.RUNNING)
_OWN_CONDITIONS = (
    PLACEMENT_LOST,
    DEVICE_NOT_ATTACHED,
    SCHEDULER_REFUSED,
    GANG_BROKEN,
    DEVICE_FAILED,
    RECREATIONS_EXHAUSTED,
    DURATION_EXCEEDED,
    PREEMPTED,
    NOT_STORED,
)
"""Reasons that are conditions of their own: what holds, and since when."""


def make_gang_status(
    gang: Gang,
    reports: Sequence[StatusReport],
    pods: Sequence[Pod],
    present: Mapping[str, Any],
    now: str,
) -> dict[str, Any]:
    """Make the status of a Gang object; `present` is the one that it has.

    `now` is RFC 3339, whole seconds, UTC.
    """
    chief = _choose_chief(reports, pods)
    size = sum(member.count for member in gang.spec.members)
    opened = sum(not is_gated(pod) and _is_counted(pod) for pod in pods)
    lost = any(r.reason == PLACEMENT_LOST for r in reports)
    allocated = chief.phase in _ALLOCATED_IN and not lost
    conditions = [_make_condition(ALLOCATED, allocated, chief)]
    for kind in _OWN_CONDITIONS:
        told = next((r for r in reports if r.reason == kind), None)
        if told is not None or _condition_of(present, kind):
            conditions.append(_make_condition(kind, told is not None, told or chief))
    generation = gang.metadata.generation
    status: dict[str, Any] = {
        "phase": str(chief.phase),
        "pods": f"{opened}/{size}",
        "reason": chief.reason,
        "message": chief.message,
        "observedGeneration": generation,
        "conditions": [
            _date_condition(
                condition | {"observedGeneration": generation}, present, now
            )
            for condition in conditions
        ],
    }
    if chief.decision is not None:
        status["attempt"] = chief.decision.attempt
        status["solve"] = chief.decision.solve
    if chief.expected is not None:
        status["expectedStart"] = _write_expected(chief.expected)
    elif "expectedStart" in present:
        status["expectedStart"] = None  # so that a patch takes it away
    if chief.lacks:
        status["lacks"] = [_write_lacking(each) for each in chief.lacks]
    elif "lacks" in present:
        status["lacks"] = None
    made_anew = max((report.recreations for report in reports), default=0)
    if made_anew:
        status["recreations"] = made_anew
    elif reports and "recreations" in present:
        status["recreations"] = None
    return status


def _write_expected(expected: ExpectedStart) -> dict[str, Any]:
    """Write a promise; without a time where nobody knows when others end."""
    known = {"time": expected.time} if expected.time else {}
    return {**known, "proven": expected.proven, "because": expected.because}


def _write_lacking(lacking: NodesLacking) -> dict[str, Any]:
    """Write nodes that it lacks, with what was said of their shape."""
    said = {name: getattr(lacking, name) for name in ("shape", "like", "member")}
    return {"count": lacking.count, **{name: of for name, of in said.items() if of}}


def is_past(pods: Sequence[Pod], present: Mapping[str, Any]) -> bool:
    """True if a Gang object had its pods and keeps its status."""
    return not pods and present.get("phase") == GangPhase.COMPLETED


def _choose_chief(reports: Sequence[StatusReport], pods: Sequence[Pod]) -> StatusReport:
    if reports:
        return min(
            reports, key=lambda r: (PHASES_BY_URGENCY.index(r.phase), not r.reason)
        )
    if pods and all(is_over(pod) for pod in pods):
        return StatusReport(phase=GangPhase.COMPLETED)
    if any(not is_gated(pod) and not is_over(pod) for pod in pods):
        return StatusReport(phase=GangPhase.RUNNING)
    return StatusReport(phase=GangPhase.PENDING)


def _is_counted(pod: Pod) -> bool:
    """True if a pod runs or has succeeded; others are replaced."""
    meta, phase = pod.metadata, pod.status.phase
    return meta.deletion_timestamp is None and phase != "Failed"


def _make_condition(kind: str, holds: bool, report: StatusReport) -> dict[str, Any]:
    return {
        "type": kind,
        "status": "True" if holds else "False",
        "reason": report.reason or str(report.phase),
        "message": report.message,
    }


def _condition_of(present: Mapping[str, Any], kind: str) -> Mapping[str, Any] | None:
    conditions: Iterable[Mapping[str, Any]] = present.get("conditions") or ()
    return next((c for c in conditions if c.get("type") == kind), None)


def _date_condition(
    condition: dict[str, Any], present: Mapping[str, Any], now: str
) -> dict[str, Any]:
    last = _condition_of(present, condition["type"])
    is_same = last is not None and last.get("status") == condition["status"]
    since = last.get("lastTransitionTime") if is_same and last is not None else None
    return {**condition, "lastTransitionTime": since or now}
