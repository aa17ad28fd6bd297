"""What of an expected pod is counted when room for it is estimated.

Only first choices that ask for a number of devices of their own: what bounds nothing
(all devices, admin access, none) is left out, and so are constraints that devices
differ. It is an estimate by counting, never a promise.
"""

from __future__ import annotations

from msgspec import structs

from solver.problem.problem import ClaimPart, MemberPart, RequestPart


def counted(member: MemberPart) -> MemberPart:
    """Leave of a member what room is counted by."""
    claims = tuple(map(_counted, member.claims))
    return structs.replace(member, claims=claims)


def _counted(claim: ClaimPart) -> ClaimPart:
    return structs.replace(
        claim,
        requests=tuple(
            structs.replace(request, alternatives=request.alternatives[:1])
            for request in claim.requests
            if _bounds(request)
        ),
        constraints=tuple(
            item for item in claim.constraints if item.match_attribute is not None
        ),
    )


def _bounds(request: RequestPart) -> bool:
    first = request.alternatives[0]
    return first.count > 0 and not (first.all_devices or first.admin_access)
