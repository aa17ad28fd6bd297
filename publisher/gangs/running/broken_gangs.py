"""Running gangs that lost a part: Kubernetes ended some of their pods for others.

kube-scheduler preempts one pod of a gang, an eviction or a taint takes another, and the
rest goes on holding devices that it can do nothing with. How pods ended is remembered
(`EndedPods`), as they are gone soon. The last ends explain as many pods as are missing:
those before were made good by replacements. Pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Sequence

from msgspec import Struct

from contracts.counts import counted
from contracts.gang import GangPhase, GangSpec
from contracts.messages import MAX_REASON
from contracts.names import GANG_UID
from contracts.pods.gang_owners import GangOwner
from contracts.pods.membership import OwnerKey
from contracts.workload import Pod
from publisher.gangs.context import PlanContext, StatusReport, SubmittedGang
from publisher.gangs.ended_pods import PodEnd
from publisher.gangs.members import member_name_of
from publisher.gangs.records import PodGangRecord
from publisher.gangs.running.growth import keep_placed
from publisher.gangs.view import is_gated

GANG_BROKEN = "GangBroken"
"""The reason that people read."""
_BY_DEVICE = "DeletionByDeviceTaintManager"
_ENDED_BY = {
    "PreemptionByScheduler": "was preempted by kube-scheduler",
    "DeletionByTaintManager": "was evicted by a taint of its node",
    _BY_DEVICE: "was evicted by a taint of its device",
    "EvictionByEvictionAPI": "was evicted",
    "TerminationByKubelet": "was ended by kubelet",
    "DeletionByPodGC": "was deleted, as its node is gone",
}
"""By the reason of the condition DisruptionTarget (core/v1)."""
_TOP = ("", "CronJob")
"""Controllers of what makes all pods of a gang."""
_NAMED = 5
"""So many pods are named in a text."""


class BrokenGang(Struct, frozen=True, kw_only=True):
    """A gang that runs on in parts."""

    report: StatusReport
    by_device: bool
    """True if devices failed: Kubernetes ended their pods for that."""


def find_broken(context: PlanContext, submitted: SubmittedGang) -> BrokenGang | None:
    """Report that a gang runs on without pods that Kubernetes ended; None: it does not.

    It is whole again once others run in their place. Pods that finished by themselves
    break no gang: it comes to its end.
    """
    ends = context.view.ended.of(context.group)
    opened = next((pod for pod in submitted.alive if not is_gated(pod)), None)
    if opened is None or not any(end.is_disrupted for end in ends):
        return None
    run, running = context.membership(opened).run, context.list_running_with(opened)
    wanted, missing = _find_missing(
        context, running, [end for end in ends if end.run == run]
    )
    is_ending = any(end.has_finished for end in missing)
    if is_ending or not any(end.is_disrupted for end in missing):
        return None
    count = counted(wanted, "pod runs", "pods run")
    report = StatusReport(
        phase=GangPhase.RUNNING,
        reason=GANG_BROKEN,
        message=f"{len(running)} of {count}: {_describe_ends(missing)}"[:MAX_REASON],
        pods=submitted.alive,
        decision=submitted.record.in_force,
    )
    by_device = any(end.reason == _BY_DEVICE for end in missing)
    return BrokenGang(report=report, by_device=by_device)


def describe_end(context: PlanContext, record: PodGangRecord) -> str:
    """Describe how Kubernetes ended the pods of a gang of which none runs.

    Empty: it did not, or one of them finished by itself.
    """
    ends = context.view.ended.of(context.group)
    own = [end for end in ends if end.gang == record.uid]
    disruption = _describe_ends(own)
    if not disruption or any(end.has_finished for end in own):
        return ""
    return f"{GANG_BROKEN}: no pod runs: {disruption}"


# --- which pods are missing -----------------------------------------------------------


def _find_missing(
    context: PlanContext, running: Sequence[Pod], ends: Sequence[PodEnd]
) -> tuple[int, Sequence[PodEnd]]:
    """Return how many pods a run should have, and the ends of those that it lacks.

    No ends: it is whole, or nobody has seen how those ended.
    """
    records = list(_list_records(context, running))
    decided = _count_decided(records)
    latest = _take_last(ends, decided - len(running))
    spec = _find_spec(context, records)
    if spec is not None and spec.is_elastic:
        counts = Counter(member_name_of(pod, context.gang) for pod in running)
        is_short = any(counts[member.name] < member.least for member in spec.members)
        return decided, latest if is_short else ()
    owner = context.owner_of(running[0]) or _find_maker(context, running, latest)
    if owner is None:
        return decided, latest
    uids = {record.uid for record in records}
    decided += _count_gone_roles(
        owner,
        there={context.membership(pod).role for pod in running},
        ends=[end for end in ends if end.gang not in uids],
    )
    if not owner.counts_succeeded:
        # It wants fewer pods for those that have succeeded.
        ends = [end for end in ends if not end.has_finished]
    wanted = min(decided, _count_wanted(owner, decided))
    return wanted, _take_last(ends, wanted - len(running))


def _take_last(ends: Sequence[PodEnd], count: int) -> Sequence[PodEnd]:
    return ends[-count:] if count > 0 else ()


def _list_records(
    context: PlanContext, running: Iterable[Pod]
) -> Iterator[PodGangRecord]:
    """Go through the gangs that these pods run for, without pods that have no place."""
    uids = {pod.metadata.annotations.get(GANG_UID) for pod in running}
    for record in context.records:
        if record.uid in uids and not record.is_ending:
            yield keep_placed(record, runs=True)


def _count_decided(records: Iterable[PodGangRecord]) -> int:
    """Count the pods that a gang was decided with, and grew by.

    Pods in the place of others add nothing, but their submission says what it was.
    """
    uids: set[str] = set()
    unnamed = restored = 0
    for record in records:
        if record.restores:
            restored = max(restored, record.restores)
        elif record.pods:
            uids |= record.pods
        elif record.placed is not None:
            unnamed += len(record.placed.members)
    return max(len(uids) + unnamed, restored)


def _count_gone_roles(
    owner: GangOwner, there: Container[str], ends: Iterable[PodEnd]
) -> int:
    """Count the pods of roles of which none is there any more.

    `ends` are of gangs of which nothing runs: of roles that were decided later than the
    others (`after`), such as a launcher.
    """
    gone = {end.role for end in ends if end.role not in there}
    return sum(role.count for role in owner.roles if role.name and role.name in gone)


def _find_spec(
    context: PlanContext, records: Iterable[PodGangRecord]
) -> GangSpec | None:
    """Return what the gang asked for when it began; None: that is not known."""
    if context.gang is not None:
        return context.gang.spec
    begun = (r.submission for r in records if r.submission and not r.restores)
    first = next(begun, None)
    return None if first is None else first.gang.spec


def _find_maker(
    context: PlanContext, running: Iterable[Pod], ends: Iterable[PodEnd]
) -> GangOwner | None:
    """Return the object that made all of these pods; None: not one that is known."""
    owners = [pod.metadata.controller for pod in running]
    if len({*(owner.uid for owner in owners), *(end.maker for end in ends)}) != 1:
        return None
    key = OwnerKey(owners[0].kind, context.group.namespace, owners[0].name)
    maker = context.view.owners.find(key, owners[0].uid)
    return maker if maker is not None and maker.controller.kind in _TOP else None


def _count_wanted(owner: GangOwner, decided: int) -> int:
    """Count the pods that an object wants now; `decided` if it does not say."""
    if owner.minimum is not None:
        return owner.minimum
    return sum(role.count for role in owner.roles) if owner.roles else decided


# --- in words -------------------------------------------------------------------------


def _describe_ends(ends: Iterable[PodEnd]) -> str:
    """Describe which pods Kubernetes ended, and why; empty: none."""
    names: dict[tuple[str, str], list[str]] = {}
    for end in ends:
        if end.is_disrupted:
            names.setdefault((end.reason, end.message), []).append(end.name)
    texts = []
    for (reason, message), ended in names.items():
        verb = _ENDED_BY.get(reason, "was disrupted")
        verb = verb if len(ended) == 1 else verb.replace("was ", "were ", 1)
        named, more = ", ".join(sorted(ended)[:_NAMED]), len(ended) - _NAMED
        others = f" and {more} more" if more > 0 else ""
        texts.append(f"{named}{others} {verb} ({message or reason})")
    return "; ".join(texts)
