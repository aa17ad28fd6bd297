"""Gangs that are in with fewer pods than they ask for, asked for the others.

What has a place keeps it: the gang is asked for as one that needs none of its pods, and
whose pods are numbered from there on. So it is worth nothing to be in, and each further
pod is an extra pod. Its rules hold over the old pods and the new ones together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from msgspec import structs

from contracts.ids import FullyQualifiedName
from contracts.messages import GangAllocated, MemberAllocated
from contracts.pods.node_resources import PODS
from solver.problem.gangs import GangPart, MemberPart
from solver.problem.standing import HeldPart, StandingPart

Derived = dict[tuple[str, str], tuple[tuple[FullyQualifiedName, str], ...]]


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
    standing: tuple[StandingPart, ...] = ()
    if gang.topology or any(rule.scope != "Pod" for rule in gang.constraints):
        parts = {member.name: member for member in gang.members}
        standing = tuple(
            _stand(pod, parts[pod.member])
            for pod in placed.members
            if pod.member in parts
        )
    return structs.replace(
        gang, members=members, weight=0, rejected=False, standing=standing
    )


def _stand(pod: MemberAllocated, member: MemberPart) -> StandingPart:
    """Say of a pod what rules of its gang may look at."""
    return StandingPart(
        member=pod.member,
        index=pod.index,
        node=pod.node,
        pods=member.resources.get(PODS, 1),
        devices=tuple(_list_held(pod, member)),
    )


def _list_held(pod: MemberAllocated, member: MemberPart) -> Iterator[HeldPart]:
    derived = list_derived(member)
    for claim in pod.claims:
        for result in claim.allocation.devices.results:
            yield HeldPart(
                claim=claim.claim,
                request=result.request,
                device=result.device_id,
                derived_attributes=derived.get((claim.claim, result.request), ()),
            )


def list_derived(member: MemberPart) -> Derived:
    """List what requests of a member derive, by claim and request as results name it.

    With each: (attribute, expression).
    """
    return {
        (claim.name, request.result_name(rank)): alternative.derived_attributes
        for claim in member.claims
        for request in claim.requests
        for rank, alternative in enumerate(request.alternatives)
    }
