"""All claim specs of the input: of claims, of templates, of members of gangs."""

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
from moorings.plan.objects import PlanObject
from solver.problem.gangs import (
    ClaimPart,
    GangPart,
    MemberPart,
    RequestPart,
    SubrequestPart,
)
from solver.problem.requests import Classes, resolve_requests


class LintClaim(Struct, frozen=True, kw_only=True):
    """One claim spec, resolved, and the object that it stands in."""

    kind: str
    namespace: str
    name: str
    path: str
    """Field of the object that holds the claim's spec."""
    part: ClaimPart

    def report(
        self,
        field: str,
        rule: LintRule,
        message: str,
        severity: Severity = Severity.ERROR,
    ) -> Finding:
        """Return a finding about this object."""
        return Finding(
            severity=severity,
            kind=self.kind,
            namespace=self.namespace,
            name=self.name,
            field=field,
            rule=rule,
            message=message,
        )


def gather_claims(
    objects: Iterable[PlanObject], classes: Classes, features: Features
) -> list[LintClaim]:
    """Gather all that requests devices; allocated claims have what they requested."""
    return [
        LintClaim(
            kind=kind,
            namespace=meta.namespace,
            name=meta.name,
            path=path,
            part=_resolve_claim(meta, spec, classes, features),
        )
        for entry in objects
        for kind, meta, path, spec in _find_specs(entry)
    ]


def _find_specs(
    entry: PlanObject,
) -> Iterator[tuple[str, ObjectMeta, str, ResourceClaimSpec]]:
    match entry.decoded.value:
        case ResourceClaim() as claim:
            if claim.allocation is None:
                yield "ResourceClaim", claim.metadata, "spec", claim.spec
        case ResourceClaimTemplate() as template:
            spec = template.spec.spec
            yield "ResourceClaimTemplate", template.metadata, "spec.spec", spec
        case Gang() as gang:
            for member_index, member in enumerate(gang.spec.members):
                for index, member_claim in enumerate(member.claims):
                    if member_claim.spec is not None:
                        path = f"spec.members[{member_index}].claims[{index}].spec"
                        yield "Gang", gang.metadata, path, member_claim.spec
        case _:
            return


def _resolve_claim(
    meta: ObjectMeta, spec: ResourceClaimSpec, classes: Classes, features: Features
) -> ClaimPart:
    spec = default_claim_spec(spec)
    subject = f"claim {meta.name}"
    return ClaimPart(
        name="claim",
        requests=tuple(resolve_requests(spec.devices, subject, classes, features)),
        constraints=spec.devices.constraints,
        config=spec.devices.config,
    )


def make_probe_gang(
    claims: Iterable[LintClaim], classes: Iterable[DeviceClass]
) -> GangPart:
    """Put all selectors into one gang, which is evaluated and never decided."""
    parts = [claim.part for claim in claims]
    for device_class in classes:
        selectors = tuple(
            s.cel.expression if s.cel else "" for s in device_class.spec.selectors
        )
        request = RequestPart(
            name="class", alternatives=(SubrequestPart(selectors=selectors),)
        )
        parts.append(ClaimPart(name="class", requests=(request,)))
    member = MemberPart(name="lint", claims=tuple(parts))
    return GangPart(uid=GangUID("lint"), name="lint", members=(member,))
