"""What the objects of a plan leave undecided: pods refused by name, and no Nodes.

Without any Node object nobody has said what nodes have, are called or keep away, so
nothing that pods ask of nodes limits anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import structs

from contracts.allocation import Reason
from contracts.workload import Node
from moorings.plan.work import PlanObject
from solver.problem.problem import GangPart


def limited(
    gangs: Iterable[GangPart],
    objects: Iterable[PlanObject],
    refused: Mapping[str, Reason],
) -> tuple[GangPart, ...]:
    """Refuse what cannot be decided, and ask of nodes only where there are any.

    `refused` are reasons by the uid of the gang.
    """
    known = any(isinstance(item.decoded.value, Node) for item in objects)
    found = (_refused(gang, refused.get(gang.uid)) for gang in gangs)
    return tuple(gang if known else _unlimited(gang) for gang in found)


def _refused(gang: GangPart, reason: Reason | None) -> GangPart:
    if reason is None or gang.refused:
        return gang
    return structs.replace(gang, refused=(reason,), rejected=True)


def _unlimited(gang: GangPart) -> GangPart:
    members = tuple(
        structs.replace(
            member, resources={}, node_selector={}, affinity=None, tolerations=()
        )
        for member in gang.members
    )
    return structs.replace(gang, members=members)
