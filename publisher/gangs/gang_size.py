"""How many pods make a gang whole beside those that wait: so a pod is replaced at once.

Pods outlive the run that they were of: those of a CronJob's last Job stay when they
have succeeded, those of a deleted Job go a moment later than the next one comes. What
is over must not make the next run whole, or it would start pod by pod. Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from contracts.meta import OwnerReference
from contracts.workload import Pod
from publisher.gangs.records import PodGangRecord
from publisher.gangs.view import is_over, uids_of

_NOBODY = OwnerReference()


def count_others(
    pods: Sequence[Pod],
    waiting: Sequence[Pod],
    idle: Collection[str],
    records: Sequence[PodGangRecord],
) -> int:
    """Count pods of a gang that run, have succeeded, or had their turn and are gone.

    `waiting` is for whom it is asked; the uids of `idle` wait for nothing any more.
    What has succeeded counts while others run, or beside pods of the same owner.
    """
    owners = {_owner(pod) for pod in waiting}
    uids = {owner.uid for owner in owners}
    names = {(owner.kind, owner.name) for owner in owners if owner.uid}
    missing = uids_of(waiting) | set(idle)
    alive: set[str] = set()
    succeeded: list[Pod] = []
    for pod in pods:
        owner = _owner(pod)
        made_anew = (owner.kind, owner.name) in names and owner.uid not in uids
        if pod.metadata.uid in missing or made_anew:
            continue
        if not is_over(pod):
            alive.add(pod.metadata.uid)
        elif pod.status.phase == "Succeeded":
            succeeded.append(pod)
    done = sum(bool(alive) or _owner(pod).uid in uids for pod in succeeded)
    return len(alive) + done + _count_gone(pods, alive, records)


def _owner(pod: Pod) -> OwnerReference:
    """Return the controller that makes a pod anew when it is gone."""
    owners = pod.metadata.owner_references
    return next((owner for owner in owners if owner.controller), _NOBODY)


def _count_gone(
    pods: Sequence[Pod], alive: Collection[str], records: Sequence[PodGangRecord]
) -> int:
    """Count the pods that are gone of gangs that still run.

    They had their turn, or pods that want devices now are in their place.
    """
    there = uids_of(pods)
    gone: set[str] = set()
    for record in records:
        is_running = record.is_open and not record.is_over
        if is_running and not record.pods.isdisjoint(alive):
            gone |= record.pods - there
    return len(gone)
