"""Gangs that run with fewer pods than they ask for, and grow.

A decision may place fewer pods than were submitted. Then the gang is about those alone.
The others wait with it until its gates are open; from then on they are asked for beside
the pods that run, as replacements are, one member at a time and as many as fit, so that
what runs is never moved and the gang's rules hold for all. Pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from msgspec.structs import replace

from contracts.allocation import Rule
from contracts.counts import counted
from contracts.gang import Gang, GangPhase, Member
from contracts.messages import MAX_REASON
from contracts.pods.members import group_connected
from contracts.reports import WAITING
from contracts.workload import Pod
from publisher.gangs.compare import member_name_of
from publisher.gangs.context import PlanContext, StatusReport
from publisher.gangs.records import PodGangRecord
from publisher.gangs.view import View, claim_keys, is_gated, is_over, uids_of
from publisher.times import seconds_between

SETTLE_S = 2.0
"""So long after the last pod came more are waited for, beyond those that are needed."""
GROWING = str(Rule.GROWING)
_COMING = (
    "PodsMissing",
    "ClaimsMissing",
    "VolumesMissing",
    "QuotaPending",
    "ClaimShared",
    "ClaimsHeld",
    "Queued",
)
"""Why pods are not asked for yet, where that ends by itself or when others run."""


def let_shrink(
    gang: Gang, members: Sequence[Member], running: Mapping[str, int] | None
) -> tuple[Member, ...]:
    """Say of the members of a submission how many of their pods are enough.

    `running`: by member, the pods that they join; None: the gang begins. One of them is
    enough beside as many as the gang needs; else as many as that lacks, such as of a
    Job whose first pods have succeeded. Where pods share claims all are needed: the
    solver decides such claims for all of them.
    """
    shares = any(claim.claim_name for member in members for claim in member.claims)
    if shares or not gang.spec.is_elastic:
        return tuple(members)
    least = {member.name: member.least for member in gang.spec.members}
    shrinking = []
    for member in members:
        enough = least.get(member.name, member.count)
        if running is not None:
            enough = max(least.get(member.name, 0) - running.get(member.name, 0), 1)
        if enough >= member.count:
            shrinking.append(member)
        else:
            shrinking.append(replace(member, min_count=enough))
    return tuple(shrinking)


def split_by_member(gang: Gang, pods: Sequence[Pod], view: View) -> list[list[Pod]]:
    """Split pods that join an elastic gang by member: none waits for another's.

    Those that share a claim without devices are asked for together, and by themselves.
    """
    if not gang.spec.is_elastic:
        return [list(pods)]

    def undecided_claims(pod: Pod) -> Iterator[str]:
        for key in claim_keys(pod).values():
            claim = view.claim(key)
            if claim is not None and claim.allocation is None:
                yield key

    parts: dict[object, list[Pod]] = {}
    for number, tied in enumerate(group_connected(pods, undecided_claims)):
        part = number if len(tied) > 1 else member_name_of(tied[0], gang)
        parts.setdefault(part, []).extend(tied)
    return list(parts.values())


def keep_placed(record: PodGangRecord, *, runs: bool) -> PodGangRecord:
    """Return a gang as if it had been submitted with the pods alone that are placed.

    One of whose members fewer are placed than needed stays as it is; so does one that
    was given up before a gate was open (`runs`: one is), which all of its pods leave.
    """
    decision, message = record.placed, record.submission
    if decision is None or message is None or not message.places:
        return record
    if record.command is not None and not runs:
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
    """Tell the pods of a gang that have no place, before its gates are open.

    None: there are none, or they are asked for anew.
    """
    if placed.is_open or placed.is_over or placed.command is not None:
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


def tell_growing(
    gang: Gang, pods: Sequence[Pod], reports: Sequence[StatusReport]
) -> Iterator[StatusReport]:
    """Say of pods that wait while their gang runs that it is growing.

    Not where something is wrong that does not end by itself.
    """
    run = [pod for pod in pods if not is_gated(pod) and not is_over(pod)]
    size = sum(member.count for member in gang.spec.members)
    for report in reports:
        waits = report.pods and _is_ordinary(report)
        if run and waits and gang.spec.is_elastic and all(map(is_gated, report.pods)):
            head = f"{len(run)} of {counted(size, 'pod')} run"
            text = f"{head}; {report.reason}: {report.message}"
            yield replace(
                report,
                phase=GangPhase.RUNNING,
                reason=GROWING,
                message=text[:MAX_REASON],
            )
        else:
            yield report


def _is_ordinary(report: StatusReport) -> bool:
    """Whether pods wait for no more than room, or what is still to come."""
    if report.phase == WAITING:
        return report.reason in _COMING
    return report.phase == GangPhase.PENDING and report.reason != Rule.NOT_MODELLED


def settles_in(context: PlanContext, gang: Gang | None, pods: Sequence[Pod]) -> float:
    """Say how long (s) a gang that begins waits for more pods; 0: not at all."""
    if gang is None or not gang.spec.is_elastic:
        return 0.0
    there = uids_of(context.view.pods(context.group))
    if len(there) >= sum(member.count for member in gang.spec.members):
        return 0.0
    created = (pod.metadata.creation_timestamp for pod in pods)
    youngest = max(filter(None, created), default="")
    if not youngest:
        return 0.0
    age_s = seconds_between(youngest, context.now)
    # The API server's clock is not ours: a pod of the future is not waited for.
    return SETTLE_S - age_s if abs(age_s) < SETTLE_S else 0.0
