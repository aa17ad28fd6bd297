"""How gangs, their pods and their claims are shown, by the names that kubectl has.

The solver numbers the pods of a member. Which pod and claims they became is what the
publisher said when it had written them; without a cluster there are claims only. Reads
the clock for ages, and nothing else.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from msgspec.structs import replace

from contracts.allocation import Rule
from contracts.gang import GangPhase
from contracts.lifecycle import PUBLISHER, GangRecord
from contracts.messages import (
    AllocationWritten,
    CancelGang,
    ExpectedStart,
    MemberAllocated,
    PodWritten,
)
from contracts.reports import PodsReport
from moorings.stories import (
    GangStory,
    HeldObjects,
    WrittenGangs,
    count_growing,
    count_pods,
    name_gang,
)
from moorings.views.ages import format_age, measure_age
from moorings.views.times import to_text

UNDECIDED = "waiting to be decided"
_RECENT_S = 3600.0
"""How long rejected gangs are shown."""


def view_gang(
    record: GangRecord,
    held: HeldObjects | None = None,
    later: Sequence[GangRecord] = (),
) -> dict[str, Any]:
    """Return the row of one submission; without `held` its gone pods are not known.

    `later`: what was submitted after it for the same gang, and lives.
    """
    reason = str(record.reasons[0]) if record.reasons else _describe_wait(record, later)
    spec = record.submission.gang.spec if record.submission is not None else None
    decision = record.placed
    return {
        "namespace": record.namespace,
        "name": name_gang(record),
        "uid": record.uid,
        "labels": _labels_of(record),
        "phase": str(record.phase),
        "priority": spec.priority if spec is not None else 0,
        "pods": count_pods(record, held),
        "nodes": len({member.node for member in decision.members}) if decision else 0,
        "attempt": record.attempt,
        "since": _submitted_at(record),
        "age": format_age(measure_age(_submitted_at(record))),
        "reason": reason,
        "duration": spec.duration if spec is not None else "",
        "expectedStart": view_expected(record.expected),
        "lacks": list(map(str, record.lacks)),
        "endsBy": _find_end(record),
    }


def view_expected(expected: ExpectedStart | None) -> dict[str, Any] | None:
    """Return when a gang starts at the latest; None: nothing is kept for it."""
    if expected is None:
        return None
    return {
        "time": expected.time,
        "proven": expected.proven,
        "because": expected.because,
        "since": expected.since,
        "solve": expected.solve,
    }


def view_story(story: GangStory, held: HeldObjects | None) -> dict[str, Any]:
    """Return the row of a gang: of all there is of it what needs attention most."""
    records = story.living or story.records[-1:]
    rows = [
        view_gang(record, held, records[number:])
        for number, record in enumerate(records, start=1)
    ]
    placed = [record.placed for record in records if record.placed is not None]
    reasons = [f"{report.reason}: {report.message}" for report in story.reports]
    reasons += [row["reason"] for row in rows if row["phase"] == story.phase]
    times = [_submitted_at(record) for record in records] or [story.since]
    since = max(times, key=measure_age)
    return {
        "namespace": story.namespace,
        "name": story.name,
        "uid": rows[-1]["uid"] if rows else "",
        "labels": rows[-1]["labels"] if rows else {},
        "phase": story.phase,
        "priority": max((row["priority"] for row in rows), default=0),
        "pods": story.count_pods(held),
        "nodes": len({member.node for each in placed for member in each.members}),
        "attempt": rows[-1]["attempt"] if rows else 0,
        "since": since,
        "age": format_age(measure_age(since)),
        "reason": next(filter(None, reasons), ""),
        "duration": rows[-1]["duration"] if rows else "",
        "expectedStart": rows[-1]["expectedStart"] if rows else None,
        "lacks": rows[-1]["lacks"] if rows else [],
        "endsBy": _find_last_end(records),
        "submissions": [record.uid for record in story.records],
        "reports": [view_report(report) for report in story.reports],
    }


def view_report(report: PodsReport) -> dict[str, Any]:
    """Return what a publisher reported of some pods."""
    return {
        "phase": report.phase,
        "reason": report.reason,
        "message": report.message,
        "pods": report.pods,
        "names": list(report.names),
        "uid": report.gang_uid,
    }


def is_recent(story: GangStory) -> bool:
    """True if a gang is shown by default: unfinished, or rejected recently."""
    if story.living or story.reports:
        return True
    last = story.records[-1]
    if last.phase is not GangPhase.REJECTED:
        return False
    return measure_age(_submitted_at(last)) < _RECENT_S


def _find_end(record: GangRecord) -> str:
    """Return when a gang with a place is to have ended; empty: nobody knows."""
    ends_s = record.ends_by_s if record.placed_since_s else None
    return "" if ends_s is None else to_text(ends_s)


def _find_last_end(records: Iterable[GangRecord]) -> str:
    """Return when all that have a place are to have ended; empty: nobody knows."""
    ends = [_find_end(record) for record in records if record.placed is not None]
    return max(ends) if ends and all(ends) else ""


def _describe_wait(record: GangRecord, later: Sequence[GangRecord]) -> str:
    if record.decision is None:
        return UNDECIDED
    if record.ending is not None:
        return "ending"
    if record.phase is GangPhase.CANCELLED and isinstance(record.ended_by, CancelGang):
        return record.ended_by.reason.removeprefix(PUBLISHER)
    growing = count_growing(record, later)
    more = ", ".join(f"{count} of {name}" for name, count in growing.items())
    return f"{Rule.GROWING}: no room yet for {more}" if more else ""


def _labels_of(record: GangRecord) -> dict[str, str]:
    if record.submission is None:
        return {}
    return dict(record.submission.gang.metadata.labels)


def _submitted_at(record: GangRecord) -> str:
    return record.submission.submitted_at if record.submission is not None else ""


def view_members(
    record: GangRecord,
    written: AllocationWritten | None,
    held: HeldObjects | None = None,
) -> Iterator[dict[str, Any]]:
    """Return where each member of a placed gang is, and what became of it.

    Of a running gang pods that are gone, and claims that hold nothing any more, are
    told from the others where `held` is known.
    """
    pods: defaultdict[tuple[str, int], list[PodWritten]] = defaultdict(list)
    for pod in written.pods if written is not None else ():
        pods[pod.member, pod.index].append(pod)
    # Without a cluster the claims have the names that the decision gives them.
    names_decided = (
        written is not None and not written.pods and not written.pods_omitted
    )
    is_running = record.phase is GangPhase.RUNNING
    for member in record.placed.members if record.placed is not None else ():
        yield _view_member(
            record,
            member,
            pods[member.member, member.index],
            held=held if is_running else None,
            names_decided=names_decided,
        )


def _view_member(
    record: GangRecord,
    member: MemberAllocated,
    pods: list[PodWritten],
    *,
    held: HeldObjects | None,
    names_decided: bool,
) -> dict[str, Any]:
    names = {claim: name for pod in pods for claim, name in pod.claims.items()}
    claims: list[dict[str, Any]] = []
    for claim in member.claims:
        devices = [str(r.device_id) for r in claim.allocation.devices.results]
        name = claim.ref.name if names_decided else names.get(claim.claim, "")
        if held is not None and name and not names_decided:
            is_held = f"{record.namespace}/{name}" in held.claims
        else:
            is_held = True
        claims.append(
            {"claim": claim.claim, "name": name, "devices": devices, "held": is_held}
        )
    there = [p.pod for p in pods if held is None or held.has_pod(record, p.pod)]
    return {
        "member": member.member,
        "index": member.index,
        "node": member.node,
        "pods": there,
        "gone": [pod.pod for pod in pods if pod.pod not in there],
        "claims": claims,
        "devices": [
            device for claim in claims if claim["held"] for device in claim["devices"]
        ],
    }


def view_pods(
    record: GangRecord,
    written: AllocationWritten | None,
    held: HeldObjects | None = None,
) -> Iterator[dict[str, Any]]:
    """Return the pods of a gang that has devices, by the names that kubectl has.

    A pod that is gone is there too as long as its claims hold devices.
    """
    for member in view_members(record, written, held):
        row = {
            "namespace": record.namespace,
            "gang": name_gang(record),
            "member": f"{member['member']}/{member['index']}",
            "node": member["node"],
            "devices": len(member["devices"]),
            "claims": [claim["name"] for claim in member["claims"] if claim["held"]],
        }
        for name in member["pods"]:
            yield {"name": name, "status": "", **row}
        if not member["pods"] and (member["devices"] or not member["gone"]):
            for name in member["gone"] or [""]:
                yield {"name": name, "status": "Gone" if name else "", **row}


def explain_gang(
    record: GangRecord,
    written: AllocationWritten | None = None,
    held: HeldObjects | None = None,
    reports: Iterable[PodsReport] = (),
    later: Sequence[GangRecord] = (),
) -> dict[str, Any]:
    """Return all that is known of one submission; `later` as of `view_gang`."""
    return {
        **view_gang(record, held, later),
        "reasons": [
            {
                "rule": str(reason.rule),
                "subject": reason.subject,
                "field": reason.field,
                "message": reason.message,
                "facts": reason.facts,
            }
            for reason in record.reasons
        ],
        "members": list(view_members(record, written, held)),
        "namesOmitted": written is not None and written.pods_omitted,
        "solve": getattr(record.decision, "solve", ""),
        "reports": [view_report(r) for r in reports if r.gang_uid == record.uid],
    }


def explain_story(
    story: GangStory, written: WrittenGangs, held: HeldObjects | None
) -> list[dict[str, Any]]:
    """Return all that is known of a gang: each submission, and what is beside them."""
    records = story.living or (() if story.reports else story.records[-1:])
    explanations = [
        explain_gang(
            record, written.get(record.key), held, story.reports, records[number:]
        )
        for number, record in enumerate(records, start=1)
    ]
    uids = {record.uid for record in records}
    others = [report for report in story.reports if report.gang_uid not in uids]
    if others:
        row = view_story(replace(story, records=(), reports=tuple(others)), held)
        explanations.append({**row, "reasons": [], "members": [], "solve": ""})
    return explanations
