"""(assignments, observed pods) -> open the gates, each with the pin to its node.

Called only once every claim of the gang holds what was decided. A pod that is gone is
left out: whoever made it makes another, which waits at a gate of its own. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from contracts.messages import GangAllocated
from contracts.names import ATTEMPT, GANG_UID, INDEX, SOLVE
from publisher.gangs.patches import Patch, open_gate
from publisher.gangs.plan_claims import Assignment
from publisher.gangs.view import View, is_gated


def plan_gates(
    decision: GangAllocated, assignments: Iterable[Assignment], view: View
) -> Iterator[Patch]:
    """Plan the one write of every pod that still waits."""
    for item in assignments:
        annotations = {
            GANG_UID: decision.uid,
            ATTEMPT: str(decision.attempt),
            SOLVE: decision.solve,
            INDEX: f"{item.member}/{item.index}",
        }
        for pod in filter(is_gated, item.alive(view)):
            yield open_gate(pod, item.node, annotations)
