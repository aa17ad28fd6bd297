"""ResourceClaims that several pods name: each is one allocation, of one gang."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from msgspec import structs

from contracts.allocation import Reason, Rule
from contracts.ids import object_key
from solver.problem.gang_refusals import invalid, shared
from solver.problem.gangs import ClaimPart, GangPart, MemberPart

FIELD = "spec.members[].claims[].claimName"


def check_shared_claims(members: Iterable[MemberPart]) -> None:
    """Require that a ResourceClaim is named once in a pod, and asks the same of all.

    Raises:
        RefusedError: it is not so; for good, as the gang is written.
    """
    first: dict[str, ClaimPart] = {}
    for member in members:
        named = [claim for claim in member.claims if claim.claim_name]
        if len({claim.claim_name for claim in named}) < len(named):
            raise invalid(member.name, FIELD, "names one ResourceClaim twice")
        for claim in named:
            known = first.setdefault(claim.claim_name, claim)
            if structs.replace(claim, name=known.name) != known:
                message = f"asks for something else of {claim.claim_name} than others"
                raise invalid(f"{member.name}/{claim.name}", FIELD, message)


def refuse_shared(gangs: Iterable[GangPart]) -> Iterator[GangPart]:
    """Refuse, for now, all but the first gang of a batch that names a ResourceClaim.

    The others wait until it was: then it has the claim, or did not get it.
    """
    first: dict[str, GangPart] = {}
    for gang in gangs:
        names = {c.claim_name for m in gang.members for c in m.claims} - {""}
        keys = [object_key(gang.namespace, name) for name in sorted(names)]
        taken = next((key for key in keys if key in first), None)
        if gang.refused:
            yield gang
        elif taken is None:
            first.update(dict.fromkeys(keys, gang))
            yield gang
        else:
            reason = shared(taken, f"gang {first[taken].uid} is asked first").reason
            ahead = structs.replace(reason, facts={"ahead": 1})
            yield structs.replace(gang, refused=(ahead,), rejected=False)


def waits_for_another(reasons: Iterable[Reason]) -> bool:
    """True if a gang was refused for a claim that another of its batch asks for."""
    return any(
        reason.rule is Rule.CLAIM_SHARED and "ahead" in reason.facts
        for reason in reasons
    )


def find_shared_claims(members: Iterable[MemberPart]) -> frozenset[str]:
    """Name the ResourceClaims that several pods name."""
    users = Counter[str]()
    for member in members:
        for name in {claim.claim_name for claim in member.claims} - {""}:
            users[name] += member.count
    return frozenset(name for name, pods in users.items() if pods > 1)


def count_claims(members: Iterable[MemberPart]) -> Iterator[tuple[int, ClaimPart]]:
    """Yield the claims of a gang with how many there are: a shared one is one."""
    seen = set[str]()
    for member in members:
        for claim in member.claims:
            if not claim.claim_name:
                yield member.count, claim
            elif claim.claim_name not in seen:
                seen.add(claim.claim_name)
                yield 1, claim
