"""Takes back what was written for waiting pods, before any gate opens.

First every pod is marked, so that nobody opens its gate for what is given up; then the
claims are freed. kube-scheduler allocates nothing for a gated pod, so what is reserved
for gated pods alone was written by us. Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from contracts.names import MANAGED
from contracts.workload import Pod
from publisher.gangs import patches
from publisher.gangs.claims import is_immediate, reserved_uids
from publisher.gangs.context import SubmittedGang
from publisher.gangs.patches import Patch
from publisher.gangs.view import View, claim_keys, claims_of, is_done, is_gated, uids_of
from publisher.gangs.void_marks import add_void_mark, is_void


def is_leftover(key: str, waiting: Collection[str], view: View) -> bool:
    """True if a claim holds what we wrote, for nobody but these waiting pods (uids).

    An immediate claim holds it for whoever comes.
    """
    claim = view.claim(key)
    if claim is None or claim.allocation is None or is_immediate(claim):
        return False
    if MANAGED not in claim.metadata.annotations:
        return False
    # kube-scheduler strips reservations for a moment and puts them back; one for a
    # PodGroup names no pod, and nobody marks a pod that is not ours.
    used = any(not is_gated(pod) and not is_done(pod) for pod in view.users(key))
    if used or view.ungated_users.has(key):
        return False
    return reserved_uids(claim) <= set(waiting)


def plan_withdrawal(
    submitted: SubmittedGang,
    pods: Sequence[Pod],
    view: View,
    attempt: int | None = None,
) -> list[Patch]:
    """Plan what takes an attempt (None: all of a gang) back from waiting pods.

    Nothing to do: nothing is held for them, and nobody will open their gates for it.
    """
    record = submitted.record
    freed = list(plan_undo(pods, view, submitted.gone_uids))
    if not freed and not record.was_written:
        return []
    marks = [
        patches.withdraw(pod, add_void_mark(pod, record.uid, attempt))
        for pod in pods
        if not is_void(pod, record.uid, attempt)
    ]
    return marks or freed


def plan_undo(
    pods: Iterable[Pod], view: View, gone: Collection[str] = ()
) -> Iterator[Patch]:
    """Plan to free what is held for these waiting pods alone, or with pods now gone."""
    pods = tuple(pods)
    waiting = uids_of(pods) | set(gone)
    for key in sorted(set(claims_of(pods))):
        claim = view.claim(key)
        if claim is not None and is_leftover(key, waiting, view):
            yield patches.clear(claim)


def find_withdrawn(submitted: SubmittedGang, view: View) -> frozenset[str]:
    """Return the waiting pods that are no part of a gang any more, and hold nothing."""
    uid, waiting = submitted.record.uid, submitted.waiting
    held = {patch.key for patch in plan_undo(waiting, view, submitted.gone_uids)}
    return uids_of(
        pod
        for pod in waiting
        if is_void(pod, uid) and held.isdisjoint(claim_keys(pod).values())
    )
