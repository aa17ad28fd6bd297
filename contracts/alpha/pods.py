"""Pods that name their claims below `source`, as before Kubernetes 1.31 -> as since.

Source: k8s.io/api v0.30 core/v1 PodResourceClaim, ClaimSource.
"""

from __future__ import annotations

from typing import Any

SOURCES = ("resourceClaimName", "resourceClaimTemplateName")


def lift_sources(raw: Any) -> Any:
    """Return an object whose pod specs name their claims as v1.31 does.

    It is the same object if none has a `source`.
    """
    if isinstance(raw, list):
        lifted = [lift_sources(each) for each in raw]
        is_same = all(new is old for new, old in zip(lifted, raw, strict=True))
        return raw if is_same else lifted
    if not isinstance(raw, dict):
        return raw
    changed = {}
    for key, value in raw.items():
        new = lift_sources(value)
        if key == "resourceClaims" and isinstance(new, list):
            claims = [_lift(claim) for claim in new]
            is_same = all(a is b for a, b in zip(claims, new, strict=True))
            new = new if is_same else claims
        if new is not value:
            changed[key] = new
    return {**raw, **changed} if changed else raw


def _lift(claim: Any) -> Any:
    """Move the fields of `source` up, unless it has others than were ever there."""
    source = claim.get("source") if isinstance(claim, dict) else None
    if not isinstance(source, dict) or not set(source) <= set(SOURCES):
        return claim
    rest = {key: value for key, value in claim.items() if key != "source"}
    return rest | source
