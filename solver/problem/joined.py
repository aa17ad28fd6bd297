"""Pods of a gang that are asked for beside others of it, which run already.

Whoever asks says what those have, and the rules over both. All of it only restricts: a
pod that runs is given nothing, and what is wrong with what is said of it is refused.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from msgspec import structs

from contracts.gang import GangSpec, Member, MemberClaim
from contracts.joined import JoinedGang
from contracts.validate.gang_rules import check_constraints, check_topology
from solver.errors import RefusedError
from solver.problem.gangs import GangPart
from solver.problem.growth import list_derived
from solver.problem.refusals import invalid
from solver.problem.standing import HeldPart, StandingPart


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
