"""Users of claims that neither the View nor the claims themselves show. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from contracts.claim import ResourceClaim
from contracts.workload import Pod
from publisher.gangs.claims import MOST_RESERVED, is_immediate, reserved_uids

ENDLESS = 20
"""So many changes of one reservation are nobody's wish."""
_MOST_COUNTED = 2 * MOST_RESERVED
"""Users of a claim: those of now, and as many whose reservations went last."""


class ReservationFlips:
    """Counts how often claims lost and regained reservations, to notice endless loops.

    kube-controller-manager removes the reservation of an ended pod from a claim that
    others still use, and adds it again, without end (kubernetes/kubernetes#141274; this
    can go once no supported release does so). A few changes are ordinary.
    """

    def __init__(self) -> None:
        self._counts: dict[str, dict[str, int]] = {}

    def apply(
        self, key: str, before: ResourceClaim | None, after: ResourceClaim | None
    ) -> None:
        """Compare two versions of a claim (None: it is not there).

        An immediate claim that is free is soon allocated again, and may be freed and
        allocated without end.
        """
        is_free = after is None or after.allocation is None
        if after is None or (is_free and not is_immediate(after)):
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
        """True if a claim loses and regains its reservation for a pod without end."""
        return self._counts.get(key, {}).get(uid, 0) >= ENDLESS


class UngatedUsers:
    """Claims that are used by pods without our gate.

    The claim of a PodGroup is reserved for no single pod, so only its users tell
    whether its devices are in use. Claims and pods by `namespace/name`.
    """

    def __init__(self) -> None:
        self._claims: dict[str, frozenset[str]] = {}
        """Key of a pod -> keys of its claims."""
        self._users: dict[str, set[str]] = {}

    def has(self, claim: str) -> bool:
        """True if any such pod uses a claim."""
        return claim in self._users

    def of(self, claim: str) -> frozenset[str]:
        """Name the pods that use a claim."""
        return frozenset(self._users.get(claim, ()))

    def apply(self, pod: str, claims: Iterable[str]) -> frozenset[str]:
        """Note which claims a pod uses now; returns those for which that is new."""
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


class FinishedUsers:
    """Pods on nodes that have ended, are still there, and name claims.

    Claims and pods by `namespace/name`.
    """

    def __init__(self) -> None:
        self._claims: dict[str, frozenset[str]] = {}
        """Key of a pod -> keys of its claims."""
        self._pods: dict[str, dict[str, Pod]] = {}
        """Key of a claim -> its finished users by key."""

    def of(self, claim: str) -> tuple[Pod, ...]:
        """Return the finished users of a claim, by name."""
        return tuple(pod for _, pod in sorted(self._pods.get(claim, {}).items()))

    def apply(self, key: str, pod: Pod | None, claims: Iterable[str]) -> frozenset[str]:
        """Note a pod that has ended (None: it has not, or is gone), and its claims.

        Returns the claims that have other finished users now.
        """
        before = self._claims.pop(key, frozenset())
        after = frozenset(() if pod is None else claims)
        for claim in before - after:
            del self._pods[claim][key]
            if not self._pods[claim]:
                del self._pods[claim]
        if pod is not None and after:
            self._claims[key] = after
            for claim in after:
                self._pods.setdefault(claim, {})[key] = pod
        return before ^ after
