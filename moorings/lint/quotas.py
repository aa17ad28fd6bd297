"""Gangs and claims that the API server would not create, by the ResourceQuotas."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import structs

from contracts.features import Features
from moorings.lint.findings import Finding, LintRule, Severity
from moorings.lint.topology import LintGang
from moorings.plan.lone_claims import is_of_claims
from moorings.plan.objects import PlanObject
from moorings.plan.quotas import PlannedQuotas
from moorings.plan.work import PlanWork


def check_quotas(
    gangs: Iterable[LintGang],
    work: PlanWork,
    objects: Iterable[PlanObject],
    features: Features,
) -> Iterator[Finding]:
    """Find gangs that need more than is left by what the cluster and others use.

    An error where one needs more than is allowed at all.
    """
    given = sorted(gangs, key=lambda each: -each.part.priority)
    refused = PlannedQuotas(objects, features).refuse((g.part for g in given), work)
    for gang, part in zip(given, refused, strict=True):
        if part.refused and not gang.part.refused:
            (reason,) = part.refused
            facts = reason.facts
            is_final = facts["asked"] > facts["limit"]
            message = f"{reason.subject}: {reason.message}"
            severity = Severity.ERROR if is_final else Severity.WARNING
            found = gang.report("", LintRule.QUOTA, message, severity)
            is_claim = is_of_claims(gang.gang)
            yield structs.replace(found, kind="ResourceClaim") if is_claim else found
