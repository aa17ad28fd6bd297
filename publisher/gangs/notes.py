"""Events for the authors of pods: one a gang and reason, however many pods it has.

The first pods of a gang that waits for long are pointed to it.

It is about the object that leads to all of them: the Gang object, or the claim that is
allocated without a pod; else the controller
that made all of the pods (`kubectl describe pod` names it as `Controlled By`); else the
first of the pods by name. The first pod is the event's `related` object. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from contracts.allocation import UNTRIED, Rule
from contracts.claim import ResourceClaim
from contracts.counts import counted
from contracts.gang import Gang, GangPhase
from contracts.messages import ExpectedStart, GangAllocated
from contracts.meta import ObjectMeta
from contracts.names import API_VERSION, GATE
from contracts.reports import WAITING
from contracts.workload import Pod
from publisher.gangs.context import StatusReport
from publisher.gangs.view import is_gated

GANG = "Gang"
_Lead = Gang | ResourceClaim | None
"""The object that a group is of; None: it is of pods alone."""
ALLOCATED = "Allocated"
START_EXPECTED = "StartExpected"
NODES_LACKING = "NodesLacking"
DURATION_EXCEEDED = "DurationExceeded"
"""Of a gang that runs for longer than its author said."""
UNOWNED = (
    "no driver, DeviceClass or node belongs to Moorings alone "
    "(PUBLISHER_OWNED_DRIVERS, _CLASSES, _NODES): it decides for pods at "
    f"scheduling gate {GATE}, and kube-scheduler may allocate the same devices to "
    "others"
)
_UNDECIDED = "Undecided"
_OWN_QUEUE: tuple[str, ...] = (*UNTRIED, _UNDECIDED)
"""Reasons that pass once we have come so far."""
_ORDINARY: tuple[str, ...] = (
    *_OWN_QUEUE,
    Rule.TAKEN,
    Rule.ALL_DEVICES,
    Rule.JOINT,
    Rule.OUTRANKED,
    Rule.NODE_RESOURCES,
    Rule.GROWING,
)
"""Reasons that end when others end: nobody has to do anything. All else is wrong."""
_SOON_S, _SLOW_S = 3.0, 30.0
_FLEETING = {
    "PodsMissing": _SOON_S,
    "OtherGates": _SOON_S,
    "VolumesMissing": _SOON_S,
    "DeviceRemoved": _SOON_S,
    "NodeNamed": _SOON_S,
    "MarkHasNoEffect": _SOON_S,
    # kube-controller-manager, and our own queue, are slow when many pods come.
    "ClaimsMissing": _SLOW_S,
    "GateMissing": _SLOW_S,
    _UNDECIDED: _SLOW_S,
}
"""Reasons that any gang has while it comes, or that a new slice may end: each with the
time (s) after which it is told."""
_NAMED = 5
"""So many devices are named in a text."""
_POINTED = 32
"""So many pods of a gang are pointed to it."""
POINTER = f"{GANG}Waits"
"""The reason of an event that points a pod to its gang."""
_MESSAGE = 1024
"""Bytes of an event's message that the API server takes."""


