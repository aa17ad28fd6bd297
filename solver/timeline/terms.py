"""What a gang asks for, term by term, and the gang without one of them. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

from msgspec import Struct, structs

from contracts.pods.pod_rules import PodTerm, SpreadTerm
from solver.problem.gangs import (
    ClaimPart,
    GangPart,
    MemberPart,
    RequestPart,
    SubrequestPart,
)

T = TypeVar("T")


class GangTerm(Struct, frozen=True, kw_only=True):
    """One term of a gang."""

    path: str
    """Where it stands: `topology/0`, `worker/nodeSelector/zone`, ..."""
    text: str
    """What it says, for people."""
    without: GangPart
    """The gang without it."""


def without_term(gang: GangPart, path: str) -> GangPart | None:
    """Leave a term out; None: the gang has none of this path."""
    found = (term.without for term in list_terms(gang) if term.path == path)
    return next(found, None)


def list_terms(gang: GangPart) -> Iterator[GangTerm]:
    """List the terms that could refuse a gang: of the gang, then member by member."""
    for number, rule in enumerate(gang.topology):
        if rule.mode != "Preferred":
            without = structs.replace(gang, topology=_without(gang.topology, number))
            yield GangTerm(
                path=f"topology/{number}",
                text=f"topology entry {number} ({rule.key})",
                without=without,
            )
    for number, constraint in enumerate(gang.constraints):
        name = constraint.match_attribute or constraint.distinct_attribute
        rest = _without(gang.constraints, number)
        yield GangTerm(
            path=f"constraints/{number}",
            text=f"constraint {number} ({name})",
            without=structs.replace(gang, constraints=rest),
        )
    for number, member in enumerate(gang.members):
        for path, text, changed in _list_of_member(member):
            members = (*gang.members[:number], changed, *gang.members[number + 1 :])
            yield GangTerm(
                path=f"{member.name}/{path}",
                text=f"{text} of member {member.name}",
                without=structs.replace(gang, members=members),
            )


_Changed = tuple[str, str, MemberPart]
"""Path, words, and the member without it."""


def _list_of_member(member: MemberPart) -> Iterator[_Changed]:
    if member.node_name:
        without = structs.replace(member, node_name="")
        yield "nodeName", f"nodeName {member.node_name}", without
    for key, value in sorted(member.node_selector.items()):
        rest = {k: v for k, v in member.node_selector.items() if k != key}
        without = structs.replace(member, node_selector=rest)
        yield f"nodeSelector/{key}", f"nodeSelector {key}: {value}", without
    if member.affinity is not None:
        yield "affinity", "node affinity", structs.replace(member, affinity=None)
    rules = member.pod_rules
    named: dict[str, tuple[PodTerm | SpreadTerm, ...]] = {
        "near": rules.near,
        "apart": rules.apart,
        "spread": rules.spread,
    }
    for name, terms in named.items():
        for number, term in enumerate(terms):
            fewer = structs.replace(rules, **{name: _without(terms, number)})
            yield (
                f"{name}/{number}",
                f"{_RULES[name]} {number} ({term.topology_key})",
                structs.replace(member, pod_rules=fewer),
            )
    for number, claim in enumerate(member.claims):
        for path, text, changed in _list_of_claim(claim):
            claims = (*member.claims[:number], changed, *member.claims[number + 1 :])
            yield (
                f"{claim.name}/{path}",
                f"{text} of claim {claim.name}",
                structs.replace(member, claims=claims),
            )


_RULES = {
    "near": "pod affinity",
    "apart": "pod anti-affinity",
    "spread": "topology spread",
}


def _list_of_claim(claim: ClaimPart) -> Iterator[tuple[str, str, ClaimPart]]:
    if claim.claim_name:
        return
    for number, constraint in enumerate(claim.constraints):
        name = constraint.match_attribute or constraint.distinct_attribute
        rest = _without(claim.constraints, number)
        without = structs.replace(claim, constraints=rest)
        yield f"constraints/{number}", f"constraint {number} ({name})", without
    for number, request in enumerate(claim.requests):
        if len(request.alternatives) != 1:
            continue
        (asked,) = request.alternatives
        for path, text, changed in _list_of_request(asked):
            replaced: RequestPart = structs.replace(request, alternatives=(changed,))
            requests = (
                *claim.requests[:number],
                replaced,
                *claim.requests[number + 1 :],
            )
            yield (
                f"{request.name}/{path}",
                f"{text} of request {request.name}",
                structs.replace(claim, requests=requests),
            )


def _list_of_request(
    asked: SubrequestPart,
) -> Iterator[tuple[str, str, SubrequestPart]]:
    """List the request's own selectors, not those of its class, and its capacity."""
    for number in range(asked.class_selectors, len(asked.selectors)):
        own = number - asked.class_selectors
        rest = _without(asked.selectors, number)
        without = structs.replace(asked, selectors=rest)
        yield f"selectors/{own}", f"selector {asked.selectors[number]}", without
    for name in sorted(asked.capacity):
        less = {each: of for each, of in asked.capacity.items() if each != name}
        without = structs.replace(asked, capacity=less)
        yield f"capacity/{name}", f"capacity {name}", without


def _without(items: tuple[T, ...], number: int) -> tuple[T, ...]:
    return (*items[:number], *items[number + 1 :])
