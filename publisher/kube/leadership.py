"""Who leads, by a Lease that all candidates see: what to do next, and who leads now.

Pure, so that every interleaving can be tested: times are the candidate's own monotonic
seconds, never the Lease's. A candidate takes over only after it saw the Lease unchanged
for its whole duration, or at once from a process that is known to be dead; a leader
stops before that, so there are never two who think they lead, however their clocks are
set (only how fast they run must be alike).

Source: k8s.io/client-go/tools/leaderelection, whose fields of the Lease are used alike;
KEP-5504, by which versions of objects are numbers that grow.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Struct, structs

DURATION_S = 15.0
"""Of a Lease, unless its holder says otherwise."""

Json = dict[str, Any]


def _never(_: str) -> bool:
    return False


class ObservedLease(Struct, frozen=True, kw_only=True):
    """A Lease as it was read."""

    holder: str = ""
    """Empty: released."""
    duration_s: float = DURATION_S
    transitions: int = 0
    acquire_time: str = ""
    uid: str = ""
    resource_version: str = ""
    """Empty: there is no Lease yet."""


class LeaseCandidate(Struct, frozen=True, kw_only=True):
    """What a candidate knows."""

    identity: str
    duration_s: float = DURATION_S
    """How long the Lease lasts when it is ours."""
    lease: ObservedLease | None = None
    """The Lease as it was last read; None: read it before anything else."""
    observed_s: float = 0.0
    """When this version of the Lease was first read."""
    renewed_s: float | None = None
    """When our last renewal that succeeded was begun; None: we do not lead."""
    newest: int = 0
    """The largest resourceVersion of the Lease; they only grow."""
    went_back: bool = False
    """True once a smaller one was read: the cluster was restored from a backup."""

    def left_s(self, now_s: float) -> float:
        """For how long we may act as the leader without another renewal."""
        if self.renewed_s is None or self.went_back:
            return 0.0
        return max(self.renewed_s + self.duration_s * 2 / 3 - now_s, 0.0)

    @property
    def renew_s(self) -> float:
        """Between two renewals, and between two looks of a standby."""
        return self.duration_s / 5

    def may_take(self, now_s: float, is_gone: Callable[[str], bool] = _never) -> bool:
        """True if the next step is to write the Lease; otherwise to look again.

        `is_gone`: whether a holder is known to be dead.
        """
        if self.lease is None or self.went_back:
            return False
        if self.lease.holder in ("", self.identity) or is_gone(self.lease.holder):
            return True
        return now_s >= self.observed_s + self.lease.duration_s


def note_observed(
    candidate: LeaseCandidate, lease: ObservedLease, now_s: float
) -> LeaseCandidate:
    """Note the Lease as it was read; `now_s` is after the answer came."""
    last = candidate.lease
    if last is not None and last.resource_version == lease.resource_version:
        return candidate
    kept = candidate.renewed_s if lease.holder == candidate.identity else None
    version = int(lease.resource_version or candidate.newest)
    return structs.replace(
        candidate,
        lease=lease,
        observed_s=now_s,
        renewed_s=kept,
        newest=max(version, candidate.newest),
        went_back=candidate.went_back or version < candidate.newest,
    )


def note_written(
    candidate: LeaseCandidate, lease: ObservedLease, began_s: float, now_s: float
) -> LeaseCandidate:
    """Note that our write succeeded; leading counts from when it was begun."""
    changed = note_observed(candidate, lease, now_s)
    return structs.replace(changed, renewed_s=began_s)


def note_released(candidate: LeaseCandidate) -> LeaseCandidate:
    """Note that we lead no more; the Lease is to be read again."""
    return structs.replace(candidate, lease=None, renewed_s=None)


def spec_of(candidate: LeaseCandidate, now: str) -> Json:
    """Return the `spec` that says we lead; `now` is a MicroTime."""
    last = candidate.lease or ObservedLease()
    ours = last.holder == candidate.identity
    return {
        "holderIdentity": candidate.identity,
        "leaseDurationSeconds": round(candidate.duration_s),
        "acquireTime": (last.acquire_time if ours else "") or now,
        "renewTime": now,
        "leaseTransitions": last.transitions + (not ours and last.holder != ""),
    }


def lease_of(raw: Json | None) -> ObservedLease:
    """Read a Lease as the API server gives it; None: there is none."""
    if raw is None:
        return ObservedLease()
    metadata, spec = raw["metadata"], raw.get("spec") or {}
    return ObservedLease(
        holder=spec.get("holderIdentity") or "",
        duration_s=float(spec.get("leaseDurationSeconds") or DURATION_S),
        transitions=spec.get("leaseTransitions") or 0,
        acquire_time=spec.get("acquireTime") or "",
        uid=metadata["uid"],
        resource_version=metadata["resourceVersion"],
    )
