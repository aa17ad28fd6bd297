"""What the API server would not admit into a namespace: admin access without its label.

Only where the input says what the namespace is: without a Namespace object nothing is
assumed. Source: KEP-5018.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import structs

from contracts.allocation import Reason, Rule
from contracts.workload import Namespace
from moorings.plan.work import PlanObject
from solver.problem.problem import GangPart

LABEL = "resource.kubernetes.io/admin-access"


def admitted(
    gangs: Iterable[GangPart], objects: Iterable[PlanObject]
) -> tuple[GangPart, ...]:
    """Refuse gangs with admin access whose namespace does not have the label."""
    labels = {
        item.decoded.value.metadata.name: item.decoded.value.metadata.labels
        for item in objects
        if isinstance(item.decoded.value, Namespace)
    }
    return tuple(_admitted(gang, labels) for gang in gangs)


def _admitted(gang: GangPart, labels: Mapping[str, Mapping[str, str]]) -> GangPart:
    namespace = gang.namespace or "default"
    if gang.refused or labels.get(namespace, {LABEL: "true"}).get(LABEL) == "true":
        return gang
    for member in gang.members:
        for claim in member.claims:
            for request in claim.requests:
                if any(asked.admin_access for asked in request.alternatives):
                    reason = Reason(
                        rule=Rule.INVALID,
                        subject=f"{member.name}/{claim.name}/{request.name}",
                        field="exactly.adminAccess",
                        message=(
                            f"Forbidden: admin access to devices requires the `{LABEL}:"
                            " true` label on the containing namespace"
                        ),
                    )
                    return structs.replace(gang, refused=(reason,), rejected=True)
    return gang
