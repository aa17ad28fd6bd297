"""Paths of a gang's constraints, once its templates are known.

A path that names no request where the claim is written out is refused with the gang;
what a template asks for is known here.
"""

from __future__ import annotations

from collections.abc import Iterable

from contracts.gang_rules import DevicePath, GangConstraint
from solver.problem.gang_refusals import invalid
from solver.problem.gangs import ClaimPart, MemberPart


def check_paths(
    constraints: Iterable[GangConstraint], members: Iterable[MemberPart]
) -> None:
    """Require that each path of the constraints names a request that exists.

    Raises:
        RefusedError: one names nothing; for good, as the gang is written.
    """
    claims_by_member = {
        member.name: {claim.name: claim for claim in member.claims}
        for member in members
    }
    for number, constraint in enumerate(constraints):
        for index, text in enumerate(constraint.requests):
            path = DevicePath.parse(text)
            claims = claims_by_member.get(path.member, {})
            claim = claims.get(path.claim)
            if path.claim and (claim is None or not _names_something(path, claim)):
                field = f"spec.constraints[{number}].requests[{index}]"
                raise invalid(path.member, field, f"{text} names no request")


def _names_something(path: DevicePath, claim: ClaimPart) -> bool:
    if not path.request:
        return True
    return any(
        request.name == path.request
        and (
            not path.subrequest
            or any(each.name == path.subrequest for each in request.alternatives)
        )
        for request in claim.requests
    )
