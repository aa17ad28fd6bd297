"""Pods that are meant for us and are not at our gate are told what they lack. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from contracts.gang import GangPhase
from contracts.names import GANG, GATE
from contracts.pods.marks import UNGATED, find_unknown_mark, list_unknown_gates
from contracts.reports import WAITING
from contracts.workload import Pod
from publisher.gangs.claims import is_immediate
from publisher.gangs.context import PlanContext, StatusReport

NO_EFFECT = "MarkHasNoEffect"
"""A mark that nobody reads, or a gang of pods that do not wait for us; as lint says."""
GATE_MISSING = "GateMissing"
"""Nobody allocates the claims of pods that do not wait for us."""
_UNALLOCATED = (
    f"the pods do not have the gate {GATE}, and nobody but Moorings allocates devices "
    "of the DeviceClasses that they ask for: create them again with the gate"
)


class _Fault(Struct, frozen=True):
    phase: str
    reason: str
    message: str


def report_strays(context: PlanContext) -> Iterator[StatusReport]:
    """Report the stray pods of a group: those with one fault together."""
    alike: dict[_Fault, list[Pod]] = {}
    for pod in context.view.strays.of(context.group):
        fault = _find_fault(pod, context)
        if fault is not None:
            alike.setdefault(fault, []).append(pod)
    for fault, pods in alike.items():
        yield StatusReport(
            phase=fault.phase,
            reason=fault.reason,
            message=fault.message,
            pods=tuple(pods),
        )


def _find_fault(pod: Pod, context: PlanContext) -> _Fault | None:
    """Return why nobody holds a pod for its gang; None: it asks for nothing of ours."""
    phase = GangPhase.RUNNING if pod.spec.node_name else WAITING
    for _, message in list_unknown_gates(pod.spec):
        return _Fault(phase, NO_EFFECT, message)
    view = context.view
    asked = (
        key
        for key in context.list_unallocated(pod)
        # One that is immediate is allocated without the pod.
        if not is_immediate(view.claim(key))
    )
    if view.strays.needs_gate(pod) and any(asked):
        return _Fault(phase, GATE_MISSING, _UNALLOCATED)
    if GANG in pod.metadata.labels:
        return _Fault(phase, NO_EFFECT, f"the pods {UNGATED}")
    unknown = find_unknown_mark(pod)
    return None if unknown is None else _Fault(phase, NO_EFFECT, unknown)
