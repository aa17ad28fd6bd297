"""Which gangs their quotas let be tried, by trying every choice of alternatives.

Plain Python; shares no code with what the solver counts by. A device is of any driver
that no selector of its request excludes by name.
"""

from __future__ import annotations

import re
from itertools import product

from solver.problem.gangs import ClaimPart, GangPart, SubrequestPart
from solver.problem.problem import QuotaPart

MOST_OF_A_CLAIM = 32
NAMED = re.compile(r'device\.driver == "([^"]*)"')


def admitted(
    gangs: tuple[GangPart, ...], quotas: tuple[QuotaPart, ...]
) -> list[GangPart]:
    """List the gangs that are tried, of those that nothing else refuses."""
    found: list[GangPart] = []
    for gang in gangs:
        if gang.refused:
            continue
        together = [
            other for other in [*found, gang] if other.namespace == gang.namespace
        ]
        if all(
            _keeps(together, gang, quota)
            for quota in quotas
            if quota.namespace == gang.namespace
        ):
            found.append(gang)
    return found


def _keeps(together: list[GangPart], last: GangPart, quota: QuotaPart) -> bool:
    if not _most(last, quota.driver):
        return True
    return quota.used + sum(_most(g, quota.driver) for g in together) <= quota.limit


def _most(gang: GangPart, driver: str) -> int:
    """Count the devices of a driver that the gang gets at most."""
    pods = [member for member in gang.members for _ in range(member.count)]
    claims = [claim for pod in pods for claim in pod.claims]
    named = {claim.claim_name: claim for claim in claims if claim.claim_name}
    once = [*named.values(), *(claim for claim in claims if not claim.claim_name)]
    return sum(_most_of(claim, driver) for claim in once)


def _most_of(claim: ClaimPart, driver: str) -> int:
    choices = product(*(request.alternatives for request in claim.requests))
    return max(
        min(MOST_OF_A_CLAIM, sum(_counts(asked, driver) for asked in choice))
        for choice in choices
    )


def _counts(asked: SubrequestPart, driver: str) -> int:
    named = {name for text in asked.selectors for name in NAMED.findall(text)}
    if asked.admin_access or (driver and named and named != {driver}):
        return 0
    return MOST_OF_A_CLAIM if asked.all_devices else asked.count