class Subject(Struct, frozen=True, kw_only=True, rename="camel"):
    """An object that an event names; an ObjectReference of Kubernetes."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str


class Note(Struct, frozen=True, kw_only=True):
    """An event, not yet written."""

    regarding: Subject
    related: Subject | None = None
    """The first of the pods, where `regarding` is another object."""
    type: str
    """`Normal` or `Warning`."""
    reason: str
    message: str

    after_s: float = 0.0
    """It is told when it has held for so long: it is usually over by then."""
    once: bool = False
    """It says what happened, not what holds."""


def list_notes(reports: Iterable[StatusReport], lead: _Lead) -> Iterator[Note]:
    """List one note a reason, and one that says where a Gang's pods went.

    `lead` is the object that a group is of; None: it is of pods alone. Of a claim the
    other says which devices it has.
    """
    by_reason: dict[str, list[StatusReport]] = {}
    for report in reports:
        if report.decision is not None:
            yield from _note_allocation(report, report.decision, lead)
        if report.expected is not None and (lead is not None or report.pods):
            yield _note_expected(report, report.expected, lead)
        if report.lacks and (lead is not None or report.pods):
            yield _note_lacks(report, lead)
        if report.reason:
            by_reason.setdefault(report.reason, []).append(report)
    for reason, alike in by_reason.items():
        pods = {pod.metadata.uid: pod for report in alike for pod in report.pods}
        ordered = sorted(pods.values(), key=lambda pod: pod.metadata.name)
        if lead is None and not ordered:
            continue
        yield _make_note(reason, alike, ordered, lead)


def list_pointers(reports: Iterable[StatusReport], lead: _Lead) -> Iterator[Note]:
    """Point pods that wait to the object whose events say why, if it is another.

    Not while nobody has decided yet: nothing is wrong with them. It is a Warning, as
    kube-scheduler has them for pods that wait, unless our own queue is what is slow.
    """
    pointed: set[str] = set()
    for report in reports:
        waits = report.phase in (WAITING, GangPhase.PENDING)
        if not waits or report.reason in ("", _UNDECIDED):
            continue
        ordered = sorted(report.pods, key=lambda pod: pod.metadata.name)
        for note in list_notes([replace(report, pods=tuple(ordered))], lead):
            for pod in ordered[:_POINTED]:
                if pod.metadata.uid not in {*pointed, note.regarding.uid}:
                    pointed.add(pod.metadata.uid)
                    yield _make_pointer(pod, note, report.reason)


def _make_pointer(pod: Pod, note: Note, reason: str) -> Note:
    about = note.regarding
    gate = f" at scheduling gate {GATE}" if is_gated(pod) else ""
    return Note(
        regarding=_subject_of_pod(pod),
        related=about,
        type="Normal" if reason in _OWN_QUEUE else "Warning",
        reason=POINTER,
        message=f"waits{gate} with its gang: the events of {about.kind} "
        f"{about.name} say why",
        after_s=_SLOW_S,
    )


def note_unowned(lease: Subject) -> Note:
    """Note on the Lease by which we lead that no device is ours alone."""
    return Note(
        regarding=lease,
        type="Warning",
        reason="NothingOwned",
        message=UNOWNED,
        once=True,
    )


def _make_note(
    reason: str, alike: Sequence[StatusReport], pods: Sequence[Pod], lead: _Lead
) -> Note:
    regarding = _choose_subject(pods) if lead is None else _subject_of_lead(lead)
    first = _subject_of_pod(pods[0]) if pods else None
    rejected = any(report.phase == GangPhase.REJECTED for report in alike)
    message = "; ".join(dict.fromkeys(report.message for report in alike))
    told = _describe_pods(pods, regarding)
    return Note(
        regarding=regarding,
        related=None if regarding == first else first,
        type="Normal" if reason in _ORDINARY and not rejected else "Warning",
        reason=reason if lead else f"{GANG}{reason.removeprefix(GANG)}",
        message=f"{_cut_message(message, _MESSAGE - len(told))}{told}",
        after_s=_FLEETING.get(reason, 0.0),
        once=reason == DURATION_EXCEEDED,
    )


def _note_expected(report: StatusReport, expected: ExpectedStart, lead: _Lead) -> Note:
    """Note when a gang starts at the latest, and what it waits for."""
    ordered = sorted(report.pods, key=lambda pod: pod.metadata.name)
    when = f"by {expected.time} at the latest" if expected.time else "in its turn"
    return Note(
        regarding=_choose_subject(ordered) if lead is None else _subject_of_lead(lead),
        type="Normal",
        reason=START_EXPECTED if lead else f"{GANG}{START_EXPECTED}",
        message=f"devices are kept for it, and it starts {when}: {expected.because}",
    )


def _note_lacks(report: StatusReport, lead: _Lead) -> Note:
    """Note which nodes would let a gang in."""
    ordered = sorted(report.pods, key=lambda pod: pod.metadata.name)
    message = f"it lacks {'; '.join(map(str, report.lacks))}"
    return Note(
        regarding=_choose_subject(ordered) if lead is None else _subject_of_lead(lead),
        type="Normal",
        reason=NODES_LACKING if lead else f"{GANG}{NODES_LACKING}",
        message=_cut_message(message, _MESSAGE),
    )


def _note_allocation(
    report: StatusReport, decision: GangAllocated, lead: _Lead
) -> Iterator[Note]:
    """Note what was allocated and where, and which solve to replay."""
    if isinstance(lead, Gang) and report.phase == GangPhase.RUNNING:
        pods, nodes = len(decision.members), {m.node for m in decision.members}
        what = (
            f"{counted(pods, 'pod has its', 'pods have their')} devices on "
            f"{counted(len(nodes), 'node')}"
        )
    elif isinstance(lead, ResourceClaim) and report.phase == GangPhase.ALLOCATED:
        what = f"it is kept until it is deleted: {_describe_devices(decision)}"
    else:
        return
    yield Note(
        regarding=_subject_of_lead(lead),
        type="Normal",
        reason=ALLOCATED,
        message=f"{what} (solve {decision.solve}, attempt {decision.attempt})",
        once=True,
    )


def _describe_devices(decision: GangAllocated) -> str:
    """Name the devices of a decision, and their nodes."""
    texts = []
    for member in decision.members:
        results = (c.allocation.devices.results for c in member.claims)
        devices = sorted({str(r.device_id) for each in results for r in each})
        named, more = ", ".join(devices[:_NAMED]), len(devices) - _NAMED
        others = f" and {more} more" if more > 0 else ""
        texts.append(f"{named}{others} on node {member.node}")
    return "; ".join(texts)


def _cut_message(message: str, size: int) -> str:
    return message.encode()[:size].decode(errors="ignore")


def _describe_pods(pods: Sequence[Pod], regarding: Subject) -> str:
    """Describe which pods are meant, and whether they wait at the gate."""
    if not pods:
        return ""
    name, more = pods[0].metadata.name, len(pods) - 1
    words = [f"pod {name} and {more} more"] if more else [f"pod {name}"]
    if not more and regarding.uid == pods[0].metadata.uid:
        words = []
    if all(map(is_gated, pods)):
        verb = "wait" if more else "waits"
        words.append(f"{verb} at scheduling gate {GATE}")
    return f" ({' '.join(words)})" if words else ""


def _choose_subject(pods: Sequence[Pod]) -> Subject:
    """Return the object by which a person finds all pods without a Gang object."""
    first = pods[0]
    owner = first.metadata.controller
    alike = all(pod.metadata.controller == owner for pod in pods)
    if len(pods) == 1 or not owner.uid or not alike:
        return _subject_of_pod(first)
    return Subject(
        api_version=owner.api_version,
        kind=owner.kind,
        namespace=first.metadata.namespace,
        name=owner.name,
        uid=owner.uid,
    )


def _subject_of_lead(lead: Gang | ResourceClaim) -> Subject:
    if isinstance(lead, Gang):
        return _make_subject(API_VERSION, GANG, lead.metadata)
    return _make_subject("resource.k8s.io/v1", "ResourceClaim", lead.metadata)


def _subject_of_pod(pod: Pod) -> Subject:
    return _make_subject("v1", "Pod", pod.metadata)


def _make_subject(api_version: str, kind: str, meta: ObjectMeta) -> Subject:
    return Subject(
        api_version=api_version,
        kind=kind,
        namespace=meta.namespace,
        name=meta.name,
        uid=meta.uid,
    )
