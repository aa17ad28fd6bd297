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
from contracts.workload import Pod
from publisher.gangs.context import WAITING, StatusReport
from publisher.gangs.plan_repairs import FINISHED, HELD_TWICE
from publisher.gangs.view import is_gated, is_over

GANG = "Gang"
ALLOCATED, PLACEMENT_LOST = "Allocated", "PlacementLost"
_ORDER: tuple[str, ...] = (
    GangPhase.REJECTED,
    GangPhase.CANCELLED,
    WAITING,
    GangPhase.PENDING,
    GangPhase.DECIDED,
    GangPhase.WRITTEN,
    GangPhase.RUNNING,
    GangPhase.COMPLETED,
)
"""Of several, the phase that needs attention most is the gang's."""
_FLEETING = ("PodsMissing", "ClaimsMissing", "Undecided")
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
    told: Sequence[StatusReport],
    pods: Sequence[Pod],
    known: Mapping[str, Any],
    now: str,
) -> dict[str, Any]:
    """Give the status of a Gang object; `known` is the one that it has.

    `now` is RFC 3339, whole seconds, UTC.
    """
    chief = _chief(told, pods)
    size = sum(member.count for member in gang.spec.members)
    opened = sum(not is_gated(pod) and _counts(pod) for pod in pods)
    lost = next((t for t in told if t.reason == PLACEMENT_LOST), None)
    allocated = chief.phase in _ALLOCATED_IN and lost is None
    conditions = [_condition(ALLOCATED, allocated, chief)]
    if lost is not None or _condition_of(known, PLACEMENT_LOST):
        conditions.append(_condition(PLACEMENT_LOST, lost is not None, lost or chief))
    generation = gang.metadata.generation
    status: dict[str, Any] = {
        "phase": str(chief.phase),
        "pods": f"{opened}/{size}",
        "reason": chief.reason,
        "message": chief.message,
        "observedGeneration": generation,
        "conditions": [
            _dated(item | {"observedGeneration": generation}, known, now)
            for item in conditions
        ],
    }
    if chief.decision is not None:
        status["attempt"] = chief.decision.attempt
        status["solve"] = chief.decision.solve
    return status


def is_past(pods: Sequence[Pod], known: Mapping[str, Any]) -> bool:
    """Whether a Gang object has had its pods, and keeps the status that it has."""
    return not pods and known.get("phase") == GangPhase.COMPLETED


def list_notes(told: Iterable[StatusReport], gang: Gang | None) -> Iterator[Note]:
    """Say what to tell: every pod why it waits, the Gang what became of it."""
    for item in told:
        if gang is not None and item.phase == GangPhase.RUNNING and item.decision:
            yield _allocated(gang, item.decision)
        if not item.reason:
            continue
        text = f"{item.message} (waits at scheduling gate {GATE})"
        for pod in item.pods:
            said = text if is_gated(pod) else item.message
            yield _note("Pod", pod.metadata, item, said)
        if gang is not None:
            yield _note(GANG, gang.metadata, item, item.message)


def _allocated(gang: Gang, decision: GangAllocated) -> Note:
    """Say where pods of a gang went, and which solve to replay."""
    pods, nodes = len(decision.members), {item.node for item in decision.members}
    return Note(
        kind=GANG,
        about=gang.metadata,
        type="Normal",
        reason=ALLOCATED,
        message=f"{pods} pods have their devices on {len(nodes)} nodes "
        f"(solve {decision.solve}, attempt {decision.attempt})",
        once=True,
    )


def _chief(told: Sequence[StatusReport], pods: Sequence[Pod]) -> StatusReport:
    if told:
        return min(told, key=lambda t: (_ORDER.index(t.phase), not t.reason))
    if pods and all(is_over(pod) for pod in pods):
        return StatusReport(phase=GangPhase.COMPLETED)
    if any(not is_gated(pod) and not is_over(pod) for pod in pods):
        return StatusReport(phase=GangPhase.RUNNING)
    return StatusReport(phase=GangPhase.PENDING)


def _counts(pod: Pod) -> bool:
    """Whether a pod runs or has done its part; others are made in the place of it."""
    meta, phase = pod.metadata, pod.status.phase
    return meta.deletion_timestamp is None and phase != "Failed"


def _condition(kind: str, holds: bool, told: StatusReport) -> dict[str, Any]:
    return {
        "type": kind,
        "status": "True" if holds else "False",
        "reason": told.reason or str(told.phase),
        "message": told.message,
    }


def _condition_of(known: Mapping[str, Any], kind: str) -> Mapping[str, Any] | None:
    found: Iterable[Mapping[str, Any]] = known.get("conditions") or ()
    return next((item for item in found if item.get("type") == kind), None)


def _dated(
    condition: dict[str, Any], known: Mapping[str, Any], now: str
) -> dict[str, Any]:
    before = _condition_of(known, condition["type"])
    same = before is not None and before.get("status") == condition["status"]
    since = before.get("lastTransitionTime") if same and before is not None else None
    return {**condition, "lastTransitionTime": since or now}


def _note(kind: str, about: ObjectMeta, told: StatusReport, message: str) -> Note:
    alarming = told.phase == GangPhase.REJECTED or told.reason in _ALARMING
    return Note(
        kind=kind,
        about=about,
        type="Warning" if alarming else "Normal",
        reason=told.reason if kind == GANG else f"Gang{told.reason.removeprefix(GANG)}",
        message=message[:_MESSAGE],
        lasting=told.reason in _FLEETING,
    )
