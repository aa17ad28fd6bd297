"""Why no node takes even one pod, though counting finds enough for each request.

One pod is asked for by itself, then with less: without constraints, with one of its
claims, with one request, with fewer devices. What makes it fit names what is in the
way. An engine decides each of these; where it does not know, nothing is said.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from msgspec import structs

from contracts.allocation import MAX_DEVICES, Reason, Rule
from contracts.counts import counted, listed
from solver.problem.gangs import ClaimPart, GangPart, MemberPart, RequestPart

Fits = Callable[[GangPart, bool], bool | None]
"""True if a gang by itself has a place; with the second argument, if all devices were
free. None: unknown, or it would take too long to find out."""


def explain_pod(
    gang: GangPart,
    member: MemberPart,
    fits: Fits,
    describe_nearest: Callable[[ClaimPart], str],
) -> Reason | None:
    """Return why one pod of a member has no place; None: it has, or it is unknown.

    `describe_nearest`: what comes nearest to the constraints of a claim, in words.
    """
    if gang.separated or not member.claims:
        return None  # what other pods of the gang would bring is not known
    pod = _Pod(gang, member, fits, describe_nearest)
    return pod.explain() if pod.fits(member.claims) is False else None


def explain_joint(gang: GangPart, fits: Fits) -> Reason:
    """Return how many of its pods have a place at once, where that is known."""
    pods = gang.pods
    if fits(gang, False) is not False:
        message = "each pod fits by count, but no placement of all of them was found"
        if pods == 1:
            message = "its pod fits by count, but no placement was found"
        return Reason(rule=Rule.JOINT, message=message, facts={"pods": pods})
    if pods == 1:
        message = "each thing that its pod asks for is somewhere, but no node has all"
    else:
        message = f"each of {counted(pods, 'pod')} fits alone, but not all together"
    reason = Reason(rule=Rule.JOINT, message=message, facts={"pods": pods})
    return add_room(reason, gang, fits)


def describe_alone(pods: int) -> str:
    """Begin to say that pods fit alone, but not by a rule that follows."""
    if pods == 1:
        return "its pod fits on some node, but not"
    return f"each of {counted(pods, 'pod')} fits on some node, but not all"


def add_room(reason: Reason, gang: GangPart, fits: Fits) -> Reason:
    """Add how many pods of its only member have a place at once, where it is known."""
    if gang.pods == 1 or len(gang.members) > 1 or fits(gang, False) is not False:
        return reason
    room = _count_most(gang, fits)
    if not room:
        return reason
    message = f"{reason.message}: at most {room} of {counted(gang.pods, 'pod')} at once"
    return structs.replace(
        reason, message=message, facts={**reason.facts, "room": room}
    )


def _count_most(gang: GangPart, fits: Fits) -> int | None:
    """Count the pods of the only member that have a place at once; None: unknown."""
    (member,) = gang.members
    room, too_many = 0, member.count
    while too_many - room > 1:
        tried = (room + too_many) // 2
        fewer = structs.replace(member, count=tried, min_count=None)
        has_place = fits(structs.replace(gang, members=(fewer,)), False)
        if has_place is None:
            return None
        if has_place:
            room = tried
        else:
            too_many = tried
    return room


class _Pod:
    """One pod that has no place."""

    def __init__(
        self,
        gang: GangPart,
        member: MemberPart,
        fits: Fits,
        describe_nearest: Callable[[ClaimPart], str],
    ) -> None:
        self._gang, self._member, self._fits = gang, member, fits
        self._describe_nearest = describe_nearest

    def fits(self, claims: Sequence[ClaimPart], *, unheld: bool = False) -> bool | None:
        """True if it has a place with these claims; `unheld`: were all devices free.

        Rules about other pods do not count.
        """
        alone = structs.replace(
            self._member,
            count=1,
            min_count=None,
            claims=tuple(claims),
            resolved=structs.replace(self._member.resolved, roles=()),
        )
        gang = structs.replace(
            self._gang,
            members=(alone,),
            constraints=(),
            topology=(),
            standing=(),
            separated=(),
        )
        return self._fits(gang, unheld)

    def explain(self) -> Reason:
        """Find what is in the way by asking for less and less until it fits."""
        claims = self._member.claims
        single = next((c for c in claims if self.fits([c]) is False), None)
        if single is None:
            return self._explain_together([f"claim {c.name}" for c in claims], "")
        return (
            self._explain_constraints(single)
            or self._explain_requests(single)
            or self._explain_number(single)
        )

    def _explain_constraints(self, claim: ClaimPart) -> Reason | None:
        """Blame the constraints of a claim, if it fits without them."""
        if not claim.constraints or not self.fits(
            [_with_requests(claim, claim.requests)]
        ):
            return None
        names = dict.fromkeys(
            f"have the same {c.match_attribute}"
            if c.match_attribute
            else f"differ in {c.distinct_attribute}"
            for c in claim.constraints
        )
        is_held = self.fits([claim], unheld=True)
        message = f"no node has devices for one pod that {' and '.join(names)}"
        if nearest := self._describe_nearest(claim):
            message += f"; {nearest}"
        if is_held:
            message += "; some node would if no devices were held"
        rule = Rule.TAKEN if is_held else Rule.CONSTRAINT
        return self._reason(rule, f"/{claim.name}", message)

    def _explain_requests(self, claim: ClaimPart) -> Reason | None:
        """Blame requests that fit one by one; None: one of them does not."""
        if len(claim.requests) < 2:
            return None
        each = [_with_requests(claim, [request]) for request in claim.requests]
        if any(self.fits([one]) is False for one in each):
            return None
        names = [f"request {request.name}" for request in claim.requests]
        return self._explain_together(names, f"/{claim.name}")

    def _explain_together(self, names: Sequence[str], place: str) -> Reason:
        is_held = self.fits(self._member.claims, unheld=True)
        message = f"no node has room for {listed(names)} together, only for each alone"
        if is_held:
            message += "; some node would if no devices were held"
        return self._reason(Rule.TAKEN if is_held else Rule.JOINT, place, message)

    def _explain_number(self, claim: ClaimPart) -> Reason:
        """Return how many devices would fit of the first request that does not."""
        request = next(
            (
                request
                for request in claim.requests
                if self.fits([_with_requests(claim, [request])]) is False
            ),
            claim.requests[0],
        )
        alone = _with_requests(claim, [request])
        is_held = self.fits([alone], unheld=True)
        most = self._find_most(alone, request)
        asked = max(a.count for a in request.alternatives)
        if any(a.all_devices for a in request.alternatives):
            message = "no node can give one pod all matching devices"
        elif most:
            message = f"no node can give one pod {asked} of them; the most is {most}"
        else:
            message = "no node can give one pod what it asks for"
        if is_held:
            message += "; some could if no devices were held"
        rule = Rule.TAKEN if is_held else Rule.JOINT
        return self._reason(rule, f"/{claim.name}/{request.name}", message)

    def _find_most(self, claim: ClaimPart, request: RequestPart) -> int:
        """Find the most devices that have a place; 0: none have, or it is unknown."""
        for count in _list_fewer(request):
            fewer = tuple(
                structs.replace(alternative, count=min(alternative.count, count))
                for alternative in request.alternatives
            )
            asked = structs.replace(request, alternatives=fewer)
            has_place = self.fits([_with_requests(claim, [asked])])
            if has_place is not False:
                return count if has_place else 0
        return 0

    def _reason(self, rule: Rule, place: str, message: str) -> Reason:
        return Reason(
            rule=rule,
            subject=f"{self._member.name}{place}",
            message=message,
            facts={"pods": self._member.count},
        )


def _with_requests(claim: ClaimPart, requests: Sequence[RequestPart]) -> ClaimPart:
    """Keep some requests of a claim, without constraints between them."""
    return structs.replace(claim, requests=tuple(requests), constraints=())


def _list_fewer(request: RequestPart) -> Iterator[int]:
    """Yield smaller numbers of devices, as far as a claim may hold them."""
    most = max(alternative.count for alternative in request.alternatives)
    yield from range(min(most - 1, MAX_DEVICES), 0, -1)
