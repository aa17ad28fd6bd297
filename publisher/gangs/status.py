"""What people read: the status of a Gang object, and events on pods and Gangs.

Words for the author of the pods, who knows neither solver nor bus. Times of
conditions change only when the condition does, so an unchanged status is an unchanged
object. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from contracts.gang import Gang, GangPhase
from contracts.messages import GangAllocated
from contracts.meta import ObjectMeta
from contracts.names import GATE
from contracts.reports import PHASES_BY_URGENCY
from contracts.workload import Pod
from publisher.gangs.context import StatusReport
from publisher.gangs.plan_repairs import FINISHED, HELD_TWICE
from publisher.gangs.view import is_gated, is_over

GANG = "Gang"
ALLOCATED, PLACEMENT_LOST = "Allocated", "PlacementLost"
_FLEETING = ("PodsMissing", "ClaimsMissing", "VolumesMissing", "Undecided")
"""Reasons that any gang has while it comes."""
_ALARMING = (PLACEMENT_LOST, FINISHED, HELD_TWICE)
_ALLOCATED_IN = (GangPhase.WRITTEN, GangPhase.RUNNING)
_MESSAGE = 1000
"""Characters of an event's message (the API server takes 1,024 bytes)."""


class Note(Struct, frozen=True, kw_only=True):
    """An event on a pod or Gang, not yet written."""

    kind: str
    about: ObjectMeta
    type: str
    """`Normal` or `Warning`."""
    reason: str
    message: str

    lasting: bool = False
    """It is usually over in a moment, and told only when it is not."""
    once: bool = False
    """It says what happened, not what holds."""


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
    opened = sum(not is_gated(pod) and _counts(pod) for pod in pods)
    lost = next((r for r in reports if r.reason == PLACEMENT_LOST), None)
    allocated = chief.phase in _ALLOCATED_IN and lost is None
    conditions = [_condition(ALLOCATED, allocated, chief)]
    if lost is not None or _condition_of(present, PLACEMENT_LOST):
        conditions.append(_condition(PLACEMENT_LOST, lost is not None, lost or chief))
    generation = gang.metadata.generation
    status: dict[str, Any] = {
        "phase": str(chief.phase),
        "pods": f"{opened}/{size}",
        "reason": chief.reason,
        "message": chief.message,
        "observedGeneration": generation,
        "conditions": [
            _date(condition | {"observedGeneration": generation}, present, now)
            for condition in conditions
        ],
    }
    if chief.decision is not None:
        status["attempt"] = chief.decision.attempt
        status["solve"] = chief.decision.solve
    return status


def is_past(pods: Sequence[Pod], present: Mapping[str, Any]) -> bool:
    """Whether a Gang object has had its pods, and keeps the status that it has."""
    return not pods and present.get("phase") == GangPhase.COMPLETED


def list_notes(reports: Iterable[StatusReport], gang: Gang | None) -> Iterator[Note]:
    """List what to tell: every pod why it waits, the Gang what became of it."""
    for report in reports:
        if gang is not None and report.phase == GangPhase.RUNNING and report.decision:
            yield _note_allocation(gang, report.decision)
        if not report.reason:
            continue
        at_gate = f"{report.message} (waits at scheduling gate {GATE})"
        for pod in report.pods:
            message = at_gate if is_gated(pod) else report.message
            yield _note("Pod", pod.metadata, report, message)
        if gang is not None:
            yield _note(GANG, gang.metadata, report, report.message)


def _note_allocation(gang: Gang, decision: GangAllocated) -> Note:
    """Say where pods of a gang went, and which solve to replay."""
    pods, nodes = len(decision.members), {m.node for m in decision.members}
    return Note(
        kind=GANG,
        about=gang.metadata,
        type="Normal",
        reason=ALLOCATED,
        message=f"{pods} pods have their devices on {len(nodes)} nodes "
        f"(solve {decision.solve}, attempt {decision.attempt})",
        once=True,
    )


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


def _urgency(report: StatusReport) -> tuple[int, bool]:
    return PHASES_BY_URGENCY.index(report.phase), not report.reason


def _counts(pod: Pod) -> bool:
    """Whether a pod runs or has done its part; others are made in the place of it."""
    meta, phase = pod.metadata, pod.status.phase
    return meta.deletion_timestamp is None and phase != "Failed"


def _condition(kind: str, holds: bool, report: StatusReport) -> dict[str, Any]:
    return {
        "type": kind,
        "status": "True" if holds else "False",
        "reason": report.reason or str(report.phase),
        "message": report.message,
    }


def _condition_of(present: Mapping[str, Any], kind: str) -> Mapping[str, Any] | None:
    conditions: Iterable[Mapping[str, Any]] = present.get("conditions") or ()
    return next((c for c in conditions if c.get("type") == kind), None)


def _date(
    condition: dict[str, Any], present: Mapping[str, Any], now: str
) -> dict[str, Any]:
    last = _condition_of(present, condition["type"])
    is_same = last is not None and last.get("status") == condition["status"]
    since = last.get("lastTransitionTime") if is_same and last is not None else None
    return {**condition, "lastTransitionTime": since or now}


def _note(kind: str, about: ObjectMeta, report: StatusReport, message: str) -> Note:
    alarming = report.phase == GangPhase.REJECTED or report.reason in _ALARMING
    return Note(
        kind=kind,
        about=about,
        type="Warning" if alarming else "Normal",
        reason=report.reason
        if kind == GANG
        else f"Gang{report.reason.removeprefix(GANG)}",
        message=message[:_MESSAGE],
        lasting=report.reason in _FLEETING,
    )
