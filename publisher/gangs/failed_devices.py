"""Devices that could not be attached, as claims said last (KEP-5007). Knows no plan.

kube-scheduler frees such a claim within seconds, and nothing says so any more: whoever
looks only at the claim as it is now may find it free already.
"""

from __future__ import annotations

from collections.abc import Iterable

from contracts.claim import ResourceClaim
from publisher.gangs.claims import FailedDevice, find_failed_device


class SeenFailures:
    """The failure of each claim, until it holds devices again or is gone."""

    def __init__(self) -> None:
        self._failed: dict[str, FailedDevice] = {}

    def note_claim(self, key: str, claim: ResourceClaim | None) -> None:
        """Take in a claim as it is now (None: it is not there)."""
        is_free = claim is not None and (
            claim.status is None or claim.status.allocation is None
        )
        if is_free:
            return
        failed = find_failed_device(claim)
        if failed is None:
            self._failed.pop(key, None)
        else:
            self._failed[key] = failed

    def find(self, claims: Iterable[str]) -> FailedDevice | None:
        """Return the first failure of these claims, by key; None: there is none."""
        return next(filter(None, map(self._failed.get, claims)), None)
