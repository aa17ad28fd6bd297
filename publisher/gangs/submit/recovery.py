"""What becomes of a gang that cannot run, or whose devices fail: as its author says.

Pure.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from contracts.gang import Gang
from contracts.names import MAX_RECREATIONS, ON_DEVICE_FAILURE, RECOVERY
from contracts.validate.gangs import RECOVERIES, check_failures
from contracts.workload import Pod
from publisher.gangs.submit.readiness import NotReady

_DIGITS = 9
"""A limit has at most so many."""


class DeclaredRecovery(Struct, frozen=True, kw_only=True):
    """The fields of a Gang's spec that say when its pods are made anew."""

    recovery: str = RECOVERIES[0]
    on_device_failure: tuple[str, ...] = ()
    max_recreations: int | None = None


def find_recovery(
    pods: Sequence[Pod], gang: Gang | None
) -> DeclaredRecovery | NotReady:
    """Return what the Gang object says, or else the annotations of its pods."""
    if gang is not None:
        spec = gang.spec
        return DeclaredRecovery(
            recovery=spec.recovery,
            on_device_failure=spec.on_device_failure,
            max_recreations=spec.max_recreations,
        )
    told: dict[str, str] = {}
    for key, default in (
        (RECOVERY, RECOVERIES[0]),
        (ON_DEVICE_FAILURE, ""),
        (MAX_RECREATIONS, ""),
    ):
        values = {pod.metadata.annotations.get(key, default) for pod in pods}
        if len(values) > 1:
            text = f"the pods disagree: {', '.join(sorted(values))[:100]}"
            return _refuse(key, text)
        told[key] = min(values)
    if told[RECOVERY] not in RECOVERIES:
        text = f"{told[RECOVERY][:40]!r} is not one of {', '.join(RECOVERIES)}"
        return _refuse(RECOVERY, text)
    listed = told[ON_DEVICE_FAILURE].split(",") if told[ON_DEVICE_FAILURE] else ()
    reasons = tuple(reason.strip() for reason in listed)
    for violation in check_failures(reasons, "reasons"):
        return _refuse(ON_DEVICE_FAILURE, str(violation))
    limit = told[MAX_RECREATIONS]
    if limit and not (limit.isdecimal() and limit.isascii() and len(limit) <= _DIGITS):
        return _refuse(MAX_RECREATIONS, f"{limit[:40]!r} is not a number of times")
    return DeclaredRecovery(
        recovery=told[RECOVERY],
        on_device_failure=reasons,
        max_recreations=int(limit) if limit else None,
    )


def _refuse(key: str, text: str) -> NotReady:
    return NotReady(reason="RecoveryInvalid", message=f"annotation {key}: {text}")
