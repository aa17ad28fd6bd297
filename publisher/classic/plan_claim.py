"""Which claims give back what they hold: those that nobody uses any longer. Pure.

As k8s.io/dynamic-resource-allocation v0.30 does: the allocation goes first, then the
finalizer, so that a claim that is deleted is gone once its devices are free.
"""

from __future__ import annotations

from msgspec import Struct

from publisher.classic.objects import ClassicClaim, finalizer_of


class ClaimStep(Struct, frozen=True, kw_only=True):
    """What is to be done with a claim; at most one of these."""

    deallocates: bool = False
    unprotects: bool = False
    finalizers: tuple[str, ...] = ()
    """Those that are left without ours."""


def plan_claim(claim: ClassicClaim) -> ClaimStep:
    """Plan the end of a claim, or of its allocation."""
    ours = finalizer_of(claim.controller)
    is_over = claim.is_deleted or claim.is_unwanted
    if claim.reserved_for or not claim.controller or ours not in claim.finalizers:
        return ClaimStep()
    if is_over and (claim.is_allocated or claim.is_unwanted):
        return ClaimStep(deallocates=True)
    if claim.is_deleted:
        left = tuple(each for each in claim.finalizers if each != ours)
        return ClaimStep(unprotects=True, finalizers=left)
    return ClaimStep()
