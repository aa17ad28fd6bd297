"""All requests of the input: of claims, of templates, of members of gangs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct

from contracts.claim import (
    DeviceClass,
    ResourceClaim,
    ResourceClaimSpec,
    ResourceClaimTemplate,
)
from contracts.features import Features
from contracts.gang import Gang
from contracts.ids import GangUID
from contracts.kubernetes.defaults import default_claim_spec
from contracts.meta import ObjectMeta
from moorings.lint.findings import Finding, LintRule, Severity
from moorings.plan.work import PlanObject
from solver.problem.problem import (
    ClaimPart,
    GangPart,
    MemberPart,
    RequestPart,
    SubrequestPart,
)
from solver.problem.requests import Classes, requests_of


class Asking(Struct, frozen=True, kw_only=True):
    """One claim's worth of requests, and the object that they stand in."""

    kind: str
    namespace: str
    name: str
    path: str
    """Field of the object that holds the claim's spec."""
    part: ClaimPart

    def finding(
        self,
        field: str,
        rule: LintRule,
        message: str,
        severity: Severity = Severity.ERROR,
    ) -> Finding:
        """Say what is wrong in this object."""
        return Finding(
            severity=severity,
            kind=self.kind,
            namespace=self.namespace,
            name=self.name,
            field=field,
            rule=rule,
            message=message,
        )


def askings_of(
    objects: Iterable[PlanObject], classes: Classes, features: Features
) -> list[Asking]:
    """Gather everything that asks for devices; allocated claims ask no more."""
    return [
        Asking(
            kind=kind,
            namespace=meta.namespace,
            name=meta.name,
            path=path,
            part=_part(meta, spec, classes, features),
        )
        for item in objects
        for kind, meta, path, spec in _specs(item)
    ]


def _specs(
    item: PlanObject,
) -> Iterator[tuple[str, ObjectMeta, str, ResourceClaimSpec]]:
    match item.decoded.value:
        case ResourceClaim() as claim:
            if claim.status is None or claim.status.allocation is None:
                yield "ResourceClaim", claim.metadata, "spec", claim.spec
        case ResourceClaimTemplate() as template:
            spec = template.spec.spec
            yield "ResourceClaimTemplate", template.metadata, "spec.spec", spec
        case Gang() as gang:
            for m, member in enumerate(gang.spec.members):
                for c, claim_of in enumerate(member.claims):
                    if claim_of.spec is not None:
                        path = f"spec.members[{m}].claims[{c}].spec"
                        yield "Gang", gang.metadata, path, claim_of.spec
        case _:
            return


def _part(
    meta: ObjectMeta, spec: ResourceClaimSpec, classes: Classes, features: Features
) -> ClaimPart:
    spec = default_claim_spec(spec)
    subject = f"claim {meta.name}"
    return ClaimPart(
        name="claim",
        requests=tuple(requests_of(spec.devices, subject, classes, features)),
        constraints=spec.devices.constraints,
        config=spec.devices.config,
    )


def gang_of(askings: Iterable[Asking], classes: Iterable[DeviceClass]) -> GangPart:
    """Put everything that must be evaluated into one gang, that nobody decides."""
    claims = [asking.part for asking in askings]
    for item in classes:
        selectors = tuple(
            s.cel.expression if s.cel else "" for s in item.spec.selectors
        )
        request = RequestPart(
            name="class", alternatives=(SubrequestPart(selectors=selectors),)
        )
        claims.append(ClaimPart(name="class", requests=(request,)))
    member = MemberPart(name="lint", claims=tuple(claims))
    return GangPart(uid=GangUID("lint"), name="lint", members=(member,))
