"""Claims that hold devices for nobody: allocated by us, reserved and used by none.

kube-scheduler strips a reservation of ours when a later step of its cycle fails and
leaves the allocation; nobody else frees it once the pods are gone. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator

from contracts.names import MANAGED
from publisher.gangs.claims import reserved_uids
from publisher.gangs.patches import Patch, clear
from publisher.gangs.view import View, is_over


def plan_sweep(view: View) -> Iterator[Patch]:
    """Plan to free every orphan.

    What was just allocated may look like one for a moment, so the caller acts on what
    is an orphan twice, in the same version.
    """
    for key, claim in view.claims():
        if claim.allocation is None or MANAGED not in claim.metadata.annotations:
            continue
        used = any(not is_over(pod) for pod in view.users(key))
        if not used and not reserved_uids(claim):
            yield clear(claim)
