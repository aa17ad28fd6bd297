"""Marks on gated pods: gangs and attempts for which the gate will not be opened.

A gate is opened only on the version of the pod that was seen. So a pod is marked before
its claims are freed: whoever believes that they are still held, and acts late, meets a
conflict or the mark. Pure.
"""

from __future__ import annotations

from contracts.ids import GangUID
from contracts.names import VOID
from contracts.workload import Pod

_KEPT = 20
"""Marks of so many gangs stay on a pod."""
_DIGITS = 10
"""Of the number of an attempt."""
_AHEAD = 1000
"""So many attempts a mark may be ahead: a bus that lost all counts them anew."""


def is_void(pod: Pod, uid: GangUID, attempt: int | None = None) -> bool:
    """True if a pod was withdrawn from a gang for good, or from this attempt."""
    for mark in _list_marks(pod):
        gang, _, number = mark.partition("/")
        if gang != uid:
            continue
        if not number:
            return True
        if attempt is not None and _is_mark_of(number, attempt):
            return True
    return False


def _is_mark_of(number: str, attempt: int) -> bool:
    """True if the number of a mark withdraws a pod from an attempt.

    The annotation is the author's to change: it may have a quarter million digits, and
    a number far ahead would have the gang decided again and again.
    """
    is_number = number.isascii() and number.isdecimal() and len(number) <= _DIGITS
    return is_number and attempt <= int(number) <= attempt + _AHEAD


def add_void_mark(pod: Pod, uid: GangUID, attempt: int | None = None) -> str:
    """Return the annotation that withdraws a pod; None: from all attempts."""
    others = [mark for mark in _list_marks(pod) if mark.partition("/")[0] != uid]
    own = uid if attempt is None else f"{uid}/{attempt}"
    return " ".join([*others[-_KEPT:], own])


def _list_marks(pod: Pod) -> list[str]:
    return pod.metadata.annotations.get(VOID, "").split()
