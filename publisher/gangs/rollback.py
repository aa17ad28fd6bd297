"""How what was written for waiting pods is taken back, without a gate in between.

First every pod is marked, so that nobody opens its gate for what is given up, then the
claims are freed. kube-scheduler allocates nothing for a gated pod: what is reserved for
such pods alone is a write of ours. Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from contracts.names import MANAGED
from contracts.workload import Pod
from publisher.gangs import patches
from publisher.gangs.claims import reserved_uids
from publisher.gangs.patches import Patch
from publisher.gangs.situation import Standing
from publisher.gangs.view import View, claims_of, is_gated, is_over, uids_of
from publisher.gangs.void_marks import is_void, marked


def is_leftover(key: str, waiting: Collection[str], view: View) -> bool:
    """Whether a claim holds what we wrote, for nobody but these waiting pods (uids)."""
    claim = view.claim(key)
    if claim is None or claim.allocation is None:
        return False
    if MANAGED not in claim.metadata.annotations:
        return False
    # kube-scheduler strips reservations for a moment and puts them back.
    used = any(not is_gated(pod) and not is_over(pod) for pod in view.users(key))
    return not used and reserved_uids(claim) <= set(waiting)


def plan_withdrawal(
    standing: Standing, pods: Sequence[Pod], view: View, attempt: int | None = None
) -> list[Patch]:
    """Plan what takes an attempt (None: all of a submission) back from waiting pods.

    Nothing to do: nothing is held for them, and nobody will open their gates for it.
    """
    submission = standing.submission
    freed = list(plan_undo(pods, view, standing.gone))
    if not freed and not submission.was_written:
        return []
    uid = submission.uid
    marks = [
        patches.withdraw(pod, marked(pod, uid, attempt))
        for pod in pods
        if not is_void(pod, uid, attempt)
    ]
    return marks or freed


def plan_undo(
    pods: Iterable[Pod], view: View, gone: Collection[str] = ()
) -> Iterator[Patch]:
    """Plan to free what is held for these waiting pods alone, or with pods now gone."""
    found = tuple(pods)
    waiting = uids_of(found) | set(gone)
    for key in sorted(set(claims_of(found))):
        claim = view.claim(key)
        if claim is not None and is_leftover(key, waiting, view):
            yield patches.clear(claim)
