"""Gangs that are in with fewer pods than they ask for, asked for the others.

What has a place keeps it: the gang is asked for as one that needs none of its pods, and
whose pods are numbered from there on. So it is worth nothing to be in, and each further
pod is an extra pod.
"""

from __future__ import annotations

from collections import Counter

from msgspec import structs

from contracts.messages import GangAllocated
from solver.errors import RefusedError
from solver.problem.gangs import GangPart
from solver.problem.refusals import not_modelled

_BESIDE = "of a gang that is in already"


def ask_for_more(gang: GangPart, placed: GangAllocated) -> GangPart:
    """Ask for the pods of a gang that have no place in a decision."""
    counts = Counter(pod.member for pod in placed.members)
    members = tuple(
        structs.replace(
            member,
            count=member.count - counts[member.name],
            min_count=0,
            first=counts[member.name],
        )
        for member in gang.members
        if member.count > counts[member.name]
    )
    more = structs.replace(gang, members=members, weight=0, rejected=False)
    if gang.refused:
        return more
    try:
        _refuse_spanning_rules(gang)
    except RefusedError as error:
        return structs.replace(more, refused=(error.reason,))
    return more


def _refuse_spanning_rules(gang: GangPart) -> None:
    """Refuse rules that hold over pods that have a place and others."""
    for number, constraint in enumerate(gang.constraints):
        if constraint.scope != "Pod":
            raise not_modelled(gang.name, f"spec.constraints[{number}] {_BESIDE}")
    if gang.topology:
        raise not_modelled(gang.name, f"spec.topology {_BESIDE}")
