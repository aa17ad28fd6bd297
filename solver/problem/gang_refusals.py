"""Why a gang is not even tried, each refusal by the field to blame."""

from __future__ import annotations

from contracts.allocation import Reason, Rule
from solver.devices.candidates import select_devices
from solver.devices.facts import pool_of
from solver.devices.pool_projections import pools_of
from solver.errors import RefusedError
from solver.problem.gangs import GangPart
from solver.problem.problem import Problem

NODE_RESOURCES_FIELD = "devices[].nodeAllocatableResources"


def not_modelled(subject: str, field: str) -> RefusedError:
    """Refuse what this version cannot decide."""
    reason = Reason(
        rule=Rule.NOT_MODELLED,
        subject=subject,
        field=field,
        message="this version cannot decide it yet",
    )
    return RefusedError(reason, rejected=True)


def not_before_binding(subject: str, resource: str, device_class: str) -> RefusedError:
    """Refuse, for now, what cannot be allocated before a pod is bound (KEP-5004)."""
    message = (
        f"DeviceClass {device_class!r} serves it, whose devices kube-scheduler takes "
        "only when it binds the pod: ask for them by a ResourceClaimTemplate"
    )
    reason = Reason(
        rule=Rule.NOT_MODELLED,
        subject=subject,
        field=f"spec.containers[].resources[{resource}]",
        message=message,
    )
    return RefusedError(reason, rejected=False)


def invalid(subject: str, field: str, message: str) -> RefusedError:
    """Refuse what breaks a rule of the API."""
    reason = Reason(rule=Rule.INVALID, subject=subject, field=field, message=message)
    return RefusedError(reason, rejected=True)


def shared(claim: str, why: str) -> RefusedError:
    """Refuse, for now, a gang with a ResourceClaim that another has, or may get."""
    reason = Reason(
        rule=Rule.CLAIM_SHARED,
        subject=f"claim {claim}",
        field="spec.members[].claims[].claimName",
        message=f"{why}, and a ResourceClaim is allocated once",
    )
    return RefusedError(reason, rejected=False)


def unknown(rule: Rule, subject: str, name: str) -> RefusedError:
    """Refuse, for now, what refers to something that does not exist."""
    reason = Reason(rule=rule, subject=subject, message=f"{name!r} does not exist")
    return RefusedError(reason, rejected=False)


def find_unmodelled(gang: GangPart, problem: Problem) -> Reason | None:
    """Return why a gang cannot be decided, for its devices; None: it can.

    With DRANodeAllocatableResources on (alpha, off by default) a device may need CPU
    or memory of its node, beside what pods need of it. To leave such a device out could
    turn into a wrong "no", so a gang that could get one is refused. Source: KEP-5517.
    """
    if not problem.parameters.features.node_allocatable_resources:
        return None
    for member in gang.members:
        for claim in member.claims:
            for request in claim.requests:
                for alternative in request.alternatives:
                    if _may_get_one(alternative.selectors, problem):
                        return Reason(
                            rule=Rule.NOT_MODELLED,
                            subject=f"{member.name}/{claim.name}/{request.name}",
                            field=NODE_RESOURCES_FIELD,
                            message="selects devices that need resources of their node",
                        )
    return None


def _may_get_one(selectors: tuple[str, ...], problem: Problem) -> bool:
    for page in problem.pages:
        for part in pools_of(page):
            bits = select_devices(part, selectors, problem.selectors).bits
            for index, device in enumerate(pool_of(part).devices):
                if device.node_allocatable_resources and bits >> index & 1:
                    return True
    return False
