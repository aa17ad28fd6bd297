"""Why a gang is not even tried: refusals, each by the field to blame."""

from __future__ import annotations

from contracts.allocation import Reason, Rule
from solver.errors import RefusedError


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
    """Refuse, for now, what nobody can allocate before a pod is bound (KEP-5004)."""
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
    """Refuse, for now, who names a ResourceClaim that is, or may be, another's."""
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
