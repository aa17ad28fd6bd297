"""Pods of a gang that are asked for beside others of it, which have a place.

A gang that is in with fewer pods than it asks for is asked for as one that needs none
of its pods: to be in is worth nothing, each further pod is an extra pod, numbered after
those that have a place. Pods that replace others of a running gang are asked for beside
those that run; whoever asks says what those have. In both cases the gang's rules hold
over old and new pods together, and only restrict the new ones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from msgspec import structs

from contracts.gang import GangSpec, Member, MemberClaim
from contracts.ids import FullyQualifiedName
from contracts.joined import JoinedGang
from contracts.messages import GangAllocated, MemberAllocated
from contracts.pods.node_resources import PODS
from contracts.validate.gang_rules import check_constraints, check_topology
from solver.errors import RefusedError
from solver.problem.gang_refusals import invalid
from solver.problem.gangs import GangPart, MemberPart
from solver.problem.growth.standing import HeldPart, StandingPart

MOST_EXTRA = 4_096
"""Extra pods of one batch, but one of each member at least; the rest come later.
Whoever lines gangs up keeps to it as well, so that each gang of a batch is tried."""
MOST_GROWN = 16
"""Growing gangs of one batch with rules that span pods: each is tried by itself."""
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
            _make_standing(pod, parts[pod.member])
            for pod in placed.members
            if pod.member in parts
        )
    return structs.replace(
        gang, members=members, weight=0, rejected=False, standing=standing
    )


def _make_standing(pod: MemberAllocated, member: MemberPart) -> StandingPart:
    """Return what the rules of its gang may look at of a placed pod."""
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


# --- beside pods that run: whoever asks says what those have -------------------------


def join_running(gang: GangPart, spec: GangSpec, joins: JoinedGang) -> GangPart:
    """Have a resolved gang keep its rules together with pods that run.

    `spec` is what was asked for. Rules that name nothing reject it.
    """
    if gang.refused:
        return gang
    try:
        _check_rules(gang.name, list(_list_members(spec, joins)), joins)
    except RefusedError as error:
        return structs.replace(gang, refused=(error.reason,), rejected=error.rejected)
    return structs.replace(
        gang,
        constraints=joins.constraints,
        topology=joins.topology,
        standing=tuple(_list_standing(gang, joins)),
    )


def _check_rules(name: str, members: Iterable[Member], joins: JoinedGang) -> None:
    for violations in (
        check_constraints(joins.constraints, members, "joins.constraints"),
        check_topology(joins.topology, members, "joins.topology"),
    ):
        for violation in violations:
            raise invalid(name, violation.field, violation.reason)


def _list_members(spec: GangSpec, joins: JoinedGang) -> Iterator[Member]:
    """List the members of both, with the claims that rules may name."""
    claims = {
        member.name: {claim.name: claim for claim in member.claims}
        for member in spec.members
    }
    for pod in joins.pods:
        own = claims.setdefault(pod.member, {})
        for held in pod.devices:
            own.setdefault(held.claim, MemberClaim(name=held.claim))
    for name, by_name in claims.items():
        yield Member(name=name, claims=tuple(by_name.values()))


def _list_standing(gang: GangPart, joins: JoinedGang) -> Iterator[StandingPart]:
    """List the pods that run; those of a member are numbered after the new ones."""
    derived = {member.name: list_derived(member) for member in gang.members}
    numbers = Counter({member.name: member.count for member in gang.members})
    for pod in joins.pods:
        of_member = derived.get(pod.member, {})
        yield StandingPart(
            member=pod.member,
            index=numbers[pod.member],
            node=pod.node,
            devices=tuple(
                HeldPart(
                    claim=held.claim,
                    request=held.request,
                    device=held.device,
                    derived_attributes=of_member.get((held.claim, held.request), ()),
                )
                for held in pod.devices
            ),
        )
        numbers[pod.member] += 1
