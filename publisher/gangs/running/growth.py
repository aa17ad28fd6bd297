"""Gangs that run with fewer pods than they ask for, and grow.

A decision may place fewer pods than were submitted. From then on the gang is about
those alone. The others wait until its gates are open and are then submitted beside the
pods that run, as replacements are: one member at a time, as many as fit. What runs is
never moved, and the gang's rules hold for all of its pods. Pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from contracts.allocation import Rule
from contracts.counts import counted
from contracts.gang import GangPhase, GangSpec, Member
from contracts.messages import MAX_REASON
from contracts.reports import WAITING
from contracts.workload import Pod
from publisher.gangs.context import PlanContext, StatusReport
from publisher.gangs.records import PodGangRecord
from publisher.gangs.sizes import read_sizes
from publisher.gangs.view import is_gated, is_over, uids_of
from publisher.times import seconds_between

MORE_PODS_S = 2.0
"""So long after the last pod came more are waited for, beyond those that are needed."""
GROWING = str(Rule.GROWING)
_COMING = (
    "PodsMissing",
    "ClaimsMissing",
    "VolumesMissing",
    "QuotaPending",
    "OtherGates",
    "ClaimShared",
    "ClaimsHeld",
    "Queued",
)
"""Why pods are not asked for yet, where that ends by itself or when others run."""


def set_min_counts(
    sizes: GangSpec, members: Sequence[Member], running: Mapping[str, int] | None
) -> tuple[Member, ...]:
    """Set how many pods of each member are enough.

    `running`: running pods by member; None: the gang begins. If a member runs with as
    many pods as the gang needs one more is enough, otherwise as many as are missing,
    such as of a Job whose first pods have succeeded. Pods that share claims are all
    needed: the solver decides a shared claim for all of them. So are pods of members
    that `sizes` does not name.
    """
    shares = any(claim.claim_name for member in members for claim in member.claims)
    least = {member.name: member.least for member in sizes.members}
    is_known = all(member.name in least for member in members)
    if shares or not sizes.is_elastic or not is_known:
        return tuple(members)
    with_counts = []
    for member in members:
        enough = least[member.name]
        if running is not None:
            enough = max(enough - running.get(member.name, 0), 1)
        if enough >= member.count:
            with_counts.append(member)
        else:
            with_counts.append(replace(member, min_count=enough))
    return tuple(with_counts)


def keep_placed(record: PodGangRecord, *, runs: bool) -> PodGangRecord:
    """Return a gang as if only the pods that are placed had been submitted.

    A gang stays as it is if a member has fewer places than it needs, or if it was given
    up before a gate was open (`runs`: one is), as then all of its pods leave it.
    """
    decision, message = record.placed, record.submission
    if decision is None or message is None or not message.places:
        return record
    if record.ended_by is not None and not runs:
        return record
    members = message.gang.spec.members
    placed = Counter(member.member for member in decision.members)
    if all(placed[member.name] == member.count for member in members):
        return record
    if any(placed[member.name] < member.least for member in members):
        return record
    kept = tuple(
        replace(member, count=placed[member.name])
        for member in members
        if placed[member.name]
    )
    spec = replace(message.gang.spec, members=kept)
    places = {
        member.name: message.places[member.name][: member.count]
        for member in kept
        if member.name in message.places
    }
    gang = replace(message.gang, spec=spec)
    return replace(record, submission=replace(message, gang=gang, places=places))


def report_unplaced(
    whole: PodGangRecord, placed: PodGangRecord, pods: Sequence[Pod]
) -> StatusReport | None:
    """Report the pods of a gang that have no place, before its gates are open.

    None: there are none, or they are submitted anew.
    """
    if placed.is_open or placed.is_over or placed.ended_by is not None:
        return None
    rest = whole.pods - placed.pods
    waiting = tuple(p for p in pods if p.metadata.uid in rest and not is_over(p))
    if not waiting:
        return None
    return StatusReport(
        phase=GangPhase.DECIDED,
        reason=GROWING,
        message=f"{len(placed.pods)} of {counted(len(whole.pods), 'pod')} are placed",
        pods=waiting,
        decision=placed.in_force,
    )


def report_growth(
    context: PlanContext, reports: Sequence[StatusReport]
) -> tuple[StatusReport, ...]:
    """Report pods that wait while their elastic gang runs as its growth.

    Not where something is wrong that does not end by itself.
    """
    running = context.running
    sizes = read_sizes(context, running[0]) if running else None
    if sizes is None or not sizes.is_elastic:
        return tuple(reports)
    size = sum(member.count for member in sizes.members)
    head = f"{len(running)} of {counted(size, 'pod')} run"
    return tuple(
        _report_growing(report, head) if _is_for_growth(report) else report
        for report in reports
    )


def _report_growing(report: StatusReport, head: str) -> StatusReport:
    text = f"{head}; {report.reason}: {report.message}"[:MAX_REASON]
    return replace(report, phase=GangPhase.RUNNING, reason=GROWING, message=text)


def _is_for_growth(report: StatusReport) -> bool:
    """True if gated pods lack only room, or objects that are still to come."""
    if not report.pods or not all(map(is_gated, report.pods)):
        return False
    if report.phase == WAITING:
        return report.reason in _COMING
    return report.phase == GangPhase.PENDING and report.reason != Rule.NOT_MODELLED


def wait_for_more_s(context: PlanContext, pods: Sequence[Pod]) -> float:
    """Return how long (s) a gang that begins waits for more pods; 0: not at all."""
    sizes = read_sizes(context, pods[0])
    if sizes is None or not sizes.is_elastic:
        return 0.0
    there = uids_of(context.pods)
    if len(there) >= sum(member.count for member in sizes.members):
        return 0.0
    created = (pod.metadata.creation_timestamp for pod in pods)
    youngest = max(filter(None, created), default="")
    if not youngest:
        return 0.0
    age_s = seconds_between(youngest, context.now)
    # The API server's clock is not ours: a pod of the future is not waited for.
    return MORE_PODS_S - age_s if abs(age_s) < MORE_PODS_S else 0.0
