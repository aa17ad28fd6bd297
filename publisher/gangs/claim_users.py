"""Users of claims that neither the View nor the claims themselves show. Pure.

They are pods that never had our gate, and reservations that kube-controller-manager
takes and gives back without end.
"""

from __future__ import annotations

from collections.abc import Iterable

from contracts.claim import ResourceClaim
from publisher.gangs.claims import MOST_RESERVED, reserved_uids

ENDLESS = 20
"""So many changes of one reservation are nobody's wish."""
_MOST_COUNTED = 2 * MOST_RESERVED
"""Users of a claim: those of now, and as many whose reservations went last."""


class ReservationFlips:
    """How often claims lost and found reservations: so an endless loop is noticed.

    kube-controller-manager takes the reservation of a pod that has ended from a claim
    that others still use, and gives it back, without end
    (kubernetes/kubernetes#141274; this can go once no supported release does so). That
    one comes and goes a few times is ordinary.
    """

    def __init__(self) -> None:
        self._counts: dict[str, dict[str, int]] = {}

    def apply(
        self, key: str, before: ResourceClaim | None, after: ResourceClaim | None
    ) -> None:
        """Compare two versions of a claim (None: it is not there)."""
        if after is None or after.allocation is None:
            self._counts.pop(key, None)
            return
        was_reserved = frozenset() if before is None else reserved_uids(before)
        for uid in was_reserved ^ reserved_uids(after):
            counts = self._counts.setdefault(key, {})
            # The newest last: a claim that lives long has had users without number.
            counts[uid] = counts.pop(uid, 0) + 1
            if len(counts) > _MOST_COUNTED:
                del counts[next(iter(counts))]

    def are_endless(self, key: str, uid: str) -> bool:
        """True if a claim goes on losing and finding its reservation for somebody."""
        return self._counts.get(key, {}).get(uid, 0) >= ENDLESS


class UngatedUsers:
    """Claims that are used by pods without our gate.

    A claim of a PodGroup says of no pod that it is reserved for it, so only its users
    tell whether its devices are in use. Claims and pods by `namespace/name`.
    """

    def __init__(self) -> None:
        self._claims: dict[str, frozenset[str]] = {}
        """Key of a pod -> keys of its claims."""
        self._users: dict[str, set[str]] = {}

    def has(self, claim: str) -> bool:
        """True if any such pod uses a claim."""
        return claim in self._users

    def apply(self, pod: str, claims: Iterable[str]) -> frozenset[str]:
        """Take in which claims a pod uses now; returns those of which that is news."""
        before, after = self._claims.pop(pod, frozenset()), frozenset(claims)
        for claim in before - after:
            self._users[claim].discard(pod)
            if not self._users[claim]:
                del self._users[claim]
        for claim in after - before:
            self._users.setdefault(claim, set()).add(pod)
        if after:
            self._claims[pod] = after
        return before ^ after
